"""The floors of campaigns: what the same code shows between two of them (see analysis/noise.py), case by case."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from statistics import median

from warplog.analysis import noise
from warplog.analysis.noise import ASSUMED, Spread
from warplog.analysis.verdicts import Timed, between
from warplog.core.columns import Cell
from warplog.judge.samples import REGIMES, REST, Campaign, Key, Measured

CaseKey = tuple[str, str, str, str]  # family, variant, case, regime


@dataclass(frozen=True)
class Floors:
    """Differences between processes that run the same code.

    Attributes:
        gaps: per case and regime, the relative gaps between the times of all pairs of runs.
        spreads: per case and regime; `typical`, per regime, is used for cases that ran in one process only.
        conditions: the GPU, driver and clocks for which the floors hold.
        processes: the largest number of processes in which a case ran.
    """

    gaps: Mapping[CaseKey, tuple[float, ...]]
    spreads: Mapping[CaseKey, Spread]
    typical: Mapping[str, Spread]
    conditions: Mapping[str, str]
    processes: int

    def timed(self, key: Key, runs: Sequence[Measured], regime: str = REST) -> Timed:
        """Returns the time of a case in a regime, measured in these runs, with what the same code shows."""
        spread = self.spreads.get((*key, regime)) or self.typical.get(regime, ASSUMED)
        return spread.timed([run.numbers(regime) for run in runs])


# Used if nothing was measured in several processes, or not under the same conditions.
NO_FLOORS = Floors({}, {}, {}, {}, 1)


def same_code(key: Key, runs: Sequence[Campaign], regime: str = REST) -> list[Measured]:
    """Returns the measurements of a case in a regime with the source, GPU, driver and clocks of the last of them."""
    measured = [run.cases[key] for run in runs if key in run.cases and run.cases[key].numbers(regime)]
    return [m for m in measured if (m.source, m.conditions) == (measured[-1].source, measured[-1].conditions)]


def measure_floors(runs: Sequence[Campaign]) -> Floors | None:
    """Estimates the floors from runs of the same code; None if no case ran in two processes."""
    keys = list(dict.fromkeys(key for run in runs for key in run.cases))
    measured = {(*key, regime): same_code(key, runs, regime) for regime in REGIMES for key in keys}
    times = {key: [m.numbers(key[3]) for m in runs_of_case] for key, runs_of_case in measured.items()}
    times = {key: times_us for key, times_us in times.items() if sum(map(len, times_us)) > 1}
    if not times:
        return None
    conditions = measured[next(reversed(times))][-1].conditions
    times = {key: times_us for key, times_us in times.items() if measured[key][-1].conditions == conditions}
    spreads: dict[CaseKey, Spread] = {}
    typical: dict[str, Spread] = {}
    for regime in REGIMES:
        if estimate := noise.estimate({key: runs for key, runs in times.items() if key[3] == regime}):
            spreads |= estimate[0]
            typical[regime] = estimate[1]
    gaps = {
        key: tuple(max(a, b) / min(a, b) - 1 for a, b in combinations(map(median, times_us), 2))
        for key, times_us in times.items()
    }
    return Floors(gaps, spreads, typical, conditions, max(sum(map(len, values)) for values in times.values()))


def with_times(campaign: Campaign, floors: Floors | None = None, own: bool = True) -> Campaign:
    """Returns the campaign with the time of each case and regime, for comparisons.

    A time pools the processes of the campaign and of its A/A rounds with the same sources. `floors` are those of other
    runs, used where the campaign and its rounds have none of their own: none of its cases ran in two processes, or
    under these conditions; or everywhere without `own`.
    """
    runs = (*campaign.rounds, campaign)
    candidates = [measure_floors(runs) if own else None, floors]
    cases = {}
    for key, measured in campaign.cases.items():
        fitting = [
            candidate for candidate in candidates if candidate and candidate.conditions == measured.conditions
        ]
        chosen = fitting[0] if fitting else NO_FLOORS
        times = {r: chosen.timed(key, same_code(key, runs, r), r) for r in REGIMES if measured.numbers(r)}
        cases[key] = replace(measured, times=times)
    return replace(campaign, cases=cases)


def table_rows(campaign: Campaign) -> Iterator[dict[str, Cell]]:
    """Yields the rows of the table `floors`, without the origin: one per measured case and regime.

    The floor holds between two campaigns with as many processes as this one. Nothing is known, and all of them are
    None, if the campaign and its A/A rounds ran no case in two processes.
    """
    floors = measure_floors((*campaign.rounds, campaign))
    for key, measured in campaign.cases.items():
        for regime in REGIMES:
            if processes := len(measured.numbers(regime)):
                row: dict[str, Cell] = dict(zip(("family", "variant", "case"), key, strict=True))
                row |= {"regime": regime, "processes": processes}
                row |= dict.fromkeys(("floor", "deviation", "freedom", "groups"))
                if floors:
                    timed = floors.timed(key, [measured], regime)
                    row |= {"floor": between(timed.noise, timed.noise).gap(), **asdict(timed.noise)}
                yield row
