"""Comparison of two campaigns, case by case, and its output as text, JSON, CSV and Markdown."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import median_high
from typing import Any, TextIO

from warplog.core import text as remarks
from warplog.core.paths import RESULTS
from warplog.core.text import printable
from warplog.judge import sources as compared_campaigns
from warplog.judge import verdicts
from warplog.judge.floors import ASSUMED, Floors, measure_floors, same_code
from warplog.judge.samples import CONDITIONS, Campaign, Key, Measured, load_rounds
from warplog.judge.sources import PARENTS, Sources
from warplog.judge.verdicts import Samples, Verdict, percent

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


_KEY = ("family", "variant", "case", "verdict")
_NUMBERS = ("A us", "time", "99 % interval", "least gap", "cycles", "p", "effect")
_WORDS = ("counters", "remarks")


def show(found: Comparison, out: TextIO) -> None:
    """The rows for people, and how many there are of each verdict."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in _KEY:
        table.add_column(title, no_wrap=True)
    for title in _NUMBERS:
        table.add_column(title, justify="right", no_wrap=True)
    for title in _WORDS:
        table.add_column(title, overflow="fold")
    for row in folded(found.rows):
        table.add_row(*(Text(cell) for cell in _cells(row)))
    console = Console(file=out, highlight=False, width=None if out.isatty() else 190)
    console.print(table)
    print(found.summary(), file=out)


def folded(rows: Sequence[Row]) -> list[Row]:
    """The rows for people: one for a family, or a variant, that was refused throughout for one reason."""
    lines: list[Row] = []
    for _, group in groupby(rows, lambda row: row.family):
        family = list(group)
        variants = [list(cases) for _, cases in groupby(family, lambda row: row.variant)]
        if len(variants) > 1 and _is_one(family):
            lines.append(replace(family[0], variant=f"{len(variants)} variants", case=f"{len(family)} cases"))
            continue
        for cases in variants:
            lines += [replace(cases[0], case=f"{len(cases)} cases")] if _is_one(cases) else cases
    return lines


def _is_one(rows: Sequence[Row]) -> bool:
    """Whether several rows say no more than one of them."""
    refused = {row.word for row in rows} == {"REFUSED"}
    return refused and len(rows) > 1 and len({(row.reason, row.remarks) for row in rows}) == 1


def as_json(found: Comparison) -> str:
    """For programs: status (0 or 1), names, summary, claims as lines, all rows; an infinite ratio is null."""
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
    about["claims"] = [_claim(row) for row in found.rows if row.word in ("SLOWER", "FASTER")]
    return json.dumps({**about, "rows": rows}, indent=1, allow_nan=False) + "\n"


def as_markdown(found: Comparison) -> str:
    """What is not SAME as a table, and the counts."""
    first, *rest = found.summary().splitlines()
    heads = (*_KEY, *_NUMBERS, *_WORDS)
    rows = [row for row in folded(found.rows) if row.word != "SAME"]
    told = [dict(zip(heads, _cells(row), strict=True)) for row in rows]
    shown = markdown_table(told, right=_NUMBERS) if told else "Every case is the SAME."
    return "\n\n".join([f"# {_plain(first)}", *map(_plain, rest), shown]) + "\n"


def markdown_table(rows: Sequence[Mapping[str, object]], right: Sequence[str] = ()) -> str:
    """Rows with the same keys as a Markdown table; the columns `right` are aligned there."""
    lines = [" | ".join(rows[0]), "|".join("--:" if name in right else "---" for name in rows[0])]
    lines += [" | ".join(_plain(str(value)) for value in row.values()) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def as_csv(*found: Comparison) -> str:
    """One row for each case: the verdict and the numbers that it rests on; ratios are B over A."""
    return csv_of([{"a": one.a, "b": one.b, **_flat(row)} for one in found for row in one.rows])


def csv_of(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows with the same keys as CSV; nothing without any."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(row: Row) -> dict[str, Any]:
    flat: dict[str, Any] = {
        "family": row.family,
        "variant": row.variant,
        "case": row.case,
        "verdict": row.word,
    }
    verdict = row.verdict
    flat |= {"confirmed": bool(verdict and verdict.confirmed), "reason": row.reason}
    names = ("before_us", "ratio", "low", "high", "p", "effect", "least_gap", "cycles_ratio", "cycles_p")
    flat |= dict.fromkeys(names)
    if verdict:
        time, cycles = verdict.time, verdict.cycles
        numbers = (verdict.before_us, time.ratio, time.low, time.high, verdict.p, time.effect, verdict.least)
        flat |= dict(zip(names, numbers, strict=False))
        flat |= {"cycles_ratio": cycles.ratio if cycles else None, "cycles_p": verdict.p_cycles}
    return flat | {
        "counters": row.counters,
        "changes": _changes(row),
        "remarks": remarks.join_notes(*row.remarks),
    }


def _cells(row: Row) -> list[str]:
    found, changes = row.verdict, _changes(row)
    last = [f"{row.counters}: {changes}" if changes else row.counters]
    last.append(remarks.join_notes(row.reason, *row.remarks))
    key = [row.family, row.variant, row.case, row.word]
    numbers = [""] * len(_NUMBERS)
    if found is not None:
        interval = f"{percent(found.time.low)} to {percent(found.time.high)}"
        cycles = percent(found.cycles.ratio) if found.cycles else "n/a"
        gap = f"{100 * found.least:.2f} %"
        numbers = [f"{found.before_us:.5g}", percent(found.time.ratio), interval, gap, cycles]
        numbers += [f"{found.p:.1g}", f"{found.time.effect:+.2f}"]
    return [printable(cell) for cell in (*key, *numbers, *last)]


def _claim(row: Row) -> str:
    change = percent(row.verdict.time.ratio) if row.verdict else ""
    return printable(f"{row.word}  {row.family}/{row.variant}  {row.case}  {change}")


def _changes(row: Row) -> str:
    return ", ".join(f"{change.counter} {_change(change)}" for change in row.changes)


def _change(change: Change) -> str:
    return percent(change.ratio) if math.isfinite(change.ratio) else f"0 to {change.after:.4g}"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("`", "\\`")
