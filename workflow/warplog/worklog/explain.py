"""`warplog explain`: why a variant is faster than its parent and what bounds it, in sentences and tables.

It reports only what the counters support: which factors and warp states account for the cycles, and the
remainder. Missing counters, and ratios that the counters do not explain, are reported as such.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from warplog.analysis import verdicts
from warplog.catalog.family import Family
from warplog.catalog.header import read_source
from warplog.core.columns import Row, number, text
from warplog.core.text import escape_markdown, markdown_table
from warplog.metrics import STALL_REASONS
from warplog.metrics.kernels import bare_name
from warplog.metrics.names import OPCODES
from warplog.tables import regimes
from warplog.tables.files import as_rows, read_table
from warplog.tables.view import FigureTables, words
from warplog.worklog import bounds, decomposition, kinship
from warplog.worklog.bounds import Bound
from warplog.worklog.code import waits
from warplog.worklog.code.waits import Wait
from warplog.worklog.decomposition import StateChange, Step
from warplog.worklog.sentences import brief, sentence
from warplog.worklog.step_tables import bound_table, factor_table, state_table
from warplog.worklog.steps import use

_WHOLE = 0.95
# SASS opcodes of atomics on global memory, with and without a result; ATOMS works on shared memory.
_ATOMIC = re.compile(r"(?:ATOMG?|REDG?)(?:\.|$)")
_SASS = "sass_"
# The text of each variant's source, which comes first, and of its headers, by variant and file name.
Sources = Mapping[str, Mapping[str, str]]


def families(folder: Path) -> list[str]:
    """Returns the families in the tables of `folder`.

    Raises:
        WarplogError: if the table of variants is missing or not readable.
    """
    return [str(name) for name in read_table(folder, "variants")["family"].drop_duplicates()]


@dataclass(frozen=True)
class Explanation:
    """What the counters of a family say about its variants; each part is computed once.

    Attributes:
        tables: of the family.
        sources: the text of each variant's source and headers, if known.
    """

    tables: FigureTables
    sources: Sources = field(default_factory=dict)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """A step for each variant with a parent, in ladder order, at the profiled case."""
        rows = {str(r["variant"]): r for r in as_rows(self.tables.ladder(self.tables.profiled_case))}
        counters = _counters(self.tables, (*decomposition.COUNTERS, *use.COUNTERS))
        contended = {one.variant for one in self.bounds if one.kind == "atomics"}
        gaps = _tile_ends(self.tables)
        found = [
            _step(self.tables, rows, counters, name) for name, row in rows.items() if text(row, "parent")
        ]
        twins = kinship.twins(self.tables, {name: list(texts) for name, texts in self.sources.items()})
        return tuple(
            replace(
                step,
                states=tuple(_waiting(state, step, self.waits) for state in step.states),
                twin=twins.get(step.variant),
                ancestor=_ancestor(rows, step),
                use=replace(
                    step.use,
                    tile_end=_tile_end(rows, step, gaps),
                    contended=(step.parent in contended, step.variant in contended),
                ),
            )
            for step in found
        )

    @cached_property
    def waits(self) -> dict[str, dict[str, Wait]]:
        """What the longest kernel of each variant waits for in the states whose names do not say it."""
        names = {state: f"stall_{state}_pct" for state in STALL_REASONS}
        executed = {f"inst_{opcode.lower()}": opcode for opcode in OPCODES}
        found = {}
        for name, values in _counters(self.tables, [*names.values(), *executed]).items():
            shares = {s: pct / 100 for s, metric in names.items() if (pct := number(values, metric)) > 0}
            counted = {opcode: number(values, metric) for metric, opcode in executed.items()}
            codes = self._opcodes.get((name, bare_name(str(values["kernel"])))) or counted
            # A template's name stands for all of its kernels: one that executes no such instruction does not wait.
            idle = tuple(opcode for opcode in waits.OPCODES if counted.get(opcode) == 0)
            known = [code for code, count in codes.items() if count > 0 and not code.startswith(idle)]
            lines = self.kernel_lines.get(name, ())
            found[name] = waits.waits(lines, self.sources.get(name, {}), known, shares)
        return found

    @cached_property
    def kernel_lines(self) -> dict[str, list[Row]]:
        """The hot lines of each variant's longest kernel, of one launch of it: each has shares of its own."""
        counters, lines = self.tables.counters([]), self.tables.lines
        kernels = dict(zip(map(str, counters["variant"]), map(str, counters["kernel"]), strict=True))
        launches: dict[str, dict[int, list[Row]]] = {}
        for row in as_rows(lines if lines.empty else lines[lines["case"] == self.tables.profiled_case]):
            variant = str(row["variant"])
            if row["kernel"] == (kernels.get(variant) or row["kernel"]):
                launches.setdefault(variant, {}).setdefault(int(number(row, "launch")), []).append(row)
        return {
            variant: max(
                found.values(), key=lambda own: sum(max(0.0, number(row, "instructions")) for row in own)
            )
            for variant, found in launches.items()
        }

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """What bounds each variant's longest kernel, in ladder order, and what limits its long runs."""
        sms = self.tables.peak("sms")
        rows = {str(row["variant"]): row for row in as_rows(self.tables.ladder(self.tables.profiled_case))}
        copies = _copies(self.tables)
        found = []
        for name, values in _counters(self.tables, (*bounds.COUNTERS, "duration_us")).items():
            run = regimes.long_run(rows[name])
            if gap := text(values, "gap"):
                found.append(Bound(name, "", gap=gap, long_run=run))
                continue
            codes = self._opcodes.get((name, bare_name(str(values["kernel"]))), {})
            count = sum(times for code, times in codes.items() if _ATOMIC.match(code))
            one = bounds.bound(name, {**_numbers(values), bounds.GLOBAL_ATOMICS: count}, sms)
            wait = self.waits.get(name, {}).get(one.stall)
            cycles = _profiled_cycles(rows[name], _numbers(values))
            copied = copies.get(name, 0.0)
            found.append(replace(one, long_run=run, wait=wait, profiled_cycles=cycles, copies_us=copied))
        return tuple(found)

    @cached_property
    def _opcodes(self) -> dict[tuple[str, str], dict[str, float]]:
        """The number of instructions by opcode in the machine code, by variant and kernel name."""
        rows = self.tables.metrics[self.tables.metrics["metric"].str.startswith(_SASS)]
        counts: dict[tuple[str, str], dict[str, float]] = {}
        columns = (rows[name].tolist() for name in ("variant", "kernel", "metric", "value"))
        for variant, kernel, metric, value in zip(*columns, strict=True):
            own = counts.setdefault((str(variant), bare_name(str(kernel))), {})
            opcode = str(metric).removeprefix(_SASS)
            own[opcode] = own.get(opcode, 0.0) + float(value or 0.0)
        return counts


def _ancestor(rows: Mapping[str, Row], step: Step) -> tuple[str, float] | None:
    """Returns an ancestor that is faster than the parent, and its time over the variant's."""
    name = "" if math.isnan(step.ratio) else kinship.faster_ancestor(rows, step.variant)
    return (name, kinship.time_us(rows[name]) / kinship.time_us(rows[step.variant])) if name else None


def _tile_ends(tables: FigureTables) -> dict[str, float]:
    """Returns the median gap at a tile end in microseconds, of the variants with a timeline at the profiled case."""
    rows = [row for row in as_rows(tables.launches) if row["case"] == tables.profiled_case]
    return {str(row["variant"]): gap for row in rows if (gap := number(row, "bubble_us")) > 0}


def _tile_end(
    rows: Mapping[str, Row], step: Step, gaps: Mapping[str, float]
) -> tuple[str, float, float] | None:
    """Returns the nearest ancestor with a timeline, and the gap at a tile end in it and in the variant."""
    above, seen = step.parent, {step.variant}
    while above in rows and above not in gaps and above not in seen:
        seen.add(above)
        above = text(rows[above], "parent")
    known = step.variant in gaps and above in gaps
    return (above, gaps[above], gaps[step.variant]) if known else None


def _waiting(state: StateChange, step: Step, known: Mapping[str, Mapping[str, Wait]]) -> StateChange:
    """Returns the state with what it waits for in the kernels of the variant and of its parent."""
    wait, parents = (known.get(name, {}).get(state.name) for name in (step.variant, step.parent))
    is_placed = any(one and one.line for one in (wait, parents))
    return replace(state, wait=wait, parents=parents, evidence=() if is_placed else state.evidence)


def _copies(tables: FigureTables) -> dict[str, float]:
    """Returns the time of the copies in a launch of each variant in microseconds, which nsys lists like kernels."""
    rows = tables.metrics[
        (tables.metrics["metric"] == "nsys_kernel_duration_us")
        & (tables.metrics["case"] == tables.profiled_case)
    ]
    found: dict[str, float] = {}
    for row in as_rows(rows[rows["kernel"].astype(str).str.contains("-to-", regex=False)]):
        found[str(row["variant"])] = found.get(str(row["variant"]), 0.0) + number(row, "value")
    return found


def _profiled_cycles(row: Row, values: Mapping[str, float]) -> float:
    """Returns the cycles of the profiled launch over those of the timed ones; NaN if it has several kernels."""
    timed = number(row, "median_us") * number(row, "sm_mhz")
    whole = values.get("duration_us", math.nan) >= _WHOLE * number(row, "ncu_us")
    return values.get("gpu_cycles", math.nan) / timed if whole and timed > 0 else math.nan


def sources_of(family: Family) -> Sources:
    """Returns the text of each variant's source and headers by file name."""
    return {
        variant.name: {path.name: read_source(path) for path in (variant.file, *variant.headers())}
        for variant in family.variants
    }


def markdown(tables: FigureTables, sources: Sources = MappingProxyType({}), whole: bool = False) -> str:
    """Returns Markdown with each step on a line and at most three reasons below it.

    If `whole`, all sentences about each step instead, its factors and warp states, and what bounds each kernel.
    """
    explanation = Explanation(tables, sources)
    first = as_rows(tables.measurements.head(1))
    facts = [str(row[name]) for row in first for name in ("gpu_name", "campaign", "origin") if row.get(name)]
    lines = [f"# {escape_markdown(tables.family)}: why each step is faster or slower", ""]
    about = "; ".join(filter(None, (f"Case {tables.profiled_case}", ", ".join(facts))))
    lines += [f"{escape_markdown(about)}.", ""]
    for step in explanation.steps:
        head, *reasons = (sentence(step),) if whole else brief(step)
        lines.append(f"- **{escape_markdown(step.variant)}**: {escape_markdown(head)}")
        lines += [f"  - {escape_markdown(reason)}" for reason in reasons]
    if whole:
        lines += _tables(explanation.steps, explanation.bounds)
    return "\n".join(lines) + "\n"


def _tables(found: Sequence[Step], limits: Sequence[Bound]) -> list[str]:
    lines = []
    for title, table in (
        ("Factors of each step", factor_table(found)),
        ("Warp states of each step", state_table(found)),
        ("What bounds each variant", bound_table(limits)),
    ):
        if table.rows:
            notes = [escape_markdown(note) for note in table.notes]
            lines += ["", f"## {title}", "", *notes, *([""] if notes else []), *markdown_table(table)]
    return lines


def _step(tables: FigureTables, rows: Mapping[str, Row], counters: Mapping[str, Row], name: str) -> Step:
    parent, case = str(rows[name]["parent"]), tables.profiled_case
    key = (tables.family, name, parent, case)
    if parent not in rows:
        return Step(*key, math.nan, gap=f"{parent} is not in the tables")
    pair = (rows[parent], rows[name])
    bad = [
        f"{row['variant']} has no time ({words(row['status'], row['own_limits'])})"
        for row in pair
        if row["status"] != "ok"
    ]
    if bad:
        return Step(*key, math.nan, gap=" and ".join(bad))
    timeless = [str(row["variant"]) for row in pair if not 0 < number(row, "median_us") < math.inf]
    if timeless:
        have = "have" if len(timeless) > 1 else "has"
        return Step(*key, math.nan, gap=f"{' and '.join(timeless)} {have} no cold time")
    ratio = number(pair[0], "median_us") / number(pair[1], "median_us")
    tied = verdicts.tied(*pair)
    for side in (parent, name):
        absent = decomposition.missing(_numbers(counters[side]))
        if why := text(counters[side], "gap") or ", ".join(absent):
            return Step(*key, ratio, gap=f"{side} lacks counters: {why}", tied=tied)
    before, after = _numbers(counters[parent]), _numbers(counters[name])
    clocks = number(pair[0], "sm_mhz"), number(pair[1], "sm_mhz")
    found = decomposition.factors(before, after, clocks, tables.peak("sms"))
    rest = ratio / math.prod(factor.factor for factor in found)
    remark = _partial(pair, (before, after))
    states = decomposition.states(before, after)
    changed = use.use(before, after, tables.peak("sms"))
    first, last = (values.get(decomposition.TIME, math.nan) for values in (before, after))
    others = max(number(pair[0], "ncu_us") - first, 0.0), max(number(pair[1], "ncu_us") - last, 0.0)
    return Step(
        *key,
        ratio,
        found,
        states,
        rest,
        "",
        remark,
        tied,
        use=changed,
        kernel_us=(first, last),
        others_us=others,
    )


def _partial(pair: Sequence[Row], counters: Sequence[decomposition.Values]) -> str:
    """Returns a caveat if a launch has several kernels: the counters cover only the longest of them."""
    caveats = []
    for row, values in zip(pair, counters, strict=True):
        share = values.get("duration_us", math.nan) / (number(row, "ncu_us") or math.nan)
        if share < _WHOLE:
            part = f"{row['variant']}, {100 * share:.0f} % of its time"
            caveats.append(f"of {part}")
    return f"the counters cover only the longest kernel {', and '.join(caveats)}" if caveats else ""


def _counters(tables: FigureTables, names: Sequence[str]) -> dict[str, Row]:
    wide = tables.counters(list(dict.fromkeys(names)))
    return {str(row["variant"]): row for row in as_rows(wide)}


def _numbers(row: Row) -> dict[str, float]:
    numbers = {name: float(value) for name, value in row.items() if isinstance(value, (int, float))}
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
