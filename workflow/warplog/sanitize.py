"""Stage sanitize: compute-sanitizer's four tools over a variant's small check cases; findings become rows."""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warplog.errors import WarplogError
from warplog.gpu_lock import hold
from warplog.jobs import Job, Refusal, refuse_build
from warplog.parsers import sanitizer
from warplog.records import SCHEMA_VERSION, Record, worst, write_json
from warplog.supervise import discard, run_cases
from warplog.toolchain import Tool

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FINDING = "finding"
_NOT_HERE = "Device not supported"
_MOST_LOG_BYTES = 64 << 20


def sanitize_variant(job: Job, tool: Tool) -> Record:
    """One process per tool over all small cases; the record's status is that of the worst tool.

    A variant need not have passed its check: a wrong kernel is what one looks for.

    Raises:
        WarplogError: the worker failed for a reason of its own.
    """
    cases = tuple(c for c in job.family.check_cases if _is_small(job, c))
    refusal = refuse_build(job.build) or _refuse(job, tool, cases)
    checks = [_check(job, tool, name, job.fitting(cases), refusal) for name in job.settings["tools"]]
    status = worst(check["status"] for check in checks)
    bad = [check for check in checks if check["status"] == status != "ok"]
    record = {
        **job.head("sanitize", job.build, {}),
        "schema": SCHEMA_VERSION,
        "status": status,
        "reason": f"{bad[0]['tool']}: {bad[0]['reason']}" if bad else "",
        "tool_version": tool.version or "",
        "settings": dict(job.settings),
        "cases": list(job.fitting(cases)),
        "checks": checks,
    }
    write_json(job.record, record, "record")
    for name in job.settings["tools"]:
        discard(job.scratch / name)
    discard(job.scratch)
    return record


def command(tool: Tool, name: str) -> tuple[str, ...]:
    """compute-sanitizer with one of TOOLS, before the worker's command."""
    options = ("--tool", name, "--target-processes", "application-only", "--print-limit", "1000")
    return (str(tool.path), *options)


def _is_small(job: Job, case: str) -> bool:
    """Whether all arrays of the case together fit into the limit: a checked access costs a hundred others."""
    family, problem = job.family, job.family.check_cases[case]
    elements = 0
    for argument in family.arguments:
        size = 1
        for extent in family.shape(argument, problem) if argument.kind != "scalar" else (0,):
            size *= extent
        elements += size
    return elements <= int(job.settings["largest_elements"])


def _refuse(job: Job, tool: Tool, cases: tuple[str, ...]) -> Refusal | None:
    if tool.path is None:
        return "missing", f"compute-sanitizer was not found; {tool.remedy}"
    if not job.fitting(cases):
        return "unsupported", f"no check case of at most {job.settings['largest_elements']} elements fits it"
    return None


def _check(job: Job, tool: Tool, name: str, cases: tuple[str, ...], refusal: Refusal | None) -> Record:
    begin = time.monotonic()
    status, reason = refusal or ("ok", "")
    report = sanitizer.Report((), None)
    if refusal is None:
        status, reason, report = _run(job, tool, name, cases)
    label = f"{job.family.name}/{job.variant.name}"
    print(f"  {name:9} {label}  {status}  {reason}".rstrip(), file=sys.stderr, flush=True)
    return {
        "tool": name,
        "status": status,
        "reason": reason,
        "seconds": round(time.monotonic() - begin, 3),
        "errors": report.errors,
        "findings": [vars(one) for one in report.findings],
    }


def _run(job: Job, tool: Tool, name: str, cases: tuple[str, ...]) -> tuple[str, str, sanitizer.Report]:
    task = job.task("sanitize", cases, {"tool": name}, wrapper=command(tool, name), folder=job.scratch / name)
    discard(task.folder)  # what a cut run printed is gone: it starts afresh
    results: list[Record] = []
    failure = ""
    with hold(job.gpu.uuid):
        try:
            results, _ = run_cases(task, job.settings["timeout_s"], _quiet, ("crashed", "timeout"))
        except WarplogError as error:
            failure = str(error)
    text = _read(task.folder / "worker.log")
    return *_judge(text, results, failure), sanitizer.parse(text)


def _judge(text: str, results: list[Record], failure: str) -> tuple[str, str]:
    """Status and reason: what the tool found goes before how the worker ended, since the one causes the other."""
    report = sanitizer.parse(text)
    if _NOT_HERE in text:
        return "unsupported", "compute-sanitizer does not support this device or its virtualisation"
    if report.findings or report.errors:
        first = report.findings[0] if report.findings else sanitizer.Finding("other", "see the log")
        place = f" at {first.file}:{first.line}" if first.file else ""
        count = max(report.errors or 0, sum(one.count for one in report.findings))
        return FINDING, f"{count} error{'s' if count > 1 else ''}, the first: {first.message}{place}"
    bad = next((r for r in results if r["status"] != "ok"), None)
    if bad is not None:
        return bad["status"], f"case {bad['case']}: {bad['reason']}"
    if failure or report.errors is None:
        return (
            "error",
            failure or f"compute-sanitizer did not come to its end: {' '.join(text.split())[-200:]}",
        )
    return "ok", ""


def _quiet(_result: Record) -> None:
    """A tool is told of as a whole."""


def _read(log: Path) -> str:
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        return file.read(_MOST_LOG_BYTES).decode(errors="replace")


def rows(record: Record) -> list[dict[str, Any]]:
    """The record as rows of the table `sanitize`: one a finding, and one a tool that found nothing."""
    key = {name: record[name] for name in ("family", "variant", "gpu", "origin", "source_sha256")}
    key |= {"gpu_name": record["provenance"]["gpu_name"], "cases": len(record["cases"])}
    found = []
    for check in record["checks"]:
        told = {**key, **{name: check[name] for name in ("tool", "status", "reason", "seconds")}}
        found += [{**told, **one} for one in check["findings"]] or [{**told, "count": check["errors"] or 0}]
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the rows of the table say, as text: a line for each that is not clean, and one for all."""
    lines = [
        f"{row['family']}/{row['variant']}  {row['tool']}  {row.get('message') or row['status']}"
        + (f"  {row['file']}:{row['line']} ({row['count']})" if row.get("file") else f"  {row['reason']}")
        for row in rows
        if row["status"] not in ("ok", "unsupported")
    ]
    states = {(row["family"], row["variant"], row["tool"]): row["status"] for row in rows}
    counts = Counter(states.values())
    told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.most_common())
    if not states:
        return "compute-sanitizer: no records; this needs a GPU, or a recorded campaign that holds them"
    variants = len({key[:2] for key in states})
    return "\n".join([*lines, f"compute-sanitizer over {variants} variants: {told}"])
