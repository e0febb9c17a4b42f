"""Compare two campaigns case by case; print the result as text, JSON, CSV or Markdown."""

import json
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import median_high
from typing import Any, TextIO

from warplog.core.csv_text import csv_of_rows
from warplog.core.text import Table, escape_markdown, join_notes, markdown_table, printable, visible
from warplog.judge import sources as compared_campaigns
from warplog.judge import verdicts
from warplog.judge.floors import ASSUMED, Floors, measure_floors, same_code
from warplog.judge.samples import CONDITIONS, REGIMES, REST, SUSTAINED, Campaign, Key, Measured, load_rounds
from warplog.judge.sources import PARENTS, Sources
from warplog.judge.verdicts import Noise, Verdict, percent

WORDS = ("SLOWER", "FASTER", "SAME", "AMBIGUOUS", "REFUSED")
# Largest relative change of each counter between runs of the same code, and values too small to matter.
TOLERANCES: Mapping[str, float] = {
    "instructions_executed": 0.01,
    "dram_bytes": 0.05,
    "l2_bytes": 0.02,
    "shared_wavefronts": 0.01,
    "registers_per_thread": 0.0,
}
_BOARD = "gpu_uuid"
_SMALL: Mapping[str, float] = {"dram_bytes": 1e6, "l2_bytes": 1e6}


@dataclass(frozen=True)
class Change:
    """A counter that changed by more than its tolerance; `ratio` is after / before, infinite if before is 0."""

    counter: str
    before: float
    after: float
    ratio: float


@dataclass(frozen=True)
class Row:
    """One case of one variant in one regime (rest or sustained), B against A.

    `word` is the verdict on time, or REFUSED if the two cannot be compared. `counters` is MORE, LESS, MIXED,
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
        """1 if a case is confirmed SLOWER, or if no case could be compared; else 0."""
        return 1 if self.confirmed or all(row.word == "REFUSED" for row in self.rows) else 0

    @property
    def confirmed(self) -> int:
        """The number of cases that are SLOWER in time and in cycles, on the same board."""
        slower = [row for row in self.rows if row.word == "SLOWER" and _key(row) not in self.moved]
        return sum(1 for row in slower if row.verdict and row.verdict.confirmed)

    def summary(self) -> str:
        """Returns lines: the number of rows per verdict, the range and origin of the least gap, and the remarks."""
        counts = {word: sum(row.word == word for row in self.rows) for word in WORDS}
        listed = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        lines = [f"{self.b} against {self.a}: {listed or 'no cases'}; {self.confirmed} confirmed SLOWER"]
        if gaps := [100 * row.verdict.least for row in self.rows if row.verdict]:
            span = f"{min(gaps):.2f} to {max(gaps):.2f} % (median {median_high(gaps):.2f} %)"
            lines.append(f"least gap that counts: {span}, based on {self._origin()}")
        return "\n".join((*lines, *self.remarks))

    def _origin(self) -> str:
        if self.floors is None:
            drift = f"an assumed drift of {100 * math.sqrt(ASSUMED.variance):g} % between processes"
            return f"{drift}; campaigns of several processes, or `snakemake aa`, measure it"
        return f"up to {self.floors.processes} processes of the same code"


def compare(
    a: Campaign, b: Campaign, floors: Floors | None = None, least: float = verdicts.LEAST_EFFECT
) -> Comparison:
    """Compares every case of either campaign at rest, in the order of A, then those that either measured sustained.

    Cases that are unsupported in both are left out, since there was nothing to measure.

    The A/A rounds of a campaign with the same sources count as further processes of its code, so that the floor falls
    with their number.
    """
    keys = [key for key in dict.fromkeys((*a.cases, *b.cases)) if not _is_unsupported(key, a, b)]
    rows: list[Row] = []
    for regime in REGIMES:
        listed = [key for key in keys if regime == REST or _is_sustained(key, a, b)]
        judged = _judged(listed, regime, a, b, floors, least)
        rows += [_row(key, regime, judged.get(key), a, b) for key in listed]
    gpu = next((measured.conditions["gpu_name"] for measured in b.cases.values()), "no GPU")
    compared = {_key(row) for row in rows if row.verdict}
    moved = frozenset(key for key in compared if _board(a, key) != _board(b, key))
    return Comparison(a.name, b.name, gpu, tuple(rows), floors, _remarks_on_boards(compared, moved), moved)


def _key(row: Row) -> Key:
    return row.family, row.variant, row.case


def _board(campaign: Campaign, key: Key) -> str | None:
    return campaign.cases[key].remarks.get(_BOARD)


def _is_unsupported(key: Key, a: Campaign, b: Campaign) -> bool:
    return all(key in one.cases and one.cases[key].status == "unsupported" for one in (a, b))


def _is_sustained(key: Key, a: Campaign, b: Campaign) -> bool:
    return any(key in one.cases and one.cases[key].sustained_us for one in (a, b))


def _judged(
    keys: Sequence[Key], regime: str, a: Campaign, b: Campaign, floors: Floors | None, least: float
) -> dict[Key, Verdict]:
    """Returns the verdicts of the cases that can be compared in a regime."""
    good = [key for key in keys if not _why_not(key, regime, a, b)]
    sides = {key: [same_code(key, (*one.rounds, one), regime) for one in (a, b)] for key in good}
    noises = [_noise(key, regime, sides[key], floors) for key in good]
    if regime == SUSTAINED:
        times = [tuple([t for m in side for t in m.sustained_us] for side in sides[key]) for key in good]
        found = verdicts.judge_sustained([(first, second) for first, second in times], noises, least)
    else:
        processes = [tuple([one for m in side for one in m.processes] for side in sides[key]) for key in good]
        found = verdicts.judge([(first, second) for first, second in processes], noises, least)
    return dict(zip(good, found, strict=True))


def _row(key: Key, regime: str, verdict: Verdict | None, a: Campaign, b: Campaign) -> Row:
    if verdict is None:
        return Row(*key, regime, "REFUSED", _why_not(key, regime, a, b), (), None, "", ())
    first, second = a.cases[key], b.cases[key]
    word, changes = counted(first.counters, second.counters) if regime == REST else ("", ())
    remarks = _remarks(first, second)
    return Row(*key, regime, verdict.word, verdict.reason, remarks, verdict, word, changes)


def counted(before: Mapping[str, float], after: Mapping[str, float]) -> tuple[str, tuple[Change, ...]]:
    """Returns the verdict on counters (MORE, LESS, MIXED, SAME; "" if none is common) and those that changed."""
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
    if names[0] == PARENTS:
        first = compared_campaigns.parents(first, above or {})
        second = replace(second, cases={k: m for k, m in second.cases.items() if k in first.cases})
    return compare(first, second, floors, least)


def floors_of(a: Campaign, b: Campaign, sources: Sources) -> Floors | None:
    """Returns the A/A floors of A, else of B, else of the project; GPU, driver and clocks must equal those of A."""
    conditions = [measured.conditions for measured in a.cases.values()]
    slugs = sorted({path.parent.name for path in sources.own_results.glob("aa/round*/time/*/*.json")})
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


def _noise(key: Key, regime: str, sides: Sequence[Sequence[Measured]], floors: Floors | None) -> Noise:
    first, second = ([len(measured.numbers(regime)) for measured in side] for side in sides)
    if floors is None or floors.conditions != sides[0][-1].conditions:
        return ASSUMED.noise(first, second)
    return floors.noise(key, regime, first, second)


_KEY = ("family", "variant", "case", "regime", "verdict")
_NUMBERS = ("A us", "time", "99 % interval", "least gap", "cycles", "p", "effect")
_WORDS = ("counters", "remarks")
_LEAST_WORDS = 24  # characters


def show(found: Comparison, out: TextIO, everything: bool = False) -> None:
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
    for row in folded(found.rows):
        if row.word == "SAME" and row.counters in ("", "SAME") and not everything:
            continue
        table.add_row(*(Text(visible(cell)) for cell in _cells(row)))
    terminal = getattr(out, "stream", out)
    console = Console(file=terminal, highlight=False, width=None if terminal.isatty() else 220)
    if table.row_count:
        console.print(table)
    print(found.summary(), file=out)


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


def as_json(found: Comparison) -> str:
    """Returns JSON: status (0 or 1), names, summary, claims as lines, all rows; an infinite ratio is null."""
    rows = [asdict(row) for row in found.rows]
    for row in rows:
        for change in row["changes"]:
            change["ratio"] = change["ratio"] if math.isfinite(change["ratio"]) else None
    about: dict[str, object] = {
        "status": found.status,
        "a": found.a,
        "b": found.b,
        "gpu": found.gpu,
        "summary": found.summary(),
    }
    about["remarks"] = list(found.remarks)
    about["claims"] = [_claim(row) for row in found.rows if row.word in ("SLOWER", "FASTER")]
    return json.dumps({**about, "rows": rows}, indent=1, allow_nan=False) + "\n"


def as_markdown(found: Comparison) -> str:
    """Returns a Markdown page: the summary, and a table of all rows that are not SAME."""
    first, *rest = map(escape_markdown, found.summary().splitlines())
    rows = tuple(tuple(_cells(row)) for row in folded(found.rows) if row.word != "SAME")
    numeric = frozenset(range(len(_KEY), len(_KEY) + len(_NUMBERS)))
    lines = (
        markdown_table(Table((*_KEY, *_NUMBERS, *_WORDS), rows, numeric)) if rows else ["All cases are SAME."]
    )
    return "\n\n".join([f"# {first}", *rest, "\n".join(lines)]) + "\n"


def as_csv(*found: Comparison) -> str:
    """Returns CSV with one row per case: the verdict and the numbers it is based on; ratios are B / A."""
    return csv_of_rows([{"a": one.a, "b": one.b, **_flat(row)} for one in found for row in one.rows])


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {
        "family": row.family,
        "variant": row.variant,
        "case": row.case,
        "regime": row.regime,
        "verdict": row.word,
    }
    verdict = row.verdict
    flat |= {"confirmed": bool(verdict and verdict.confirmed), "reason": row.reason}
    names = (
        "before_us",
        "ratio",
        "low",
        "high",
        "p",
        "least_gap",
        "samples_p",
        "effect",
        "cycles_ratio",
        "cycles_p",
    )
    flat |= dict.fromkeys(names)
    if verdict:
        time, cycles = verdict.time, verdict.cycles
        numbers = (verdict.before_us, time.ratio, time.low, time.high, verdict.p, verdict.least)
        flat |= dict(zip(names, numbers, strict=False))
        flat |= {"samples_p": verdict.p_samples, "effect": time.effect}
        flat |= {"cycles_ratio": cycles.ratio if cycles else None, "cycles_p": verdict.p_cycles}
    return flat | {
        "counters": row.counters,
        "changes": _changes(row),
        "remarks": join_notes(*row.remarks),
    }


def _cells(row: Row) -> list[str]:
    found, changes = row.verdict, _changes(row)
    last = [f"{row.counters}: {changes}" if changes else row.counters]
    last.append(join_notes(row.reason, *row.remarks))
    key = [row.family, row.variant, row.case, row.regime, row.word]
    numbers = [""] * len(_NUMBERS)
    if found is not None:
        low, high, effect = found.time.low, found.time.high, found.time.effect
        interval = "n/a" if effect is None else f"{percent(low)} to {percent(high)}"
        cycles = percent(found.cycles.ratio) if found.cycles else "n/a"
        gap = f"{100 * found.least:.2f} %"
        numbers = [f"{found.before_us:.5g}", percent(found.time.ratio), interval, gap, cycles]
        numbers += [f"{found.p:.1g}", "n/a" if effect is None else f"{effect:+.2f}"]
    return [printable(cell) for cell in (*key, *numbers, *last)]


def _claim(row: Row) -> str:
    change = percent(row.verdict.time.ratio) if row.verdict else ""
    regime = "" if row.regime == REST else f" {row.regime}"
    return printable(f"{row.word}  {row.family}/{row.variant}  {row.case}{regime}  {change}")


def _changes(row: Row) -> str:
    return ", ".join(f"{change.counter} {_change(change)}" for change in row.changes)


def _change(change: Change) -> str:
    return percent(change.ratio) if math.isfinite(change.ratio) else f"0 to {change.after:.4g}"
