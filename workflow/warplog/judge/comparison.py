"""Compare two campaigns case by case; print the result as text, JSON, CSV or Markdown."""

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median_high
from typing import TextIO

from warplog.analysis.counters import Change, counted
from warplog.analysis.verdicts import ALPHA, FASTER, MARGIN, SLOWER, TWO_GROUPS, WIDE, Verdict, judge
from warplog.core.columns import Cell
from warplog.core.csv_text import csv_of_rows
from warplog.core.errors import WarplogError, say
from warplog.core.files import write_text
from warplog.core.numbers import signed_percent
from warplog.core.paths import command
from warplog.core.text import Table, escape_markdown, join_notes, markdown_table, printable, visible
from warplog.judge import campaigns
from warplog.judge.campaigns import PARENTS, Sources
from warplog.judge.floors import Floors, measure_floors, with_times
from warplog.judge.samples import CONDITIONS, REGIMES, REST, Campaign, Key, Measured, load_rounds
from warplog.records import door
from warplog.records.stages import ROUND

WORDS = ("SLOWER", "FASTER", "SAME", "AMBIGUOUS", "REFUSED")
# Whether FASTER or SLOWER at rest holds in SM cycles, too; with another clock, it is no property of the code.
IN_CYCLES, NOT_IN_CYCLES, NO_CLOCKS = "in_cycles", "not_in_cycles", "no_clocks"
_ALARM = 0.05  # probability that a command with no slower case fails
_BOARD, _TOOLCHAIN = "gpu_uuid", ("nvcc", "cuda_runtime")


@dataclass(frozen=True)
class Row:
    """One case of one variant in one regime (rest or sustained), B against A.

    `word` is the verdict on time, or REFUSED if the two cannot be compared, for the `reason`. `clock` is IN_CYCLES,
    NOT_IN_CYCLES or NO_CLOCKS for FASTER and SLOWER at rest, else "". `same_build` states that source and toolchain are
    equal, and `apart` that no process of one side is as fast as one of the other. `counters` is MORE, LESS, MIXED,
    SAME, or "" if A and B have no counter in common; `changes` lists the counters beyond their tolerance.
    """

    family: str
    variant: str
    case: str
    regime: str
    word: str
    reason: str
    remarks: tuple[str, ...]
    verdict: Verdict | None
    counters: str
    changes: tuple[Change, ...]
    clock: str = ""
    same_build: bool = False
    apart: bool = False


@dataclass(frozen=True)
class Comparison:
    """B against A: both names, B's GPU, one row per case and regime, and the floors (None if there are none).

    `remarks` hold for the whole comparison, and `moved` are the cases measured on another board in B than in A.
    """

    a: str
    b: str
    gpu: str
    rows: tuple[Row, ...]
    floors: Floors | None
    remarks: tuple[str, ...] = ()
    moved: frozenset[Key] = frozenset()

    @property
    def status(self) -> int:
        """1 if a case is an alarm, or if no case could be compared; else 0."""
        return 1 if self.alarms or all(row.word == "REFUSED" for row in self.rows) else 0

    @property
    def alarms(self) -> list[Row]:
        """The cases that are SLOWER beyond doubt: in time and in cycles, in every process, on the same board.

        The builds differ, and the same code would show that anywhere among the pairs whose builds differ with a
        probability of 0.05 (Bonferroni). A verdict does not depend on the number of pairs; this does.
        """
        pairs = [row for row in self.rows if row.verdict and not row.same_build]
        slower = [row for row in pairs if row.word == SLOWER and row.clock == IN_CYCLES and row.apart]
        least = _ALARM / max(len(pairs), 1)
        return [
            row for row in slower if row.verdict and row.verdict.p < least and _key(row) not in self.moved
        ]

    def summary(self) -> str:
        """Returns lines: the number of rows per verdict, how many chance explains, the floors, and the remarks."""
        counts = {word: sum(row.word == word for row in self.rows) for word in WORDS}
        listed = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        lines = [
            f"{self.b} against {self.a}: {listed or 'no cases'}; {len(self.alarms)} certain to be SLOWER"
        ]
        if floors := [100 * row.verdict.floor for row in self.rows if row.verdict]:
            lines.append(
                f"FASTER or SLOWER to be expected by chance: {ALPHA * len(floors):.1f} of {len(floors)}"
            )
            span = f"{min(floors):.2f} to {max(floors):.2f} % (median {median_high(floors):.2f} %)"
            lines.append(f"smallest gap that counts: {span}, based on {self._origin()}")
        return "\n".join((*lines, *self.remarks))

    def _origin(self) -> str:
        if self.floors is None:
            return f"an assumed spread between processes; several processes, or `{command('aa')}`, measure it"
        return f"up to {self.floors.processes} processes of the same code"


def compare(a: Campaign, b: Campaign, floors: Floors | None = None, margin: float = MARGIN) -> Comparison:
    """Compares every case of either campaign at rest, in the order of A, then those that either measured sustained.

    Both have the times that `with_times` adds; `floors` are only reported. Cases that are unsupported in both are left
    out, since there was nothing to measure.
    """
    rows: list[Row] = []
    pairs = {
        key: [campaign.cases.get(key) for campaign in (a, b)] for key in dict.fromkeys((*a.cases, *b.cases))
    }
    ran = {
        key: pair
        for key, pair in pairs.items()
        if any(measured is None or measured.status != "unsupported" for measured in pair)
    }
    for regime in REGIMES:
        listed = [
            key
            for key, pair in ran.items()
            if regime == REST or any(measured and measured.sustained_us for measured in pair)
        ]
        rows += [_row(key, regime, a, b, margin) for key in listed]
    gpu = next((measured.conditions["gpu_name"] for measured in b.cases.values()), "no GPU")
    compared = {_key(row) for row in rows if row.verdict}
    moved = frozenset(key for key in compared if _board(a, key) != _board(b, key))
    return Comparison(a.name, b.name, gpu, tuple(rows), floors, _remarks_on_boards(compared, moved), moved)


def _key(row: Row) -> Key:
    return row.family, row.variant, row.case


def _board(campaign: Campaign, key: Key) -> str | None:
    return campaign.cases[key].remarks.get(_BOARD)


def _row(key: Key, regime: str, a: Campaign, b: Campaign, margin: float) -> Row:
    if why := _why_not(key, regime, a, b):
        return Row(*key, regime, "REFUSED", why, (), None, "", ())
    first, second = a.cases[key], b.cases[key]
    verdict = judge(first.times[regime], second.times[regime], margin)
    word, changes = counted(first.counters, second.counters) if regime == REST else ("", ())
    clock = _clock(verdict, first.cycles, second.cycles) if regime == REST else ""
    toolchains = [tuple(side.remarks.get(name) for name in _TOOLCHAIN) for side in (first, second)]
    same_build = bool(first.source) and first.source == second.source and toolchains[0] == toolchains[1]
    before, after = first.numbers(regime), second.numbers(regime)
    apart = max(before) < min(after) or max(after) < min(before)
    remarks = _remarks(first, second)
    return Row(
        *key, regime, verdict.word, verdict.reason, remarks, verdict, word, changes, clock, same_build, apart
    )


def _clock(verdict: Verdict, before: float | None, after: float | None) -> str:
    """Returns whether FASTER or SLOWER holds in cycles, given those of both sides; "" for another word."""
    if verdict.word not in (FASTER, SLOWER):
        return ""
    if before is None or after is None:
        return NO_CLOCKS
    change = math.log(after / before) * (1 if verdict.word == SLOWER else -1)
    return IN_CYCLES if change > math.log1p(verdict.floor) else NOT_IN_CYCLES


def run(
    names: Sequence[str],
    sources: Sources,
    margin: float = MARGIN,
    above: Mapping[tuple[str, str], str] | None = None,
) -> Comparison:
    """Compares campaigns given by name: A, B, then further runs of A's code.

    If A is `parents`, every variant of B is compared with its parent in B; `above` maps variants to parents.

    Raises:
        WarplogError: a campaign is missing or not readable.
    """
    second = sources.load(names[1])
    first = second if names[0] == PARENTS else sources.load(names[0])
    again = tuple(sources.load(name) for name in names[2:])
    first = replace(first, rounds=(*first.rounds, *again))
    floors = floors_of(first, second, sources)
    first, second = with_times(first, floors), with_times(second, floors)
    if names[0] == PARENTS:
        first = campaigns.parents(first, above or {})
        second = replace(second, cases={k: m for k, m in second.cases.items() if k in first.cases})
    return compare(first, second, floors, margin)


def floors_of(a: Campaign, b: Campaign, sources: Sources) -> Floors | None:
    """Returns the A/A floors of A, else of B, else of the project; GPU, driver and clocks must equal those of A."""
    conditions = [measured.conditions for measured in a.cases.values()]
    slugs = sorted({path.parent.name for path in ROUND.files(sources.own_results)})
    of_project = [load_rounds(sources.own_results, gpu) for gpu in slugs]
    for runs in ((a, *a.rounds), (b, *b.rounds), *of_project):
        floors = measure_floors(runs)
        if floors is not None and floors.conditions in conditions:
            return floors
    return None


def _why_not(key: Key, regime: str, a: Campaign, b: Campaign) -> str:
    """Returns why a case cannot be compared between A and B in a regime; "" if it can."""
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
            return f"{name.removesuffix('_name')} differs or is unknown: A {before}, B {after}"
    lacking = [side for side, measured in (("A", first), ("B", second)) if not measured.numbers(regime)]
    return f"not measured in {' and '.join(lacking)}" if lacking else ""


def _remarks_on_boards(compared: Set[Key], moved: Set[Key]) -> tuple[str, ...]:
    if not moved:
        return ()
    where = "" if moved == compared else f" in {len(moved)} of {len(compared)} cases"
    return (
        f"A and B were measured on different boards of the same model{where}; boards differ by some percent, so that"
        " no SLOWER between them is confirmed",
    )


def _remarks(a: Measured, b: Measured) -> tuple[str, ...]:
    remarks = []
    for name, before in a.remarks.items():
        after = b.remarks.get(name, "")
        if name == "throttle":
            remarks += [f"{side} throttled: {why}" for side, why in (("A", before), ("B", after)) if why]
        elif name != _BOARD and before != after:
            remarks.append(f"{name}: A {before or 'unknown'}, B {after or 'unknown'}")
    return tuple(remarks)


_KEY = ("family", "variant", "case", "regime", "verdict")
_NUMBERS = ("A us", "time", "interval", "floor", "p")
_WORDS = ("counters", "remarks")
_LEAST_WORDS = 24  # characters


def show(comparison: Comparison, out: TextIO, everything: bool = False) -> None:
    """Prints a table of the rows that are not SAME, or of `everything`, followed by the summary."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as TerminalTable
    from rich.text import Text

    table = TerminalTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in _KEY:
        table.add_column(title, no_wrap=True)
    for title in _NUMBERS:
        table.add_column(title, justify="right", no_wrap=True)
    for title in _WORDS:
        table.add_column(title, overflow="fold", min_width=_LEAST_WORDS)
    for row in folded(comparison.rows):
        if row.word == "SAME" and row.counters in ("", "SAME") and not everything:
            continue
        table.add_row(*(Text(visible(cell)) for cell in _cells(row)))
    terminal = getattr(out, "stream", out)
    console = Console(file=terminal, highlight=False, width=None if terminal.isatty() else 220)
    if table.row_count:
        console.print(table)
    print(comparison.summary(), file=out)


def folded(rows: Sequence[Row]) -> list[Row]:
    """Returns the rows to print: one row for a family or variant whose cases were all refused for one reason."""
    lines: list[Row] = []
    for _, group in groupby(rows, lambda row: (row.regime, row.family)):
        family = list(group)
        variants = [list(cases) for _, cases in groupby(family, lambda row: row.variant)]
        if len(variants) > 1 and _is_one(family):
            lines.append(replace(family[0], variant=f"{len(variants)} variants", case=f"{len(family)} cases"))
            continue
        for cases in variants:
            lines += [replace(cases[0], case=f"{len(cases)} cases")] if _is_one(cases) else cases
    return lines


def _is_one(rows: Sequence[Row]) -> bool:
    """Returns whether several rows are all refused for the same reason, so that one row suffices."""
    refused = {row.word for row in rows} == {"REFUSED"}
    return refused and len(rows) > 1 and len({(row.reason, row.remarks) for row in rows}) == 1


def write(comparison: Comparison, json_file: Path, csv_file: Path, markdown: Path) -> None:
    """Writes the verdicts in three forms."""
    write_text(json_file, as_json(comparison))
    write_text(csv_file, as_csv(comparison))
    write_text(markdown, as_markdown(comparison))


def report(verdicts: Path) -> None:
    """Prints the verdicts of the JSON file that `write` wrote.

    Raises:
        WarplogError: there is a confirmed regression, or nothing to compare.
    """
    stored = door.read_json(verdicts)
    for line in (*(f"  {claim}" for claim in stored["claims"]), *stored["summary"].splitlines()):
        say(line)
    if stored["status"]:
        raise WarplogError(f"{verdicts.with_suffix('.md')}: a confirmed regression, or nothing to compare")


def as_json(comparison: Comparison) -> str:
    """Returns JSON: status (0 or 1), names, summary, claims as lines, all rows; an infinite ratio is null."""
    rows = [asdict(row) for row in comparison.rows]
    for row in rows:
        for change in row["changes"]:
            change["ratio"] = change["ratio"] if math.isfinite(change["ratio"]) else None
    about = {
        "status": comparison.status,
        "a": comparison.a,
        "b": comparison.b,
        "gpu": comparison.gpu,
        "summary": comparison.summary(),
        "remarks": list(comparison.remarks),
        "claims": [_claim(row) for row in comparison.rows if row.word in ("SLOWER", "FASTER")],
        "rows": rows,
    }
    return json.dumps(about, indent=1, allow_nan=False) + "\n"


def as_markdown(comparison: Comparison) -> str:
    """Returns a Markdown page: the summary, and a table of all rows that are not SAME."""
    first, *rest = map(escape_markdown, comparison.summary().splitlines())
    rows = tuple(tuple(_cells(row)) for row in folded(comparison.rows) if row.word != "SAME")
    numeric = frozenset(range(len(_KEY), len(_KEY) + len(_NUMBERS)))
    lines = (
        markdown_table(Table((*_KEY, *_NUMBERS, *_WORDS), rows, numeric)) if rows else ["All cases are SAME."]
    )
    return "\n\n".join([f"# {first}", *rest, "\n".join(lines)]) + "\n"


def as_csv(*comparisons: Comparison) -> str:
    """Returns CSV with one row per case: the verdict and the numbers it is based on; ratios are B / A."""
    return csv_of_rows(
        [
            {"a": comparison.a, "b": comparison.b, **_flat(row)}
            for comparison in comparisons
            for row in comparison.rows
        ]
    )


_FLAT = ("before_us", "ratio", "low", "high", "floor", "p")


def _flat(row: Row) -> dict[str, Cell]:
    flat: dict[str, Cell] = {name: getattr(row, name) for name in ("family", "variant", "case", "regime")}
    flat |= {"verdict": row.word, "reason": row.reason}
    flat |= {name: getattr(row.verdict, name) if row.verdict else None for name in _FLAT}
    flat |= {"clock": row.clock, "same_build": row.same_build, "apart": row.apart, "counters": row.counters}
    return flat | {"changes": _changes(row), "remarks": join_notes(*row.remarks)}


# What the codes of a row say where they are shown; WIDE is shown by the interval.
_SAYS = {
    WIDE: "",
    TWO_GROUPS: "the processes form two groups",
    NOT_IN_CYCLES: "not in cycles: the clock differed",
    NO_CLOCKS: "no clocks were recorded",
}


def _cells(row: Row) -> list[str]:
    verdict, changes = row.verdict, _changes(row)
    said = [
        _SAYS.get(row.reason, row.reason),
        _SAYS.get(row.clock, ""),
        "same build" if row.same_build else "",
    ]
    last = [f"{row.counters}: {changes}" if changes else row.counters, join_notes(*said, *row.remarks)]
    numbers = [""] * len(_NUMBERS)
    if verdict is not None:
        interval = f"{signed_percent(verdict.low)} to {signed_percent(verdict.high)}"
        numbers = [f"{verdict.before_us:.5g}", signed_percent(verdict.ratio), interval]
        numbers += [f"{100 * verdict.floor:.2f} %", f"{verdict.p:.1g}"]
    key = (row.family, row.variant, row.case, row.regime, row.word)
    return [printable(cell) for cell in (*key, *numbers, *last)]


def _claim(row: Row) -> str:
    change = signed_percent(row.verdict.ratio) if row.verdict else ""
    regime = "" if row.regime == REST else f" {row.regime}"
    return printable(f"{row.word}  {row.family}/{row.variant}  {row.case}{regime}  {change}")


def _changes(row: Row) -> str:
    return ", ".join(f"{change.counter} {_change(change)}" for change in row.changes)


def _change(change: Change) -> str:
    return signed_percent(change.ratio) if math.isfinite(change.ratio) else f"0 to {change.after:.4g}"
