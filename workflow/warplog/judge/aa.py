"""A/A: the same code in several processes, judged against itself. Whatever is FASTER or SLOWER here is false."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median_high
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.records import write_text
from warplog.judge.comparison import WORDS, Comparison, as_csv, compare, csv_of, markdown_table
from warplog.judge.floors import Floors, Spread, measure_floors
from warplog.judge.samples import CONDITIONS, load_rounds
from warplog.judge.verdicts import LEAST_EFFECT

CLAIMS = ("FASTER", "SLOWER")


@dataclass(frozen=True)
class SelfCheck:
    """Every round against every later one: with the floor that they give, and with 0.5 % alone."""

    rounds: int
    judged: tuple[Comparison, ...]
    bare: tuple[Comparison, ...]
    floors: Floors

    def counts(self, judged: Sequence[Comparison]) -> dict[str, int]:
        """How many rows there are of each verdict."""
        words = [row.word for one in judged for row in one.rows]
        return {word: words.count(word) for word in WORDS}

    def false_share(self, judged: Sequence[Comparison]) -> float:
        """FASTER and SLOWER among all that could be compared."""
        counts = self.counts(judged)
        compared = sum(counts.values()) - counts["REFUSED"]
        return sum(counts[word] for word in CLAIMS) / compared if compared else 0.0

    def floor_rows(self) -> list[Mapping[str, Any]]:
        """The floor of each case: the gaps that were seen, and the gap that counts from now on; relative."""
        rows: list[Mapping[str, Any]] = []
        for key, gaps in self.floors.gaps.items():
            row: dict[str, Any] = dict(zip(("family", "variant", "case"), key, strict=True))
            row |= {"median_gap": median_high(gaps), "worst_gap": max(gaps)}
            row |= {"floor": self.floors.gap(key), "floor_with_rounds": self.floors.gap(key, self.rounds)}
            rows.append(row | {"freedom": self.floors.spreads[key].freedom})
        return rows

    def summary(self) -> str:
        """The counts, the false share, and the floor to use; three lines."""
        rows = self.floor_rows()
        floors, worst = sorted(row["floor"] for row in rows), max(rows, key=lambda row: float(row["floor"]))
        false, bare = (self.false_share(judged) for judged in (self.judged, self.bare))
        pairs = self.rounds * (self.rounds - 1) // 2
        gpu, driver, clocks = (self.floors.conditions[name] for name in CONDITIONS)
        return (
            f"A/A of {self.rounds} rounds ({pairs} pairs), {len(rows)} cases: {gpu}, driver {driver}, clocks {clocks}\n"
            f"false FASTER or SLOWER: {100 * false:.2f} %; {100 * bare:.2f} % if 0.5 % alone counted\n"
            f"floor to use: {100 * median_high(floors):.2f} % typically, {100 * floors[-1]:.2f} % at worst"
            f" ({worst['family']}/{worst['variant']}, {worst['case']}); `compare` takes it case by case"
        )


def judge_rounds(folder: Path, gpu: str) -> SelfCheck:
    """Judges the A/A rounds of a results folder.

    Raises:
        WarplogError: there are none, or no case was timed in two of them.
    """
    rounds = load_rounds(folder, gpu)
    floors = measure_floors(rounds)
    if floors is None:
        raise WarplogError(
            f"{folder}/aa: {len(rounds)} rounds with timings of {gpu}; run `snakemake aa` on a machine with that GPU"
        )
    nothing = Floors({}, {}, Spread(0.0, 1.0), floors.conditions, 1)
    pairs = list(combinations(rounds, 2))
    judged = tuple(compare(a, b, floors) for a, b in pairs)
    bare = tuple(compare(a, b, nothing, LEAST_EFFECT) for a, b in pairs)
    return SelfCheck(len(rounds), judged, bare, floors)


def write(found: SelfCheck, verdicts: Path, floors: Path, summary: Path) -> None:
    """Writes all verdicts and all floors as CSV, and what they come to as Markdown."""
    write_text(verdicts, as_csv(*found.judged))
    write_text(floors, csv_of(found.floor_rows()))
    first, *rest = found.summary().splitlines()
    kinds = {"the floor below": found.judged, "0.5 % alone": found.bare}
    counted = [
        {"gap that counts": kind, **found.counts(judged), "false": f"{100 * found.false_share(judged):.2f} %"}
        for kind, judged in kinds.items()
    ]
    shares = [{name: _shown(name, value) for name, value in row.items()} for row in found.floor_rows()]
    remark = "Floor and verdicts come from the same rounds: the first row says that they fit, not more."
    parts = [f"# {first}", *rest, markdown_table(counted), remark, markdown_table(shares)]
    write_text(summary, "\n\n".join(parts) + "\n")


def _shown(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.1f}" if name == "freedom" else f"{100 * value:.2f} %"
