"""A/A comparison: the same code in several processes, so that every FASTER or SLOWER is a false one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median, median_high
from typing import Any

from warplog.core.csv_text import csv_of_rows
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.paths import command
from warplog.core.text import Table, markdown_table
from warplog.judge.comparison import WORDS, Comparison, as_csv, compare
from warplog.judge.floors import Floors, Spread, measure_floors, same_code
from warplog.judge.samples import CONDITIONS, REGIMES, Campaign, load_rounds

CLAIMS = ("FASTER", "SLOWER")
LONG_US = 10  # floors of shorter kernels are those of the clock that times them
_NO_GAPS = {"median_gap": math.nan, "worst_gap": math.nan}


@dataclass(frozen=True)
class SelfCheck:
    """The rounds, and each pair of them compared, with the measured floor (`judged`) and with 0.5 % only (`bare`)."""

    measured: tuple[Campaign, ...]
    judged: tuple[Comparison, ...]
    bare: tuple[Comparison, ...]
    floors: Floors

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.measured)

    @property
    def regimes(self) -> tuple[str, ...]:
        """The regimes in which the rounds measured."""
        return tuple(self.floors.typical)

    def counts(self, judged: Sequence[Comparison], regime: str) -> dict[str, int]:
        """Returns the number of rows of a regime per verdict."""
        words = [row.word for one in judged for row in one.rows if row.regime == regime]
        return {word: words.count(word) for word in WORDS}

    def false_share(self, judged: Sequence[Comparison], regime: str) -> float:
        """Returns the share of FASTER and SLOWER among all rows of a regime that were compared."""
        counts = self.counts(judged, regime)
        compared = sum(counts.values()) - counts["REFUSED"]
        return sum(counts[word] for word in CLAIMS) / compared if compared else 0.0

    def floor_rows(self) -> list[Mapping[str, Any]]:
        """Returns one row per case and regime: the observed gaps and the resulting floor, as relative gaps.

        `median_us` is the median of all processes; `floor` holds between two campaigns of `processes` processes, and
        `floor_with_rounds` if one of them also has these rounds.
        """
        rows: list[Mapping[str, Any]] = []
        for key, gaps in self.floors.gaps.items():
            case, regime = key[:3], key[3]
            runs = [found.numbers(regime) for found in same_code(case, self.measured, regime)]
            counts = [len(run) for run in runs]
            row: dict[str, Any] = dict(zip(("family", "variant", "case", "regime"), key, strict=True))
            row |= {"processes": counts[-1], "median_us": median(us for run in runs for us in run)}
            row |= {"median_gap": median_high(gaps), "worst_gap": max(gaps)} if gaps else _NO_GAPS
            row |= {"floor": self.floors.gap(case, regime, counts[-1:], counts[-1:])}
            row |= {"floor_with_rounds": self.floors.gap(case, regime, counts, counts[-1:])}
            noise = self.floors.noise(case, regime, counts[-1:], counts[-1:])
            rows.append(row | {"freedom": noise.freedom})
        return rows

    def summary(self) -> str:
        """Returns the rounds, and per regime the share of false verdicts and the floors to use, one line each."""
        pairs = self.rounds * (self.rounds - 1) // 2
        gpu, driver, clocks = (self.floors.conditions[name] for name in CONDITIONS)
        rows = self.floor_rows()
        cases = len({(row["family"], row["variant"], row["case"]) for row in rows})
        lines = [
            f"A/A of {self.rounds} rounds ({pairs} pairs), {cases} cases: {gpu}, driver {driver}, clocks {clocks}"
        ]
        for regime in self.regimes:
            false, bare = (100 * self.false_share(judged, regime) for judged in (self.judged, self.bare))
            lines.append(
                f"false FASTER or SLOWER, {regime}: {false:.2f} % with the floor, {bare:.2f} % with 0.5 % for all"
            )
        lines += [_floors_to_use([row for row in rows if row["regime"] == r], r) for r in self.regimes]
        return "\n".join(lines)


def _floors_to_use(rows: Sequence[Mapping[str, Any]], regime: str) -> str:
    floors, worst = sorted(row["floor"] for row in rows), max(rows, key=lambda row: float(row["floor"]))
    where = f"{worst['family']}/{worst['variant']}, {worst['case']}"
    middle, most = 100 * median_high(floors), 100 * floors[-1]
    text = f"floor to use: {regime} {middle:.2f} % (median), {most:.2f} % at most ({where})"
    long = [row["floor"] for row in rows if row["median_us"] > LONG_US]
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
    no_floor = Floors({}, {}, dict.fromkeys(REGIMES, Spread(0.0, 1.0)), floors.conditions, 1)
    pairs = list(combinations(rounds, 2))
    judged = tuple(compare(a, b, floors) for a, b in pairs)
    bare = tuple(compare(a, b, no_floor) for a, b in pairs)
    return SelfCheck(rounds, judged, bare, floors)


def write(found: SelfCheck, verdicts: Path, floors: Path, summary: Path) -> None:
    """Writes all verdicts and all floors as CSV, and a summary as Markdown."""
    write_text(verdicts, as_csv(*found.judged))
    write_text(floors, csv_of_rows(found.floor_rows()))
    first, *rest = found.summary().splitlines()
    kinds = {"floor of each case (below)": found.judged, "0.5 % for all cases": found.bare}
    counted = [
        {"regime": regime, "least gap": kind, **found.counts(judged, regime)}
        | {"false": f"{100 * found.false_share(judged, regime):.2f} %"}
        for regime in found.regimes
        for kind, judged in kinds.items()
    ]
    shares = [{name: _shown(name, value) for name, value in row.items()} for row in found.floor_rows()]
    remark = (
        "The floors were estimated from the same rounds that they are applied to here, so the first row of a regime"
        " only shows that the estimate is consistent."
    )
    parts = [f"# {first}", *rest, _table(counted, 2), remark, _table(shares, 4)]
    write_text(summary, "\n\n".join(parts) + "\n")


def _table(rows: Sequence[Mapping[str, object]], labels: int) -> str:
    """Returns rows with the same keys as a Markdown table; columns after the first `labels` are numeric."""
    cells = tuple(tuple(map(str, row.values())) for row in rows)
    return "\n".join(markdown_table(Table(tuple(rows[0]), cells, frozenset(range(labels, len(rows[0]))))))


def _shown(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    formats = {"freedom": "{:.1f}", "median_us": "{:.5g}"}
    return formats[name].format(value) if name in formats else f"{100 * value:.2f} %"
