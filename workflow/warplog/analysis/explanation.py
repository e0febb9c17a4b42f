"""What the tables say about the variants of a family: who launches the same kernel, steps, bounds and waits."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from warplog.analysis import bounds, decomposition, shared_code, stall_reasons, use, verdicts
from warplog.analysis.decomposition import StateChange, Step
from warplog.analysis.main_path import main_path
from warplog.analysis.stall_reasons import Wait
from warplog.catalog.family import Variant
from warplog.catalog.header import read_source
from warplog.core.columns import Row, number, text
from warplog.metrics import STALL_REASONS
from warplog.metrics.kernels import bare_name
from warplog.metrics.names import OPCODES
from warplog.tables import regimes
from warplog.tables.conclusions import Bound
from warplog.tables.files import as_rows
from warplog.tables.launched import spilled
from warplog.tables.view import FigureTables

_WHOLE = 0.95
# SASS opcodes of atomics on global memory, with and without a result; ATOMS works on shared memory.
_ATOMIC = re.compile(r"(?:ATOMG?|REDG?)(?:\.|$)")
_SASS = "sass_"
_BLOCK = ("block_threads", "shared_bytes_per_block")
# The text of each variant's source, which comes first, and of its headers, by variant and file name.
Sources = Mapping[str, Mapping[str, str]]


def sources_of(variants: Iterable[Variant]) -> Sources:
    """Returns the text of each variant's source and headers by file name."""
    return {
        variant.name: {path.name: read_source(path) for path in (variant.file, *variant.headers())}
        for variant in variants
    }


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
    def rows(self) -> dict[str, Row]:
        """The row of each variant at the headline case, in ladder order, with the columns of `variants`."""
        more = {str(row["variant"]): row for row in as_rows(self.tables.variants)}
        ladder = as_rows(self.tables.ladder(self.tables.case))
        return {str(row["variant"]): {**more[str(row["variant"])], **row} for row in ladder}

    @cached_property
    def by_case(self) -> dict[str, dict[str, Row]]:
        """The rows of `measurements` by case and variant."""
        cases: dict[str, dict[str, Row]] = {}
        for row in as_rows(self.tables.measurements):
            cases.setdefault(str(row["case"]), {})[str(row["variant"])] = row
        return cases

    @cached_property
    def alike(self) -> dict[str, tuple[str, ...]]:
        """For each variant that launches the same kernel at the headline case as another one, all that do."""
        if self.tables.profiled_case != self.tables.case:
            return {}
        twins = {step.variant: step.twin for step in self.steps if step.twin}
        return shared_code.classes(twins, list(self.rows))

    @cached_property
    def best(self) -> str:
        """The fastest variant besides the baseline: of several with its kernel, the best over all cases."""
        return shared_code.best(self.rows, self.alike, list(self.by_case.values()))

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The main path: the steps from a variant without a parent to the fastest one."""
        return main_path(self.rows, self.best)

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The name of each variant's longest kernel; "" if it was not captured."""
        return {str(row["variant"]): str(row["kernel"]) for row in as_rows(self.tables.counters([]))}

    def compulsory_bytes(self, variant: str) -> float:
        """Returns the bytes that the algorithm must move at the profiled case; NaN if unknown."""
        is_headline = self.tables.profiled_case == self.tables.case
        return number(self.rows[variant], "bytes") if is_headline else math.nan

    def spills(self, variant: str) -> tuple[int, int] | None:
        """Returns the bytes per thread of spill stores and of spill loads; None if they are unknown."""
        metrics = self.tables.metrics
        return spilled(metrics[metrics["variant"] == variant], number(self.rows[variant], "spill_bytes"))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """A step for each variant with a parent, in ladder order, at the profiled case."""
        rows = {str(r["variant"]): r for r in as_rows(self.tables.ladder(self.tables.profiled_case))}
        counters = _counters(self.tables, (*decomposition.COUNTERS, *use.COUNTERS, *_BLOCK))
        contended = {bound.variant for bound in self.bounds if bound.kind == "atomics"}
        gaps = _tile_ends(self.tables)
        steps = [
            _step(self.tables, rows, counters, name) for name, row in rows.items() if text(row, "parent")
        ]
        twins = shared_code.twins(self.tables, {name: list(texts) for name, texts in self.sources.items()})
        return tuple(
            replace(
                step,
                states=tuple(_waiting(state, step, self.waits) for state in step.states),
                twin=twins.get(step.variant),
                ancestor=_ancestor(rows, step),
                use=replace(
                    step.use,
                    tile_end=_tile_end(rows, step, gaps, counters),
                    contended=(step.parent in contended, step.variant in contended),
                ),
            )
            for step in steps
        )

    @cached_property
    def waits(self) -> dict[str, dict[str, Wait]]:
        """What the longest kernel of each variant waits for in the states whose names do not say it."""
        names = {state: f"stall_{state}_pct" for state in STALL_REASONS}
        executed = {f"inst_{opcode.lower()}": opcode for opcode in OPCODES}
        by_variant = {}
        for name, values in _counters(self.tables, [*names.values(), *executed]).items():
            shares = {s: pct / 100 for s, metric in names.items() if (pct := number(values, metric)) > 0}
            counted = {opcode: number(values, metric) for metric, opcode in executed.items()}
            codes = self._opcodes.get((name, bare_name(str(values["kernel"])))) or counted
            # A template's name stands for all of its kernels: one that executes no such instruction does not wait.
            idle = tuple(opcode for opcode in stall_reasons.OPCODES if counted.get(opcode) == 0)
            present = [code for code, count in codes.items() if count > 0 and not code.startswith(idle)]
            lines = self.tables.kernel_lines.get(name, ())
            by_variant[name] = stall_reasons.waits(
                lines, self.sources.get(name, {}), present, shares, counted
            )
        return by_variant

    @cached_property
    def bounds(self) -> tuple[Bound, ...]:
        """What bounds each variant's longest kernel, in ladder order, and what limits its long runs."""
        rows = {str(row["variant"]): row for row in as_rows(self.tables.ladder(self.tables.profiled_case))}
        copies = _copies(self.tables)
        limits = []
        for name, values in _counters(self.tables, (*bounds.COUNTERS, "duration_us")).items():
            compulsory = self.compulsory_bytes(name)
            bound = self._limit(name, values)
            wait = self.waits.get(name, {}).get(bound.stall)
            stored, loaded = self.spills(name) or (-1, -1)
            bound = replace(
                bound,
                family=self.tables.family,
                case=self.tables.profiled_case,
                kernel=self.kernels.get(name, ""),
                wait=wait.awaited if wait else "",
                wait_line=wait.line if wait else "",
                profiled_cycles=_profiled_cycles(rows[name], _numbers(values)),
                copies_us=0.0 if bound.gap == "no_counters" else copies.get(name, 0.0),
                compulsory_bytes=compulsory,
                traffic=bound.dram_bytes / compulsory if compulsory > 0 else math.nan,
                spill_store_bytes=stored,
                spill_load_bytes=loaded,
            )
            limits.append(_with_long_run(bound, regimes.long_run(rows[name])))
        return tuple(limits)

    def _limit(self, variant: str, values: Row) -> Bound:
        """Returns what the counters of a variant's longest kernel, and the atomics in its machine code, tell of it."""
        if values["gap"]:
            return Bound("", variant, "", "", gap="no_counters")
        codes = self._opcodes.get((variant, bare_name(str(values["kernel"]))), {})
        count = sum(times for code, times in codes.items() if _ATOMIC.match(code))
        counted = {**_numbers(values), bounds.GLOBAL_ATOMICS: count}
        return bounds.bound(variant, counted, self.tables.peak("sms"), self._ceilings)

    @cached_property
    def _ceilings(self) -> dict[str, float]:
        """What the campaign measured as ceilings of the GPU, by name; NaN if it was not measured."""
        return {name: self.tables.ceiling(name)[0] for name in bounds.CEILINGS.values()}

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
    name = "" if math.isnan(step.ratio) else shared_code.faster_ancestor(rows, step.variant)
    return (name, shared_code.time_us(rows[name]) / shared_code.time_us(rows[step.variant])) if name else None


def _tile_ends(tables: FigureTables) -> dict[str, float]:
    """Returns the median gap at a tile end in microseconds, of the variants with a timeline at the profiled case."""
    rows = [row for row in as_rows(tables.launches) if row["case"] == tables.profiled_case]
    return {str(row["variant"]): gap for row in rows if (gap := number(row, "bubble_us")) > 0}


def _tile_end(
    rows: Mapping[str, Row], step: Step, gaps: Mapping[str, float], counters: Mapping[str, Row]
) -> tuple[str, float, float] | None:
    """Returns the nearest ancestor with a timeline, and the gap at a tile end in it and in the variant.

    Tiles of an ancestor end as those of the parent only if blocks are of the same size, and an SM holds as many.
    """
    above, seen = step.parent, {step.variant}
    while above in rows and above not in gaps and above not in seen:
        seen.add(above)
        above = text(rows[above], "parent")
    if step.variant not in gaps or above not in gaps:
        return None
    is_alike = above == step.parent or _block(counters[above]) == _block(counters[step.parent])
    return (above, gaps[above], gaps[step.variant]) if is_alike else None


def _block(row: Row) -> tuple[float, ...]:
    """Returns the size of a kernel's blocks, and how many fit on an SM."""
    return (*(number(row, name) for name in _BLOCK), bounds.blocks_per_sm(_numbers(row)))


def _waiting(state: StateChange, step: Step, waits: Mapping[str, Mapping[str, Wait]]) -> StateChange:
    """Returns the state with what it waits for in the kernels of the variant and of its parent."""
    wait, parents = (waits.get(name, {}).get(state.name) for name in (step.variant, step.parent))
    if state.name in stall_reasons.MIO_STATES and wait != parents:  # one name for both
        wait = parents = None
    is_placed = any(side and side.line for side in (wait, parents))
    return replace(state, wait=wait, parents=parents, evidence=() if is_placed else state.evidence)


def _with_long_run(bound: Bound, run: regimes.LongRun | None) -> Bound:
    if run is None:
        return bound
    return replace(
        bound,
        rest_us=run.rest_us,
        long_us=run.long_us,
        long_slowdown=1 / run.factor,
        long_regime=run.regime.replace(" ", "_"),
        limited_by=run.limited_by,
        from_mhz=run.from_mhz,
        to_mhz=run.to_mhz,
        power_w=run.watts,
    )


def _copies(tables: FigureTables) -> dict[str, float]:
    """Returns the time of the copies in a launch of each variant in microseconds, which nsys lists like kernels."""
    rows = tables.metrics[
        (tables.metrics["metric"] == "nsys_kernel_duration_us")
        & (tables.metrics["case"] == tables.profiled_case)
    ]
    copy_us: dict[str, float] = {}
    for row in as_rows(rows[rows["kernel"].astype(str).str.contains("-to-", regex=False)]):
        copy_us[str(row["variant"])] = copy_us.get(str(row["variant"]), 0.0) + number(row, "value")
    return copy_us


def _profiled_cycles(row: Row, values: Mapping[str, float]) -> float:
    """Returns the cycles of the profiled launch over those of the timed ones; NaN if it has several kernels."""
    timed = number(row, "median_us") * number(row, "sm_mhz")
    whole = values.get("duration_us", math.nan) >= _WHOLE * number(row, "ncu_us")
    return values.get("gpu_cycles", math.nan) / timed if whole and timed > 0 else math.nan


def _step(tables: FigureTables, rows: Mapping[str, Row], counters: Mapping[str, Row], name: str) -> Step:
    parent, case = str(rows[name]["parent"]), tables.profiled_case
    key = (tables.family, name, parent, case)
    if parent not in rows:
        return Step(*key, math.nan, gap="no_parent", gap_of=(parent,))
    pair = (rows[parent], rows[name])
    if bad := [row for row in pair if row["status"] != "ok"]:
        statuses = tuple("own_limit" if row["own_limits"] else str(row["status"]) for row in bad)
        return Step(*key, math.nan, gap="no_status", gap_of=_names(bad), gap_detail=statuses)
    if timeless := [row for row in pair if not 0 < number(row, "median_us") < math.inf]:
        return Step(*key, math.nan, gap="no_time", gap_of=_names(timeless))
    ratio = number(pair[0], "median_us") / number(pair[1], "median_us")
    tied = verdicts.tied(*pair)
    for side in (parent, name):
        why = text(counters[side], "gap")
        if absent := (why,) if why else tuple(decomposition.missing(_numbers(counters[side]))):
            return Step(*key, ratio, gap="no_counters", gap_of=(side,), gap_detail=absent, tied=tied)
    before, after = _numbers(counters[parent]), _numbers(counters[name])
    clocks = number(pair[0], "sm_mhz"), number(pair[1], "sm_mhz")
    factors = decomposition.factors(before, after, clocks, tables.peak("sms"))
    rest = ratio / math.prod(factor.factor for factor in factors)
    states = decomposition.states(before, after)
    changed = use.use(before, after, tables.peak("sms"))
    first, last = (values.get(decomposition.TIME, math.nan) for values in (before, after))
    others = max(number(pair[0], "ncu_us") - first, 0.0), max(number(pair[1], "ncu_us") - last, 0.0)
    return Step(
        *key,
        ratio,
        factors,
        states,
        rest,
        tied=tied,
        use=changed,
        kernel_us=(first, last),
        others_us=others,
    )


def _names(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(str(row["variant"]) for row in rows)


def _counters(tables: FigureTables, names: Sequence[str]) -> dict[str, Row]:
    wide = tables.counters(list(dict.fromkeys(names)))
    return {str(row["variant"]): row for row in as_rows(wide)}


def _numbers(row: Row) -> dict[str, float]:
    numbers = {name: float(value) for name, value in row.items() if isinstance(value, (int, float))}
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
