"""How many fresh processes measure each case at rest, and what each of them runs."""

from collections.abc import Mapping, Sequence
from random import Random

from warplog.measure.pooling import missing_runs
from warplog.measure.results import Result
from warplog.measure.task import CaseRun
from warplog.records.config import TimeSettings

Pair = tuple[str, str]  # variant and case


def further(rest: Mapping[Pair, Sequence[Result]], settings: TimeSettings) -> tuple[int, dict[Pair, int]]:
    """Returns the number of the next process, and in how many processes from it on each case must be measured.

    The spread of a few processes says little about how many are needed, so that it is estimated twice: as many
    processes at most as there were at first, then up to `most_processes`.

    Args:
        rest: the results of each case so far.
        settings: how many processes there are at first and at most, and how long the further ones may take.
    """
    count, most = settings.processes, settings.most_processes
    is_second = any(result.run.process > count for results in rest.values() for result in results)
    first, last = (2 * count + 1, most) if is_second else (count + 1, min(2 * count, most))
    return first, {pair: min(_missing(results, settings), last + 1 - first) for pair, results in rest.items()}


def _missing(rest: Sequence[Result], settings: TimeSettings) -> int:
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
