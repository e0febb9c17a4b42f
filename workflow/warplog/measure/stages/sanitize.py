"""Stage sanitize: runs compute-sanitizer's four tools over the small check cases of a family's variants."""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from warplog.core.columns import Cell
from warplog.core.errors import WarplogError
from warplog.core.locks import PATIENCE_S
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal
from warplog.measure.progress import show_variant
from warplog.measure.results import Result
from warplog.measure.stages.family_stage import FamilyStage, Part, family_task, refuse
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import SanitizeWork
from warplog.parsers import sanitizer
from warplog.records.config import SanitizerTool, SanitizeSettings
from warplog.records.measured import Session, worst
from warplog.records.requested.sanitize import Sanitize, SanitizerFinding, ToolCheck

# The second is printed under confidential computing: the program then runs unchecked, without any error.
_NOT_HERE = ("Device not supported", "anitizer will be disabled")
_MOST_LOG_BYTES = 64 << 20


@dataclass(frozen=True)
class SanitizeStage(FamilyStage[SanitizeSettings, ToolCheck, Sanitize]):
    """The small check cases under each tool of compute-sanitizer, also of variants that did not pass their checks."""

    tool: Tool
    name = "sanitize"
    kind = Sanitize
    any_board = True

    def part(self, job: Job[SanitizeSettings]) -> Part[SanitizeSettings]:
        """Returns what is done with a variant: the check cases whose arrays fit into the limit.

        A checked access is about 100 times slower than another.
        """
        largest = job.family.measuring.sanitized_elements or job.settings.largest_elements
        small = [name for name in job.family.check_cases if _elements(job, name) <= largest]
        refusal = refuse(job)
        if not refusal and self.tool.path is None:
            refusal = "missing", f"compute-sanitizer was not found; {self.tool.remedy}"
        if not refusal and not job.fitting(small):
            refusal = "unsupported", f"it supports no check case of at most {largest} elements"
        return self._part(job, small, refusal, small, refusal, self.tool.version)

    def measure(self, parts: Sequence[Part[SanitizeSettings]]) -> Iterator[list[Sanitize]]:
        """Runs each tool over all variants in one process.

        If that is not clean, it runs again with one process per variant, to attribute the finding.
        """
        checks: dict[str, dict[str, ToolCheck]] = {part.variant: {} for part in parts}
        for tool in parts[0].job.settings.tools:
            together = self._run(tool, parts)
            for part in parts:
                shared = together.status == "ok" or len(parts) == 1
                check = together if shared else self._run(tool, [part])
                _show(part, check)
                checks[part.variant][tool] = check
        yield [self.entry(part, checks[part.variant], Session()) for part in parts]

    def refused(self, part: Part[SanitizeSettings]) -> Sanitize:
        """Returns the entry of a variant that no tool runs, and prints why."""
        assert part.refusal is not None
        status, reason = part.refusal
        checks: dict[str, ToolCheck] = {
            tool: ToolCheck(tool=tool, status=status, reason=reason, seconds=0.0, errors=None, findings=())
            for tool in part.job.settings.tools
        }
        for check in checks.values():
            _show(part, check)
        return self.entry(part, checks, Session())

    def entry(self, part: Part[SanitizeSettings], ran: Mapping[str, ToolCheck], session: Session) -> Sanitize:
        """Returns the checks of a variant; its status is that of the first tool that is not ok."""
        status = worst(check.status for check in ran.values())
        bad = next((check for check in ran.values() if check.status == status != "ok"), None)
        reason = f"{bad.tool}: {bad.reason}" if bad else ""
        return Sanitize(
            **part.job.head(session, (status, reason), part.inputs_sha256),
            tool_version=self.tool.version or "",
            cases=part.job.fitting(part.cases),
            checks=tuple(ran.values()),
            settings=part.job.settings,
        )

    def _run(self, tool: SanitizerTool, parts: Sequence[Part[SanitizeSettings]]) -> ToolCheck:
        """Runs one tool over variants in one process; the time is that per variant."""
        begin = time.monotonic()
        task = family_task(parts, SanitizeWork(tool=tool), wrapper=command(self.tool, tool))
        task = structs.replace(task, backend="driver")  # the tool would also check CuPy's kernels
        folder = Path(task.folder)
        discard(folder)  # the output of an interrupted run is lost, so it cannot be resumed
        results: list[Result] = []
        failure = ""
        try:  # without a line per case, since results are reported per tool
            timeout_s = parts[0].job.settings.timeout_s
            results, _ = run_cases(task, timeout_s, lambda _: None, BREAKS, stop_all=True)
        except WarplogError as error:
            failure = str(error)
        text = _read(folder / "worker.log")
        discard(folder)
        report = sanitizer.parse(text)
        status, reason = _judge(text, report, results, failure)
        return ToolCheck(
            tool=tool,
            status=status,
            reason=reason,
            seconds=round((time.monotonic() - begin) / len(parts), 3),
            errors=report.errors,
            findings=tuple(SanitizerFinding(**vars(finding)) for finding in report.findings),
        )


def sanitize_family(jobs: Sequence[Job[SanitizeSettings]], tool: Tool) -> None:
    """Runs compute-sanitizer over the variants of one family; see `FamilyStage.run`."""
    SanitizeStage(tool).run(jobs)


def command(tool: Tool, name: str) -> tuple[str, ...]:
    """Returns the compute-sanitizer command for one of its tools, to put in front of the worker's command.

    API errors are not reported: the launcher returns its own, and libraries such as cuBLAS cause errors in normal
    operation by asking the driver for functions that it may not have (cuGetProcAddress). The tool gives up a program
    that does not use the GPU within 10 s, but the worker may first wait for another process that measures.
    """
    options = ("--tool", name, "--target-processes", "application-only", "--print-limit", "1000")
    patience = ("--launch-timeout", f"{PATIENCE_S:.0f}")
    return (str(tool.path), *options, *patience, "--report-api-errors", "no")


def _elements(job: Job[SanitizeSettings], case: str) -> int:
    return sum(map(math.prod, job.family.shapes(job.family.check_cases[case])))


def _show(part: Part[SanitizeSettings], check: ToolCheck) -> None:
    show_variant(f"{check.tool:9}", part.job.family, part.variant, check.status, check.reason)


def _judge(text: str, report: sanitizer.Report, results: Sequence[Result], failure: str) -> Refusal:
    """Returns status and reason; findings take precedence over a failed worker, since they may be its cause."""
    if any(words in text for words in _NOT_HERE):
        return "unsupported", "compute-sanitizer does not support this device or its virtualisation"
    if report.findings:
        first = report.findings[0]
        place = f" at {first.file}:{first.line}" if first.file else ""
        count = max(report.errors or 0, sum(finding.count for finding in report.findings))
        return "finding", f"{count} error{'s' if count > 1 else ''}, the first: {first.message}{place}"
    if bad := next((result for result in results if result.status != "ok"), None):
        return bad.status, f"case {bad.run.case}: {bad.reason}"
    if report.errors:
        return "finding", f"{report.errors} error{'s' if report.errors > 1 else ''}, without details"
    if failure or report.errors is None:
        return "error", failure or f"compute-sanitizer did not finish: {' '.join(text.split())[-200:]}"
    return "ok", ""


def _read(log: Path) -> str:
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        return file.read(_MOST_LOG_BYTES).decode(errors="replace")


def rows(record: Sanitize) -> list[dict[str, Cell]]:
    """Returns the rows of the table `sanitize`: one per finding, and one per tool without findings."""
    table: list[dict[str, Cell]] = []
    for check in record.checks:
        row: dict[str, Cell] = {
            **{
                name: getattr(record, name)
                for name in ("family", "variant", "gpu", "origin", "source_sha256")
            },
            "gpu_name": record.provenance.gpu_name,
            "cases": len(record.cases),
            **{name: getattr(check, name) for name in ("tool", "status", "reason", "seconds")},
        }
        findings = map(structs.asdict, check.findings)
        table += [{**row, **finding} for finding in findings] or [{**row, "count": check.errors or 0}]
    return table


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
