"""A/A comparison: the same code in several processes, so that every FASTER or SLOWER is a false one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from statistics import median_high

from warplog.analysis.verdicts import between
from warplog.core.columns import Cell
from warplog.core.csv_text import csv_of_rows
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.paths import command
from warplog.core.text import Table, markdown_table
from warplog.judge.comparison import WORDS, Comparison, as_csv, compare
from warplog.judge.floors import Floors, measure_floors, same_code, with_times
from warplog.judge.samples import CONDITIONS, Campaign, load_rounds

CLAIMS = ("FASTER", "SLOWER")
LONG_US = 10  # floors of shorter kernels are those of the clock that times them


# Where the floors of a pair of rounds come from: each round's own processes, or the rounds that are not compared.
OWN, OTHERS = "own", "others"


@dataclass(frozen=True)
class FloorRow:
    """The gaps between the rounds at a case in a regime, and the floor that follows, as relative gaps.

    Attributes:
        median_us: the median of all processes.
        median_gap, worst_gap: as observed; NaN without a gap.
        floor: holds between two campaigns of `processes` processes.
        floor_with_rounds: holds if one of them also has these rounds.
    """

    family: str
    variant: str
    case: str
    regime: str
    processes: int
    median_us: float
    median_gap: float
    worst_gap: float
    floor: float
    floor_with_rounds: float
    freedom: float


@dataclass(frozen=True)
class SelfCheck:
    """The rounds, and each pair of them compared, by where its floors come from: OWN, and OTHERS from three rounds."""

    measured: tuple[Campaign, ...]
    compared: Mapping[str, tuple[Comparison, ...]]
    floors: Floors

    @property
    def regimes(self) -> tuple[str, ...]:
        """The regimes in which the rounds measured."""
        return tuple(self.floors.typical)

    def counts(self, origin: str, regime: str) -> dict[str, int]:
        """Returns the number of rows of a regime per verdict."""
        words = [
            row.word
            for comparison in self.compared[origin]
            for row in comparison.rows
            if row.regime == regime
        ]
        return {word: words.count(word) for word in WORDS}

    def false_share(self, origin: str, regime: str) -> float:
        """Returns the share of FASTER and SLOWER among all rows of a regime that were compared."""
        counts = self.counts(origin, regime)
        compared = sum(counts.values()) - counts["REFUSED"]
        return sum(counts[word] for word in CLAIMS) / compared if compared else 0.0

    def floor_rows(self) -> list[FloorRow]:
        """Returns one row per case and regime."""
        rows = []
        for key, gaps in self.floors.gaps.items():
            case, regime = key[:3], key[3]
            runs = same_code(case, self.measured, regime)
            single, all_of_them = (
                self.floors.timed(case, measured, regime) for measured in (runs[-1:], runs)
            )
            rows.append(
                FloorRow(
                    *key,
                    processes=len(runs[-1].numbers(regime)),
                    median_us=all_of_them.us,
                    median_gap=median_high(gaps) if gaps else math.nan,
                    worst_gap=max(gaps, default=math.nan),
                    floor=between(single.noise, single.noise).gap(),
                    floor_with_rounds=between(all_of_them.noise, single.noise).gap(),
                    freedom=single.noise.freedom,
                )
            )
        return rows

    def summary(self) -> str:
        """Returns the rounds, and per regime the share of false verdicts and the floors to use, one line each."""
        pairs = math.comb(len(self.measured), 2)
        gpu, driver, clocks = (self.floors.conditions[name] for name in CONDITIONS)
        rows = self.floor_rows()
        cases = len({(row.family, row.variant, row.case) for row in rows})
        count = f"A/A of {len(self.measured)} rounds ({pairs} pairs), {cases} cases"
        lines = [f"{count}: {gpu}, driver {driver}, clocks {clocks}"]
        for regime in self.regimes:
            shares = [f"{100 * self.false_share(o, regime):.2f} % with {_FLOORS[o]}" for o in self.compared]
            lines.append(f"false FASTER or SLOWER, {regime}: {', '.join(shares)}")
        lines += [_floors_to_use([row for row in rows if row.regime == r], r) for r in self.regimes]
        return "\n".join(lines)


_FLOORS = {OWN: "the floors of the two rounds themselves", OTHERS: "floors of the other rounds"}


def _floors_to_use(rows: Sequence[FloorRow], regime: str) -> str:
    floors, worst = sorted(row.floor for row in rows), max(rows, key=lambda row: row.floor)
    where = f"{worst.family}/{worst.variant}, {worst.case}"
    middle, most = 100 * median_high(floors), 100 * floors[-1]
    text = f"floor to use: {regime} {middle:.2f} % (median), {most:.2f} % at most ({where})"
    long = [row.floor for row in rows if row.median_us > LONG_US]
    if not long:
        return text
    return f"{text}; no floor above {100 * max(long):.2f} % for kernels over {LONG_US} us"


def judge_rounds(folder: Path, gpu: str) -> SelfCheck:
    """Compares the A/A rounds in a results folder with each other.

    Raises:
        WarplogError: there are no rounds, or no case was timed in two of them.
    """
    rounds = load_rounds(folder, gpu)
    floors = measure_floors(rounds)
    if floors is None:
        raise WarplogError(
            f"{folder}/aa: {len(rounds)} rounds with timings of {gpu}; run `{command('aa')}`"
            " on a machine with that GPU"
        )
    pairs = list(combinations(rounds, 2))
    compared = {OWN: tuple(compare(with_times(a), with_times(b)) for a, b in pairs)}
    if len(rounds) > 2:
        compared[OTHERS] = tuple(_by_others(pair, rounds) for pair in pairs)
    return SelfCheck(rounds, compared, floors)


def _by_others(pair: tuple[Campaign, Campaign], rounds: Sequence[Campaign]) -> Comparison:
    """Compares two rounds with the floors of the others."""
    others = measure_floors([other for other in rounds if other not in pair])
    a, b = (with_times(campaign, others, own=False) for campaign in pair)
    return compare(a, b, others)


def write(check: SelfCheck, verdicts: Path, floors: Path, summary: Path) -> None:
    """Writes all verdicts by the rounds' own floors and all floors as CSV, and a summary as Markdown."""
    write_text(verdicts, as_csv(*check.compared[OWN]))
    write_text(floors, csv_of_rows(list(map(asdict, check.floor_rows()))))
    first, *rest = check.summary().splitlines()
    counted = [
        {"regime": regime, "floors": _FLOORS[origin], **check.counts(origin, regime)}
        | {"false": f"{100 * check.false_share(origin, regime):.2f} %"}
        for regime in check.regimes
        for origin in check.compared
    ]
    shares = [
        {name: _shown(name, value) for name, value in asdict(row).items()} for row in check.floor_rows()
    ]
    parts = [f"# {first}", *rest, _table(counted, 2), _table(shares, 4)]
    write_text(summary, "\n\n".join(parts) + "\n")


def _table(rows: Sequence[Mapping[str, object]], labels: int) -> str:
    """Returns rows with the same keys as a Markdown table; columns after the first `labels` are numeric."""
    cells = tuple(tuple(map(str, row.values())) for row in rows)
    return "\n".join(markdown_table(Table(tuple(rows[0]), cells, frozenset(range(labels, len(rows[0]))))))


def _shown(name: str, value: Cell) -> str:
    if not isinstance(value, float):
        return str(value)
    formats = {"freedom": "{:.1f}", "median_us": "{:.5g}"}
    return formats[name].format(value) if name in formats else f"{100 * value:.2f} %"
