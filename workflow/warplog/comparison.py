"""Two campaigns, case by case, as verdicts on time and on counters."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_high

from warplog import compared_campaigns, verdicts
from warplog.campaign_samples import CONDITIONS, Campaign, Key, Measured, load_rounds
from warplog.compared_campaigns import PARENTS, Sources
from warplog.floors import ASSUMED, Floors, measure_floors, same_code
from warplog.layout import RESULTS
from warplog.verdicts import Samples, Verdict

WORDS = ("SLOWER", "FASTER", "SAME", "AMBIGUOUS", "REFUSED")
# Relative changes of counters that runs of the same code show at most, and counts too small to matter.
TOLERANCES: Mapping[str, float] = {
    "instructions_executed": 0.01,
    "dram_bytes": 0.05,
    "l2_bytes": 0.02,
    "shared_wavefronts": 0.01,
    "registers_per_thread": 0.0,
}
_SMALL: Mapping[str, float] = {"dram_bytes": 1e6, "l2_bytes": 1e6}


@dataclass(frozen=True)
class Change:
    """A counter that differs by more than its tolerance; `ratio` is after over before, infinite from zero."""

    counter: str
    before: float
    after: float
    ratio: float


@dataclass(frozen=True)
class Row:
    """One case of one variant, B against A.

    `word` is the verdict on time, or REFUSED where the two cannot be compared. `counters` is MORE, LESS, MIXED,
    SAME, or "" where a side has none of them; `changes` are those beyond the tolerance.
    """

    family: str
    variant: str
    case: str
    word: str
    reason: str
    remarks: tuple[str, ...]
    verdict: Verdict | None
    counters: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Comparison:
    """B against A: the names of both, B's GPU, a row for each case, and the A/A floors where there are any."""

    a: str
    b: str
    gpu: str
    rows: tuple[Row, ...]
    floors: Floors | None

    @property
    def status(self) -> int:
        """1 where a case is SLOWER, in cycles too, or where nothing could be compared; else 0."""
        return 1 if self.confirmed or all(row.word == "REFUSED" for row in self.rows) else 0

    @property
    def confirmed(self) -> int:
        """How many cases are SLOWER in time and in cycles."""
        slower = [row.verdict for row in self.rows if row.word == "SLOWER"]
        return sum(1 for verdict in slower if verdict and verdict.confirmed)

    def summary(self) -> str:
        """How many rows there are of each verdict, and what the least gap rests on; two lines."""
        counts = {word: sum(row.word == word for row in self.rows) for word in WORDS}
        told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        words = f"{self.b} against {self.a}: {told or 'no cases'}; {self.confirmed} confirmed SLOWER"
        gaps = [100 * row.verdict.least for row in self.rows if row.verdict] or [0.0]
        span = f"{min(gaps):.2f} to {max(gaps):.2f} %, typically {median_high(gaps):.2f} %"
        if self.floors is None:
            drift = f"a drift of {100 * math.sqrt(ASSUMED.variance):g} % between processes is assumed"
            return f"{words}\nleast gap {span}: {drift}; `snakemake aa` measures it"
        return f"{words}\nleast gap {span}: from up to {self.floors.processes} processes of the same code"


def compare(
    a: Campaign, b: Campaign, floors: Floors | None = None, least: float = verdicts.LEAST_EFFECT
) -> Comparison:
    """Every case of either campaign, in the order of A.

    The A/A rounds of a campaign are further processes of its code where the sources are the same: their samples
    are pooled, and the floor falls with their number.
    """
    keys = list(dict.fromkeys((*a.cases, *b.cases)))
    refused = {key: _why_not(key, a, b) for key in keys}
    good = [key for key in keys if not refused[key]]
    sides = {key: [_processes(key, campaign) for campaign in (a, b)] for key in good}
    pairs = [(verdicts.pooled(first), verdicts.pooled(second)) for first, second in sides.values()]
    gaps = [_least(key, a, floors, [len(side) for side in sides[key]], least) for key in good]
    judged = dict(zip(good, verdicts.judge(pairs, gaps), strict=True))
    rows = []
    for key in keys:
        verdict = judged.get(key)
        if verdict is None:
            rows.append(Row(*key, "REFUSED", refused[key], (), None, "", ()))
            continue
        word, changes = counted(a.cases[key].counters, b.cases[key].counters)
        remarks = _remarks(a.cases[key], b.cases[key])
        rows.append(Row(*key, verdict.word, verdict.reason, remarks, verdict, word, changes))
    gpu = next((measured.conditions["gpu_name"] for measured in b.cases.values()), "no GPU")
    return Comparison(a.name, b.name, gpu, tuple(rows), floors)


def counted(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, tuple[Change, ...]]:
    """The verdict on counters and those that changed: MORE, LESS, MIXED, SAME, or "" without a common one."""
    changes = []
    common = [name for name in TOLERANCES if name in before and name in after]
    for name in common:
        old, new = before[name], after[name]
        if abs(new - old) > TOLERANCES[name] * abs(old) and max(old, new) > _SMALL.get(name, 0.0):
            changes.append(Change(name, old, new, new / old if old else math.inf))
    signs = {change.after > change.before for change in changes}
    word = "MIXED" if len(signs) > 1 else "MORE" if True in signs else "LESS" if signs else "SAME"
    return (word if common else ""), tuple(changes)


def run(
    names: Sequence[str],
    sources: Sources,
    least: float = verdicts.LEAST_EFFECT,
    above: Mapping[tuple[str, str], str] | None = None,
) -> Comparison:
    """The comparison of campaigns given by name: A, B, then further runs of A's code.

    Where A is `parents`, every variant of B is compared with its parent in B, by `above`.

    Raises:
        WarplogError: a campaign is not there or not readable.
    """
    second = sources.load(names[1])
    first = second if names[0] == PARENTS else sources.load(names[0])
    again = tuple(sources.load(name) for name in names[2:])
    first = replace(first, rounds=(*first.rounds, *again))
    floors = floors_of(first, second, sources)
    if names[0] == PARENTS:
        first = compared_campaigns.parents(first, above or {})
        second = replace(second, cases={k: m for k, m in second.cases.items() if k in first.cases})
    return compare(first, second, floors, least)


def floors_of(a: Campaign, b: Campaign, sources: Sources) -> Floors | None:
    """The A/A floors: those of A, else of B, else of the project's own A/A, where GPU, driver and clocks agree."""
    conditions = [measured.conditions for measured in a.cases.values()]
    slugs = sorted(
        {path.parents[1].name for path in sources.project.glob(f"{RESULTS}/aa/round*/time/*/*/*.json")}
    )
    own = [load_rounds(sources.project / RESULTS, gpu) for gpu in slugs]
    for runs in ((a, *a.rounds), (b, *b.rounds), *own):
        floors = measure_floors(runs)
        if floors is not None and floors.conditions in conditions:
            return floors
    return None


def _why_not(key: Key, a: Campaign, b: Campaign) -> str:
    """Why the two sides of a case cannot be compared; "" where they can."""
    for side, campaign in (("A", a), ("B", b)):
        if key not in campaign.cases:
            why = campaign.failed.get(key[:2], "")
            return f"{side}: {why}" if why else f"not measured in {side}"
    first, second = a.cases[key], b.cases[key]
    for side, measured in (("A", first), ("B", second)):
        if measured.status != "ok":
            return f"{side}: {measured.status}: {measured.reason}".rstrip(": ")
    for name in CONDITIONS:
        before, after = first.conditions[name], second.conditions[name]
        if before != after or "unknown" in (before, after):
            return f"{name.removesuffix('_name')} differs or is unknown: {before} and {after}"
    return ""


def _remarks(a: Measured, b: Measured) -> tuple[str, ...]:
    told = []
    for name, before in a.remarks.items():
        after = b.remarks.get(name, "")
        if name == "throttle":
            told += [f"{side} throttled: {why}" for side, why in (("A", before), ("B", after)) if why]
        elif before != after:
            told.append(
                "another board of this model" if name == "gpu_uuid" else f"{name} {before} to {after}"
            )
    return tuple(told)


def _processes(key: Key, campaign: Campaign) -> list[Samples]:
    return [m.samples for m in same_code(key, (*campaign.rounds, campaign)) if m.samples]


def _least(key: Key, a: Campaign, floors: Floors | None, processes: Sequence[int], least: float) -> float:
    first, second = processes
    if floors is None or floors.conditions != a.cases[key].conditions:
        return max(least, ASSUMED.gap(first, second))
    return floors.gap(key, first, second, least)
