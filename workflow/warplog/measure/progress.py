"""The lines that measuring jobs print: one per finished case, or per variant that is not run."""

from collections.abc import Callable
from typing import Any

from warplog.catalog.family import Family
from warplog.core.errors import progress
from warplog.core.numbers import rate_unit
from warplog.measure.job import Job
from warplog.measure.results import Accessed, AtRest, Captured, Checked, Marked, Result, Sustained
from warplog.records.fields import Status


def show_variant(what: str, family: Family, variant: str, status: Status, reason: str) -> None:
    """Prints a line about a variant as a whole: `ncu     sgemm/naive  skipped  its check has ...`."""
    progress(f"  {what:7} {family.name}/{variant}  {status}  {reason}".rstrip(), status)


def show_results(what: str, job: Job[Any], total: int) -> Callable[[Result], None]:
    """Returns a function that prints a line per finished case: `check   sgemm/naive  4096  ok  ...  (6/7)`."""
    done, name = 0, job.family.name

    def show(result: Result) -> None:
        nonlocal done
        done += 1
        outcome = result.reason if result.status != "ok" else _headline(job, result)
        line = f"  {what:7} {name}/{result.run.variant}  {result.run.case}  {result.status}  {outcome}"
        progress(f"{line.rstrip()}  ({done}/{max(done, total)})", result.status)

    return show


def _headline(job: Job[Any], result: Result) -> str:
    match result.found:
        case Checked(max_error_over_tolerance=error):
            return f"error {error or 0.0:.2f} of the tolerance"
        case Sustained(run=run):
            return f"{run.mean_us:.4g} us sustained"
        case Marked(overhead=overhead):
            return f"overhead of the marks {overhead.overhead_pct:.2f} %"
        case Accessed(max_error_over_tolerance=error):
            return f"error {error:.2f} of the tolerance"
        case Captured(launches=launches):
            return f"{launches} launch{'es' if launches > 1 else ''}"
        case AtRest(cold=cold, hot=hot):
            of_hot = f", {hot.median_us:.4g} us hot" if hot else ""
            return f"{cold.median_us:.4g} us at rest{of_hot}, {_rate(job, result.run.case, cold.median_us)}"
    return ""


def _rate(job: Job[Any], case: str, rest_us: float) -> str:
    work, values = job.family.work, job.family.cases[case]
    flops, moved = (job.family.amount(text, values, job.gpu.sms) for text in (work.flops, work.bytes))
    amount, unit = (flops, "GFLOP/s") if flops else (moved, "GB/s")
    rate = amount / max(rest_us, 1e-3) / 1e3
    unit, factor = rate_unit(unit, [rate])
    return f"{rate * factor:.4g} {unit}"
