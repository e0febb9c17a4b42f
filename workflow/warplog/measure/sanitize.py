"""Stage sanitize: runs compute-sanitizer's four tools over the small check cases of a family's variants."""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from warplog.core.columns import Cell
from warplog.core.errors import WarplogError, progress
from warplog.core.hashing import sha256_of
from warplog.core.locks import PATIENCE_S
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal, family_task, keep, refuse_build
from warplog.measure.results import Result
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import SanitizeWork, Task
from warplog.parsers import sanitizer
from warplog.records import door
from warplog.records.config import SanitizerTool, SanitizeSettings
from warplog.records.measured import Session, worst
from warplog.records.sanitize import Sanitize, SanitizerFinding, ToolCheck

# The second is printed under confidential computing: the program then runs unchecked, without any error.
_NOT_HERE = ("Device not supported", "anitizer will be disabled")
_MOST_LOG_BYTES = 64 << 20


class _Part:
    """One variant: its supported small cases, the reason if it cannot be checked, and the result of each tool."""

    def __init__(self, job: Job[SanitizeSettings], tool: Tool) -> None:
        self.job = replace(job, backend="driver")  # compute-sanitizer would also check CuPy's kernels
        small = tuple(c for c in job.family.check_cases if _is_small(job, c))
        self.cases = job.fitting(small)
        self.refusal = refuse_build(job.build) or _refuse(job, tool, small)
        self.inputs_sha256 = sha256_of(
            "sanitize", job.inputs_sha256, door.plain(job.build), small, self.refusal, tool.version
        )
        self.checks: list[ToolCheck] = []


def sanitize_family(jobs: Sequence[Job[SanitizeSettings]], tool: Tool) -> None:
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
        if not part.job.is_fresh(Sanitize, part.inputs_sha256, any_board=True)
    ]
    runnable = [part for part in stale if part.refusal is None]
    for name in jobs[0].settings.tools:
        begin = time.monotonic()
        clean = len(runnable) > 1 and _all_clean(runnable, tool, name)
        seconds = (time.monotonic() - begin) / max(len(runnable), 1)
        for part in stale:
            if clean and part.refusal is None:
                part.checks.append(_entry(part.job, name, ("ok", ""), seconds, sanitizer.Report((), 0)))
            else:
                part.checks.append(_check(part, tool, name))
    keep(jobs[0], Sanitize, [_record(part, tool) for part in stale])


def _all_clean(parts: Sequence[_Part], tool: Tool, name: SanitizerTool) -> bool:
    """Returns whether one process over all variants finished without a finding."""
    first = parts[0].job
    pairs = [(part.job, part.cases) for part in parts]
    outcome, _ = _run(first, family_task(pairs, SanitizeWork(tool=name), wrapper=command(tool, name)))
    return outcome[0] == "ok"


def _record(part: _Part, tool: Tool) -> Sanitize:
    job = part.job
    status = worst(check.status for check in part.checks)
    bad = [check for check in part.checks if check.status == status != "ok"]
    return Sanitize(
        **job.head(Session()),
        status=status,
        reason=f"{bad[0].tool}: {bad[0].reason}" if bad else "",
        inputs_sha256=part.inputs_sha256,
        tool_version=tool.version or "",
        cases=part.cases,
        checks=tuple(part.checks),
        settings=job.settings,
    )


def command(tool: Tool, name: str) -> tuple[str, ...]:
    """Returns the compute-sanitizer command for one of its tools, to put in front of the worker's command.

    API errors are not reported: the launcher returns its own, and libraries such as cuBLAS cause errors in normal
    operation by asking the driver for functions that it may not have (cuGetProcAddress). The tool gives up a program
    that does not use the GPU within 10 s, but the worker may first wait for another process that measures.
    """
    options = ("--tool", name, "--target-processes", "application-only", "--print-limit", "1000")
    patience = ("--launch-timeout", f"{PATIENCE_S:.0f}")
    return (str(tool.path), *options, *patience, "--report-api-errors", "no")


def _is_small(job: Job[SanitizeSettings], case: str) -> bool:
    """Returns whether the case's arrays fit into the limit: a checked access is about 100 times slower."""
    shapes = job.family.shapes(job.family.check_cases[case])
    return sum(math.prod(shape) for shape in shapes) <= _largest(job)


def _largest(job: Job[SanitizeSettings]) -> int:
    return job.family.measuring.sanitized_elements or job.settings.largest_elements


def _refuse(job: Job[SanitizeSettings], tool: Tool, cases: tuple[str, ...]) -> Refusal | None:
    if tool.path is None:
        return "missing", f"compute-sanitizer was not found; {tool.remedy}"
    if not job.fitting(cases):
        return "unsupported", f"it supports no check case of at most {_largest(job)} elements"
    return None


def _check(part: _Part, tool: Tool, name: SanitizerTool) -> ToolCheck:
    """Runs one tool over one variant in a separate process."""
    begin, job = time.monotonic(), part.job
    outcome, report = part.refusal, sanitizer.Report((), None)
    if outcome is None:
        task = family_task([(job, part.cases)], SanitizeWork(tool=name), wrapper=command(tool, name))
        outcome, report = _run(job, structs.replace(task, folder=str(job.scratch)))
    return _entry(job, name, outcome, time.monotonic() - begin, report)


def _entry(
    job: Job[SanitizeSettings],
    name: SanitizerTool,
    outcome: Refusal,
    seconds: float,
    report: sanitizer.Report,
) -> ToolCheck:
    status, reason = outcome
    label = f"{job.family.name}/{job.variant.name}"
    progress(f"  {name:9} {label}  {status}  {reason}".rstrip(), status)
    return ToolCheck(
        tool=name,
        status=status,
        reason=reason,
        seconds=round(seconds, 3),
        errors=report.errors,
        findings=tuple(SanitizerFinding(**vars(one)) for one in report.findings),
    )


def _run(job: Job[SanitizeSettings], task: Task) -> tuple[Refusal, sanitizer.Report]:
    folder = Path(task.folder)
    discard(folder)  # the output of an interrupted run is lost, so it cannot be resumed
    results: list[Result] = []
    failure = ""
    try:  # without a line per case, since results are reported per tool
        results, _ = run_cases(task, job.settings.timeout_s, lambda _: None, BREAKS, stop_all=True)
    except WarplogError as error:
        failure = str(error)
    text = _read(folder / "worker.log")
    discard(folder)
    return _judge(text, results, failure), sanitizer.parse(text)


def _judge(text: str, results: Sequence[Result], failure: str) -> Refusal:
    """Returns status and reason; findings take precedence over a failed worker, since they may be its cause."""
    report = sanitizer.parse(text)
    if any(words in text for words in _NOT_HERE):
        return "unsupported", "compute-sanitizer does not support this device or its virtualisation"
    if report.findings:
        first = report.findings[0]
        place = f" at {first.file}:{first.line}" if first.file else ""
        count = max(report.errors or 0, sum(one.count for one in report.findings))
        return "finding", f"{count} error{'s' if count > 1 else ''}, the first: {first.message}{place}"
    bad = next((one for one in results if one.status != "ok"), None)
    if bad is not None:
        return bad.status, f"case {bad.run.case}: {bad.reason}"
    if report.errors:
        return "finding", f"{report.errors} error{'s' if report.errors > 1 else ''}, without details"
    if failure or report.errors is None:
        return (
            "error",
            failure or f"compute-sanitizer did not finish: {' '.join(text.split())[-200:]}",
        )
    return "ok", ""


def _read(log: Path) -> str:
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        return file.read(_MOST_LOG_BYTES).decode(errors="replace")


def rows(record: Sanitize) -> list[dict[str, Cell]]:
    """Returns the rows of the table `sanitize`: one per finding, and one per tool without findings."""
    found: list[dict[str, Cell]] = []
    for check in record.checks:
        row: dict[str, Cell] = {
            "family": record.family,
            "variant": record.variant,
            "gpu": record.gpu,
            "origin": record.origin,
            "source_sha256": record.source_sha256,
            "gpu_name": record.provenance.gpu_name,
            "cases": len(record.cases),
            "tool": check.tool,
            "status": check.status,
            "reason": check.reason,
            "seconds": check.seconds,
        }
        found += [{**row, **structs.asdict(one)} for one in check.findings] or [
            {**row, "count": check.errors or 0}
        ]
    return found


def summary(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Returns a text about the rows of the table: one line per row that is not clean, then the totals."""
    lines = [
        f"{row['family']}/{row['variant']}  {row['tool']}  {row.get('message') or row['status']}"
        + (f"  {row['file']}:{row['line']} ({row['count']})" if row.get("file") else f"  {row['reason']}")
        for row in rows
        if row["status"] not in ("ok", "unsupported")
    ]
    states = {(row["family"], row["variant"], row["tool"]): row["status"] for row in rows}
    counts = Counter(states.values())
    totals = ", ".join(f"{count} {str(status).replace('_', ' ')}" for status, count in counts.most_common())
    if not states:
        return "compute-sanitizer: no records; requires a GPU, or a recorded campaign that contains some"
    variants = len({key[:2] for key in states})
    plural = "" if variants == 1 else "s"
    return "\n".join([*lines, f"compute-sanitizer over {variants} variant{plural}: {totals}"])
