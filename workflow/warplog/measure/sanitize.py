"""Stage sanitize: compute-sanitizer's four tools over the small check cases of variants; findings become rows."""

import math
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.records import SCHEMA_VERSION, Record, sha256_of, worst
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal, family_task, keep, refuse_build
from warplog.measure.supervise import Task, discard, run_cases
from warplog.parsers import sanitizer

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FINDING = "finding"
# The second under confidential computing: the program then runs unchecked, without any error.
_NOT_HERE = ("Device not supported", "anitizer will be disabled")
_MOST_LOG_BYTES = 64 << 20


class _Part:
    """One variant: the small cases that it supports, and why it is not looked at."""

    def __init__(self, job: Job, tool: Tool) -> None:
        self.job = replace(job, backend="driver")  # CuPy's own kernels would be checked, too
        small = tuple(c for c in job.family.check_cases if _is_small(job, c))
        self.cases = job.fitting(small)
        self.refusal = refuse_build(job.build) or _refuse(job, tool, small)
        self.inputs_sha256 = sha256_of(
            "sanitize", job.inputs_sha256, job.build, small, self.refusal, tool.version
        )
        self.checks: list[Record] = []


def sanitize_family(jobs: Sequence[Job], tool: Tool) -> None:
    """The records of all variants; the status of one is that of its worst tool.

    One process per tool has all variants. Where it finds anything, each variant gets a process of its own, so
    that the finding has an owner. A variant need not have passed its check: a wrong kernel is what one looks
    for. A record of the same inputs is left alone.

    Raises:
        WarplogError: the worker failed for a reason of its own.
    """
    stale = [part for part in (_Part(job, tool) for job in jobs) if not part.job.is_fresh(part.inputs_sha256)]
    runnable = [part for part in stale if part.refusal is None]
    for name in jobs[0].settings["tools"]:
        begin = time.monotonic()
        clean = len(runnable) > 1 and _all_clean(runnable, tool, name)
        seconds = (time.monotonic() - begin) / max(len(runnable), 1)
        for part in stale:
            if clean and part.refusal is None:
                part.checks.append(_entry(part.job, name, "ok", "", seconds, sanitizer.Report((), 0)))
            else:
                part.checks.append(_check(part, tool, name))
    keep(jobs[0], [_record(part, tool) for part in stale])


def _all_clean(parts: Sequence[_Part], tool: Tool, name: str) -> bool:
    """Whether one process over all variants came to its end and found nothing."""
    first = parts[0].job
    pairs = [(part.job, part.cases) for part in parts]
    task = family_task(pairs, "sanitize", {"tool": name}, wrapper=command(tool, name))
    status, _, _ = _run(first, task)
    return status == "ok"


def _record(part: _Part, tool: Tool) -> Record:
    job = part.job
    status = worst(check["status"] for check in part.checks)
    bad = [check for check in part.checks if check["status"] == status != "ok"]
    return {
        **job.head("sanitize", job.build, {}),
        "schema": SCHEMA_VERSION,
        "status": status,
        "reason": f"{bad[0]['tool']}: {bad[0]['reason']}" if bad else "",
        "tool_version": tool.version or "",
        "settings": dict(job.settings),
        "cases": list(part.cases),
        "checks": part.checks,
        "inputs_sha256": part.inputs_sha256,
    }


def command(tool: Tool, name: str) -> tuple[str, ...]:
    """compute-sanitizer with one of TOOLS, before the worker's command.

    API errors are the launcher's to return. The tool would also count those of libraries that ask the driver for
    functions which it may lack (cuGetProcAddress), so that no variant with cuBLAS would be clean.
    """
    options = ("--tool", name, "--target-processes", "application-only", "--print-limit", "1000")
    return (str(tool.path), *options, "--report-api-errors", "no")


def _is_small(job: Job, case: str) -> bool:
    """Whether all arrays of the case together fit into the limit: a checked access costs a hundred others."""
    shapes = job.family.shapes(job.family.check_cases[case])
    return sum(math.prod(shape) for shape in shapes) <= _largest(job)


def _largest(job: Job) -> int:
    return job.family.measuring.sanitized_elements or int(job.settings["largest_elements"])


def _refuse(job: Job, tool: Tool, cases: tuple[str, ...]) -> Refusal | None:
    if tool.path is None:
        return "missing", f"compute-sanitizer was not found; {tool.remedy}"
    if not job.fitting(cases):
        return "unsupported", f"no check case of at most {_largest(job)} elements fits it"
    return None


def _check(part: _Part, tool: Tool, name: str) -> Record:
    """One tool over one variant, in a process of its own."""
    begin = time.monotonic()
    status, reason = part.refusal or ("ok", "")
    report = sanitizer.Report((), None)
    if part.refusal is None:
        job = part.job
        wrapper = command(tool, name)
        task = job.task("sanitize", part.cases, {"tool": name}, wrapper=wrapper, folder=job.scratch)
        status, reason, report = _run(job, task)
    return _entry(part.job, name, status, reason, time.monotonic() - begin, report)


def _entry(job: Job, name: str, status: str, reason: str, seconds: float, report: sanitizer.Report) -> Record:
    label = f"{job.family.name}/{job.variant.name}"
    print(f"  {name:9} {label}  {status}  {reason}".rstrip(), file=sys.stderr, flush=True)
    return {
        "tool": name,
        "status": status,
        "reason": reason,
        "seconds": round(seconds, 3),
        "errors": report.errors,
        "findings": [vars(one) for one in report.findings],
    }


def _run(job: Job, task: Task) -> tuple[str, str, sanitizer.Report]:
    discard(task.folder)  # what a cut run printed is gone: it starts afresh
    results: list[Record] = []
    failure = ""
    try:
        timeout_s = job.settings["timeout_s"]
        results, _ = run_cases(task, timeout_s, _quiet, ("crashed", "timeout"), stop_all=True)
    except WarplogError as error:
        failure = str(error)
    text = _read(task.folder / "worker.log")
    discard(task.folder)
    return *_judge(text, results, failure), sanitizer.parse(text)


def _judge(text: str, results: list[Record], failure: str) -> tuple[str, str]:
    """Status and reason: what the tool found goes before how the worker ended, since the one causes the other."""
    report = sanitizer.parse(text)
    if any(words in text for words in _NOT_HERE):
        return "unsupported", "compute-sanitizer does not support this device or its virtualisation"
    if report.findings:
        first = report.findings[0]
        place = f" at {first.file}:{first.line}" if first.file else ""
        count = max(report.errors or 0, sum(one.count for one in report.findings))
        return FINDING, f"{count} error{'s' if count > 1 else ''}, the first: {first.message}{place}"
    bad = next((r for r in results if r["status"] != "ok"), None)
    if bad is not None:
        return bad["status"], f"case {bad['case']}: {bad['reason']}"
    if report.errors:
        return FINDING, f"{report.errors} error{'s' if report.errors > 1 else ''}, of which it says nothing"
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
