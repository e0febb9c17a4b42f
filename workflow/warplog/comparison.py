"""`warplog compare`: two campaigns, case by case, as verdicts on time and on counters."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from warplog import verdicts
from warplog.campaign_samples import CONDITIONS, Campaign, Key, Measured, load, root
from warplog.verdicts import Verdict

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


def compare(
    a: Campaign, b: Campaign, repeats: Sequence[Campaign] = (), least: float = verdicts.LEAST_EFFECT
) -> list[Row]:
    """Every case of either campaign, in the order of A; `repeats` are other runs of A's code."""
    keys = list(dict.fromkeys((*a.cases, *b.cases)))
    refused = {key: _why_not(key, a, b) for key in keys}
    good = [key for key in keys if not refused[key]]
    pairs = [(sa, sb) for k in good if (sa := a.cases[k].samples) and (sb := b.cases[k].samples)]
    floors = [_floor(key, a, repeats, least) for key in good]
    judged = dict(zip(good, verdicts.judge(pairs, floors), strict=True))
    rows = []
    for key in keys:
        verdict = judged.get(key)
        if verdict is None:
            rows.append(Row(*key, "REFUSED", refused[key], (), None, "", ()))
            continue
        word, changes = counted(a.cases[key].counters, b.cases[key].counters)
        remarks = _remarks(a.cases[key], b.cases[key])
        rows.append(Row(*key, verdict.word, verdict.reason, remarks, verdict, word, changes))
    return rows


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


def exit_status(rows: Sequence[Row]) -> int:
    """1 where a case is SLOWER, in cycles too, or where nothing could be compared; else 0."""
    slower = any(row.word == "SLOWER" and row.verdict and row.verdict.confirmed for row in rows)
    return 1 if slower or all(row.word == "REFUSED" for row in rows) else 0


def run(names: Sequence[str], project: Path, gpu: str, least: float) -> list[Row]:
    """The rows for campaigns given by name or folder: A, B, then repeats of A.

    Raises:
        WarplogError: a campaign is not there or not readable.
    """
    first, second, *repeats = (load(root(name, project), gpu) for name in names)
    return compare(first, second, repeats, least)


def show_json(rows: Sequence[Row], out: TextIO) -> None:
    """The rows for programs: {"status": 0 | 1, "rows": [...]}; an infinite ratio is null."""
    data = [asdict(row) for row in rows]
    for row in data:
        for change in row["changes"]:
            change["ratio"] = change["ratio"] if math.isfinite(change["ratio"]) else None
    print(json.dumps({"status": exit_status(rows), "rows": data}, indent=1, allow_nan=False), file=out)


def show(rows: Sequence[Row], out: TextIO) -> None:
    """The rows for people, and how many there are of each verdict."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("family", "variant", "case", "verdict"):
        table.add_column(title, no_wrap=True)
    for title in ("A us", "time", "99 % interval", "cycles", "p", "effect"):
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("counters", "remarks"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_printable(cell)) for cell in _cells(row)))
    console = Console(file=out, highlight=False, width=None if out.isatty() else 190)
    console.print(table)
    counts = {word: sum(row.word == word for row in rows) for word in WORDS}
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    confirmed = sum(1 for row in rows if row.word == "SLOWER" and row.verdict and row.verdict.confirmed)
    print(f"B against A: {told or 'no cases'}; {confirmed} confirmed SLOWER", file=out)


def _cells(row: Row) -> list[str]:
    found = row.verdict
    changes = ", ".join(f"{c.counter} {_change(c)}" for c in row.changes)
    last = [f"{row.counters}: {changes}" if changes else row.counters]
    last.append("; ".join(text for text in (row.reason, *row.remarks) if text))
    key = [row.family, row.variant, row.case, row.word]
    if found is None:
        return [*key, *[""] * 6, *last]
    interval = f"{verdicts.percent(found.time.low)} to {verdicts.percent(found.time.high)}"
    cycles = verdicts.percent(found.cycles.ratio) if found.cycles else "n/a"
    time = verdicts.percent(found.time.ratio)
    before = f"{found.before_us:.5g}"
    return [*key, before, time, interval, cycles, f"{found.p:.1g}", f"{found.time.effect:+.2f}", *last]


def _change(change: Change) -> str:
    return verdicts.percent(change.ratio) if math.isfinite(change.ratio) else f"0 to {change.after:.4g}"


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


def _floor(key: Key, a: Campaign, repeats: Sequence[Campaign], least: float) -> float:
    runs = [run.cases[key] for run in (a, *repeats) if key in run.cases]
    same = [m.samples for m in runs if m.samples and m.conditions == runs[0].conditions]
    return verdicts.floor_of(same, least)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
