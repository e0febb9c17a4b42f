"""Stage sanitize: runs compute-sanitizer's four tools over the small check cases of a family's variants."""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError, progress
from warplog.core.hashing import sha256_of
from warplog.core.locks import PATIENCE_S
from warplog.core.records import SCHEMA_VERSION, Record, worst
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal, family_task, keep, refuse_build
from warplog.measure.supervise import Task, discard, run_cases
from warplog.parsers import sanitizer

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FINDING = "finding"
# The second is printed under confidential computing: the program then runs unchecked, without any error.
_NOT_HERE = ("Device not supported", "anitizer will be disabled")
_MOST_LOG_BYTES = 64 << 20


class _Part:
    """One variant: its supported small cases, the reason if it cannot be checked, and the result of each tool."""

    def __init__(self, job: Job, tool: Tool) -> None:
        self.job = replace(job, backend="driver")  # compute-sanitizer would also check CuPy's kernels
        small = tuple(c for c in job.family.check_cases if _is_small(job, c))
        self.cases = job.fitting(small)
        self.refusal = refuse_build(job.build) or _refuse(job, tool, small)
        self.inputs_sha256 = sha256_of(
            "sanitize", job.inputs_sha256, job.build, small, self.refusal, tool.version
        )
        self.checks: list[Record] = []


def sanitize_family(jobs: Sequence[Job], tool: Tool) -> None:
    """Writes the sanitizer records of all variants; a record's status is that of its first tool that is not ok.

    Each tool first runs over all variants in one process. If that is not clean, it runs again with one process
    per variant, to attribute the finding. Variants need not have passed their checks, since the purpose is to find
    wrong kernels. Records with unchanged inputs are kept.

    Raises:
        WarplogError: A build record is missing or invalid, or the records cannot be written.
    """
    stale = [
        part
        for part in (_Part(job, tool) for job in jobs)
        if not part.job.is_fresh(part.inputs_sha256, any_board=True)
    ]
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
    """Returns whether one process over all variants finished without a finding."""
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
    """Returns the compute-sanitizer command for one of TOOLS, to put in front of the worker's command.

    API errors are not reported: the launcher returns its own, and libraries such as cuBLAS cause errors in normal
    operation by asking the driver for functions that it may not have (cuGetProcAddress). The tool gives up a program
    that does not use the GPU within 10 s, but the worker may first wait for another process that measures.
    """
    options = ("--tool", name, "--target-processes", "application-only", "--print-limit", "1000")
    patience = ("--launch-timeout", f"{PATIENCE_S:.0f}")
    return (str(tool.path), *options, *patience, "--report-api-errors", "no")


def _is_small(job: Job, case: str) -> bool:
    """Returns whether the case's arrays fit into the limit: a checked access is about 100 times slower."""
    shapes = job.family.shapes(job.family.check_cases[case])
    return sum(math.prod(shape) for shape in shapes) <= _largest(job)


def _largest(job: Job) -> int:
    return job.family.measuring.sanitized_elements or int(job.settings["largest_elements"])


def _refuse(job: Job, tool: Tool, cases: tuple[str, ...]) -> Refusal | None:
    if tool.path is None:
        return "missing", f"compute-sanitizer was not found; {tool.remedy}"
    if not job.fitting(cases):
        return "unsupported", f"it supports no check case of at most {_largest(job)} elements"
    return None


def _check(part: _Part, tool: Tool, name: str) -> Record:
    """Runs one tool over one variant in a separate process."""
    begin = time.monotonic()
    status, reason = part.refusal or ("ok", "")
    report = sanitizer.Report((), None)
    if part.refusal is None:
        job = part.job
        wrapper = command(tool, name)
        task = family_task([(job, part.cases)], "sanitize", {"tool": name}, wrapper=wrapper)
        task = replace(task, folder=job.scratch)
        status, reason, report = _run(job, task)
    return _entry(part.job, name, status, reason, time.monotonic() - begin, report)


def _entry(job: Job, name: str, status: str, reason: str, seconds: float, report: sanitizer.Report) -> Record:
    label = f"{job.family.name}/{job.variant.name}"
    progress(f"  {name:9} {label}  {status}  {reason}".rstrip(), status)
    return {
        "tool": name,
        "status": status,
        "reason": reason,
        "seconds": round(seconds, 3),
        "errors": report.errors,
        "findings": [vars(one) for one in report.findings],
    }


def _run(job: Job, task: Task) -> tuple[str, str, sanitizer.Report]:
    discard(task.folder)  # the output of an interrupted run is lost, so it cannot be resumed
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
    """Returns status and reason; findings take precedence over a failed worker, since they may be its cause."""
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
        return bad["status"], f"case {bad['case'].rpartition(':')[2]}: {bad['reason']}"
    if report.errors:
        return FINDING, f"{report.errors} error{'s' if report.errors > 1 else ''}, without details"
    if failure or report.errors is None:
        return (
            "error",
            failure or f"compute-sanitizer did not finish: {' '.join(text.split())[-200:]}",
        )
    return "ok", ""


def _quiet(_result: Record) -> None:
    """Prints nothing: results are reported per tool, not per case."""


def _read(log: Path) -> str:
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        return file.read(_MOST_LOG_BYTES).decode(errors="replace")


def rows(record: Record) -> list[dict[str, Any]]:
    """Returns the rows of the table `sanitize`: one per finding, and one per tool without findings."""
    key = {name: record[name] for name in ("family", "variant", "gpu", "origin", "source_sha256")}
    key |= {"gpu_name": record["provenance"]["gpu_name"], "cases": len(record["cases"])}
    found = []
    for check in record["checks"]:
        row = {**key, **{name: check[name] for name in ("tool", "status", "reason", "seconds")}}
        found += [{**row, **one} for one in check["findings"]] or [{**row, "count": check["errors"] or 0}]
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns a text about the rows of the table: one line per row that is not clean, then the totals."""
    lines = [
        f"{row['family']}/{row['variant']}  {row['tool']}  {row.get('message') or row['status']}"
        + (f"  {row['file']}:{row['line']} ({row['count']})" if row.get("file") else f"  {row['reason']}")
        for row in rows
        if row["status"] not in ("ok", "unsupported")
    ]
    states = {(row["family"], row["variant"], row["tool"]): row["status"] for row in rows}
    counts = Counter(states.values())
    totals = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.most_common())
    if not states:
        return "compute-sanitizer: no records; requires a GPU, or a recorded campaign that contains some"
    variants = len({key[:2] for key in states})
    plural = "" if variants == 1 else "s"
    return "\n".join([*lines, f"compute-sanitizer over {variants} variant{plural}: {totals}"])
