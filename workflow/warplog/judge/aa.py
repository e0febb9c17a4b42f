"""A/A comparison: the same code in several processes, so that every FASTER or SLOWER is a false one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median_high
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.text import Table, markdown_table
from warplog.judge.comparison import WORDS, Comparison, as_csv, compare, csv_of
from warplog.judge.floors import Floors, Spread, measure_floors
from warplog.judge.samples import CONDITIONS, load_rounds
from warplog.judge.verdicts import LEAST_EFFECT

CLAIMS = ("FASTER", "SLOWER")


@dataclass(frozen=True)
class SelfCheck:
    """Each pair of rounds compared, with the measured floor (`judged`) and with 0.5 % only (`bare`)."""

    rounds: int
    judged: tuple[Comparison, ...]
    bare: tuple[Comparison, ...]
    floors: Floors

    def counts(self, judged: Sequence[Comparison]) -> dict[str, int]:
        """Returns the number of rows per verdict."""
        words = [row.word for one in judged for row in one.rows]
        return {word: words.count(word) for word in WORDS}

    def false_share(self, judged: Sequence[Comparison]) -> float:
        """Returns the share of FASTER and SLOWER among all rows that were compared."""
        counts = self.counts(judged)
        compared = sum(counts.values()) - counts["REFUSED"]
        return sum(counts[word] for word in CLAIMS) / compared if compared else 0.0

    def floor_rows(self) -> list[Mapping[str, Any]]:
        """Returns one row per case: the observed gaps and the resulting floor, as relative gaps."""
        rows: list[Mapping[str, Any]] = []
        for key, gaps in self.floors.gaps.items():
            row: dict[str, Any] = dict(zip(("family", "variant", "case"), key, strict=True))
            row |= {"median_gap": median_high(gaps), "worst_gap": max(gaps)}
            row |= {"floor": self.floors.gap(key), "floor_with_rounds": self.floors.gap(key, self.rounds)}
            rows.append(row | {"freedom": self.floors.spreads[key].freedom})
        return rows

    def summary(self) -> str:
        """Returns three lines: the rounds, the share of false verdicts, and the floor to use."""
        rows = self.floor_rows()
        floors, worst = sorted(row["floor"] for row in rows), max(rows, key=lambda row: float(row["floor"]))
        false, bare = (self.false_share(judged) for judged in (self.judged, self.bare))
        pairs = self.rounds * (self.rounds - 1) // 2
        gpu, driver, clocks = (self.floors.conditions[name] for name in CONDITIONS)
        return (
            f"A/A of {self.rounds} rounds ({pairs} pairs), {len(rows)} cases: {gpu}, driver {driver}, clocks {clocks}\n"
            f"false FASTER or SLOWER: {100 * false:.2f} % with the floor, {100 * bare:.2f} % with 0.5 % for all\n"
            f"floor to use: {100 * median_high(floors):.2f} % (median), {100 * floors[-1]:.2f} % at most"
            f" ({worst['family']}/{worst['variant']}, {worst['case']}); `compare` applies it case by case"
        )


def judge_rounds(folder: Path, gpu: str) -> SelfCheck:
    """Compares the A/A rounds in a results folder with each other.

    Raises:
        WarplogError: there are no rounds, or no case was timed in two of them.
    """
    rounds = load_rounds(folder, gpu)
    floors = measure_floors(rounds)
    if floors is None:
        raise WarplogError(
            f"{folder}/aa: {len(rounds)} rounds with timings of {gpu}; run `snakemake aa` on a machine with that GPU"
        )
    no_floor = Floors({}, {}, Spread(0.0, 1.0), floors.conditions, 1)
    pairs = list(combinations(rounds, 2))
    judged = tuple(compare(a, b, floors) for a, b in pairs)
    bare = tuple(compare(a, b, no_floor, LEAST_EFFECT) for a, b in pairs)
    return SelfCheck(len(rounds), judged, bare, floors)


def write(found: SelfCheck, verdicts: Path, floors: Path, summary: Path) -> None:
    """Writes all verdicts and all floors as CSV, and a summary as Markdown."""
    write_text(verdicts, as_csv(*found.judged))
    write_text(floors, csv_of(found.floor_rows()))
    first, *rest = found.summary().splitlines()
    kinds = {"floor of each case (below)": found.judged, "0.5 % for all cases": found.bare}
    counted = [
        {"least gap": kind, **found.counts(judged), "false": f"{100 * found.false_share(judged):.2f} %"}
        for kind, judged in kinds.items()
    ]
    shares = [{name: _shown(name, value) for name, value in row.items()} for row in found.floor_rows()]
    remark = (
        "The floors were estimated from the same rounds that they are applied to here, so the first row only shows"
        " that the estimate is consistent."
    )
    parts = [f"# {first}", *rest, _table(counted, 1), remark, _table(shares, 3)]
    write_text(summary, "\n\n".join(parts) + "\n")


def _table(rows: Sequence[Mapping[str, object]], labels: int) -> str:
    """Returns rows with the same keys as a Markdown table; columns after the first `labels` are numeric."""
    cells = tuple(tuple(map(str, row.values())) for row in rows)
    return "\n".join(markdown_table(Table(tuple(rows[0]), cells, frozenset(range(labels, len(rows[0]))))))


def _shown(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1f}" if name == "freedom" else f"{100 * value:.2f} %"
