"""How many fresh processes measure each case at rest, and what each of them runs."""

import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from statistics import median, stdev

from warplog.core.statistics import MEDIAN_EFFICIENCY
from warplog.measure.results import AtRest, Result
from warplog.measure.task import CaseRun
from warplog.records.config import TimeSettings

Pair = tuple[str, str]  # variant and case
_LEAST_GAP_US = 0.2
_LEAST_RUN_S = 1e-3
# Expected range of n normal values in standard deviations: L. H. C. Tippett, Biometrika 17 (1925) 364.
RANGE_OF_NORMAL = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704, 8: 2.847, 9: 2.970, 10: 3.078}


def further(rest: Mapping[Pair, Sequence[Result]], settings: TimeSettings) -> tuple[int, dict[Pair, int]]:
    """Returns the number of the next process, and in how many processes from it on each case must be measured.

    The spread of a few processes says little about how many are needed, so that it is estimated twice: at first as many
    further processes are allowed as there were, then up to `most_processes`, and then none.

    Args:
        rest: the results of each case so far.
        settings: how many processes there are at first and at most, and how long the further ones may take.
    """
    count, most = settings.processes, settings.most_processes
    done = max((result.run.process for results in rest.values() for result in results), default=0)
    if done > 2 * count:
        return done + 1, {}
    first, last = (count + 1, min(2 * count, most)) if done <= count else (2 * count + 1, most)
    return first, {pair: min(_within(results, settings), last + 1 - first) for pair, results in rest.items()}


def _within(rest: Sequence[Result], settings: TimeSettings) -> int:
    """Returns in how many more processes a case must be measured, within the time for them."""
    spent_s = sum(result.seconds or 0.0 for result in rest if result.run.process > settings.processes)
    return missing_runs(rest, settings.run_error, max(settings.further_seconds - spent_s, 0.0))


def in_order(first: int, counts: Mapping[Pair, int], cases: Sequence[str], seed: str) -> list[CaseRun]:
    """Returns what to run, by process from `first` on and by case, and within these in random order.

    Variants thus share the inputs of a case.
    """
    runs = [
        CaseRun(variant=variant, case=case, process=process)
        for process in range(first, first + max(counts.values(), default=0))
        for (variant, case), count in counts.items()
        if process < first + count
    ]
    mixed = Random(seed).sample(runs, len(runs))  # noqa: S311 - no secret
    return sorted(mixed, key=lambda run: (run.process, cases.index(run.case)))


def found_at_rest(results: Iterable[Result]) -> list[AtRest]:
    """Returns what the results at rest with status ok found."""
    return [result.found for result in results if isinstance(result.found, AtRest)]


def missing_runs(rest: Sequence[Result], error: float, most_s: float = math.inf) -> int:
    """Returns how many more runs at rest the median over runs needs for a relative standard error of `error`.

    There are never so many that they would take longer than `most_s` seconds. A case that failed in a process needs
    none, since it has no time.
    """
    if any(result.status != "ok" for result in rest):
        return 0
    wanted = missing([at_rest.cold.median_us for at_rest in found_at_rest(rest)], error)
    each_s = min((result.seconds or 0.0 for result in rest), default=0.0)
    return int(min(wanted, most_s / max(each_s, _LEAST_RUN_S)))


def missing(times_us: Sequence[float], error: float) -> int:
    """Returns how many more times the median needs for a relative standard error of `error`.

    The standard deviation of up to ten is estimated from their range, which for three normal values is 1.69 of them.
    Times that differ by at most 0.2 us, the resolution of CUDA events, need no further ones.
    """
    if len(times_us) < 2 or max(times_us) - min(times_us) <= _LEAST_GAP_US:
        return 0
    if len(times_us) in RANGE_OF_NORMAL:
        deviation = (max(times_us) / min(times_us) - 1) / RANGE_OF_NORMAL[len(times_us)]
    else:
        deviation = stdev(times_us) / median(times_us)
    return max(0, math.ceil((MEDIAN_EFFICIENCY * deviation / error) ** 2) - len(times_us))
