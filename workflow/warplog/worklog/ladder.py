"""Builds the rungs of a worklog from the tables of a family and its sources."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from warplog.analysis import verdicts
from warplog.analysis.bounds import Bound
from warplog.analysis.decomposition import Step
from warplog.analysis.explanation import Explanation
from warplog.analysis.kinship import faster_ancestor
from warplog.catalog.contract import Published
from warplog.catalog.family import Family, Variant
from warplog.catalog.header import read_header, read_source
from warplog.core.columns import Row, number, text
from warplog.core.numbers import rate_unit
from warplog.core.text import Table
from warplog.figures.shared import memory_boxes
from warplog.figures.shared.memory_boxes import MemoryChart
from warplog.metrics.kernels import bare_name
from warplog.parsers import sass
from warplog.records import remarks
from warplog.tables import published, regimes
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables, words
from warplog.worklog.asides import (
    claims_table,
    claims_verdict,
    lines_table,
    place_claims,
)
from warplog.worklog.code.heat import HeatMap, heat_map
from warplog.worklog.code.listing import Code, Line, code, listing, without_marks
from warplog.worklog.code.sources import views
from warplog.worklog.excerpt import Excerpt, excerpt
from warplog.worklog.page import Rung
from warplog.worklog.pictures.story import Waterfall, counters, waterfall
from warplog.worklog.sentences import (
    LEAST_TRAFFIC,
    OVERLAP,
    bound_sentences,
    long_run_sentences,
    occupancy_sentences,
    overlap_sentences,
    reasons,
    sentences,
    time_text,
    times_text,
    traffic_sentences,
    values_told,
)
from warplog.worklog.step_tables import factor_table, state_table
from warplog.worklog.steps.expectations import Measured, answers, named_cases

_ELSEWHERE_PCT = 2  # by which a variant is slower or faster than its parent at other cases, to be told
_NO_TIME = "no time"


@dataclass(frozen=True)
class Ladder:
    """A family with its tables and its variants' machine code, if it was kept."""

    family: Family
    tables: FigureTables
    machine_code: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def rows(self) -> dict[str, Row]:
        """The row of each variant at the headline case, in ladder order, with the columns of `variants`."""
        return self.explanation.rows

    @cached_property
    def explanation(self) -> Explanation:
        """What the counters say about the variants."""
        return Explanation(self.tables, self._sources)

    @cached_property
    def steps(self) -> dict[str, Step]:
        """The step from the parent to each variant that has one."""
        return {step.variant: step for step in self.explanation.steps}

    @cached_property
    def bounds(self) -> dict[str, Bound]:
        """What bounds each variant."""
        return {bound.variant: bound for bound in self.explanation.bounds}

    @cached_property
    def launches(self) -> dict[str, dict[str, float]]:
        """Registers, threads, shared memory and traffic of each variant's longest kernel."""
        return self.explanation.launches

    @cached_property
    def memory_metrics(self) -> dict[str, dict[str, float]]:
        """The metrics of the memory chart of each variant's longest kernel, of variants that have any."""
        rows = memory_boxes.kernel_metrics(self.tables)
        rows = rows[rows[list(memory_boxes.METRICS)].notna().any(axis=1)]
        return {
            str(r["variant"]): {name: number(r, name) for name in memory_boxes.METRICS} for r in as_rows(rows)
        }

    def _memory(self, variant: Variant) -> tuple[MemoryChart, ...]:
        """Returns the memory charts of a variant's parent and of the variant; none without counters."""
        known, parent = self.memory_metrics, variant.parent or ""
        if variant.name not in known:
            return ()
        above = (memory_boxes.chart(parent, known[parent]),) if parent in known else ()
        return (*above, memory_boxes.chart(variant.name, known[variant.name], known.get(parent)))

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The name of each variant's longest kernel; "" if it was not captured."""
        return self.explanation.kernels

    @cached_property
    def claimed(self) -> dict[str, list[Row]]:
        """The claims by the rung beside which they are shown; "" for those about the whole ladder."""
        return place_claims(as_rows(self.tables.claims), list(self.rows), self.family.baseline)

    @cached_property
    def unit(self) -> tuple[str, str, float]:
        """The column of `measurements` with the speed, the unit to show, and the conversion factor."""
        quantity = self.tables.quantity()
        rates = (number(row, quantity.column) for row in as_rows(self.tables.measurements))
        unit, factor = rate_unit(quantity.unit, rates)
        return quantity.column, unit, factor

    def speed(self, row: Row, relative: float = 1.0) -> str:
        """Returns the row's speed, or `relative` times as much, with its unit; "" if it has none."""
        column, unit, factor = self.unit
        value = number(row, column) * factor * (relative if column != "median_us" else 1 / relative)
        return "" if math.isnan(value) else f"{published.speed(value)} {unit}"

    def rungs(self) -> tuple[Rung, ...]:
        """Returns every variant of the tables in ladder order.

        Lines that an earlier variant has shown are not shown again; the text names that variant instead.

        Raises:
            WarplogError: if no excerpt can be taken from a source.
        """
        found: list[Rung] = []
        shown: dict[Excerpt, Variant] = {}
        for name, row in self.rows.items():
            variant = self.family.variant(name)
            rung = self._rung(variant, row)
            if rung.excerpt and (first := shown.setdefault(rung.excerpt, variant)) != variant:
                same = f"same {'source' if first.file == variant.file else 'kernel source'} as {first.name}"
                rung = replace(rung, excerpt=None, origins=(*rung.origins[:-1], same, *rung.origins[-1:]))
            found.append(rung)
        return tuple(found)

    @cached_property
    def path(self) -> tuple[str, ...]:
        """The main path: the steps from a variant without a parent to the fastest one."""
        return self.explanation.path

    @cached_property
    def alike(self) -> dict[str, tuple[str, ...]]:
        """For each variant that launches the same kernel at the headline case as another one, all that do."""
        return self.explanation.alike

    @cached_property
    def best(self) -> str:
        """The fastest variant besides the baseline: of several with its kernel, the best over all cases."""
        return self.explanation.best

    def _is_same(self, name: str) -> bool:
        """Returns whether a variant launches the same kernel at the headline case as its parent."""
        return self.rows[name]["parent"] in self.alike.get(name, ())

    @property
    def keeps_results(self) -> bool:
        """Whether a kernel moves less than the compulsory traffic."""
        moved = (
            (self.launches[name]["dram_bytes"], self.explanation.compulsory_bytes(name)) for name in self.rows
        )
        return any(bytes_ < (1 - LEAST_TRAFFIC) * least for bytes_, least in moved)

    def waterfall(self) -> Waterfall | None:
        """Returns the main path as a waterfall; None if it is too short for one."""
        speeds = {name: self.speed(row) for name, row in self.rows.items()}
        return waterfall(self.rows, speeds, self.family.baseline, self.best, self.alike)

    @cached_property
    def texts(self) -> dict[str, dict[Path, str]]:
        """The text of each variant's source, which comes first, and of its headers."""
        variants = [self.family.variant(str(name)) for name in self.tables.variants["variant"]]
        return {v.name: {path: read_source(path) for path in (v.file, *v.headers())} for v in variants}

    @cached_property
    def _sources(self) -> dict[str, dict[str, str]]:
        """The texts by file name instead of path."""
        return {name: {path.name: text for path, text in texts.items()} for name, texts in self.texts.items()}

    @cached_property
    def heat(self) -> dict[str, HeatMap]:
        """Where each variant's longest kernel spends its samples."""
        return {name: heat_map(self._lines(name), self._sources[name]) for name in self.rows}

    @cached_property
    def listings(self) -> dict[str, tuple[Line, ...]]:
        """The code of each variant."""
        names = {name: bare_name(self.kernels[name].replace("<unnamed>::", "")) for name in self.rows}
        return {
            name: without_marks(listing(self.texts[name], names[name], self.heat[name])) for name in self.rows
        }

    def _code(self, variant: Variant) -> Code:
        """Returns a variant's code as a diff to its parent's."""
        parent = variant.parent or ""
        if parent not in self.rows:
            return code(self.listings[variant.name], (), "")
        above = self.family.variant(parent)
        if variant.file == above.file:
            return Code((), parent, f"Same source as {parent}; {_changed(variant, above)}.")
        own = {path.name for path in self.texts[variant.name] if path != variant.file}
        shared = own & {path.name for path in self.texts[parent] if path != above.file}
        found = code(self.listings[variant.name], self.listings[parent], parent, shared)
        return replace(found, remark="") if self._is_same(variant.name) and found.changes else found

    def _machine_code(self, variant: Variant) -> tuple[str, ...]:
        """Returns the instructions of a variant's longest kernel; empty where they were not kept."""
        path, kernel = self.machine_code.get(variant.name), self.kernels[variant.name]
        if path is None or not kernel or not path.is_file():
            return ()
        name = bare_name(kernel.replace("<unnamed>::", ""))
        return sass.instructions(path.read_text(encoding="utf-8", errors="replace"), name)

    def _rung(self, variant: Variant, row: Row) -> Rung:
        step, bound = self.steps.get(variant.name), self.bounds[variant.name]
        good, ratio = row["status"] == "ok", number(row, "ratio_to_baseline")
        limits = self._limits(row, bound, values_told(step) if step and good else frozenset())
        same = self._is_same(variant.name)
        apart = [step] if step and not step.gap and not same else []
        heat = HeatMap() if same else self.heat[variant.name]
        claims = self.claimed.get(variant.name, ())
        expected = text(row, "expected")
        figures, got = self._figures(row), self._got(row) if expected else None
        elsewhere = self._elsewhere(row, expected) if got else ()
        named = [where.split()[1] for _, where in elsewhere]
        return Rung(
            name=variant.name,
            language=variant.language if len(self.languages) > 1 else "",
            badge=_badge(row, variant.draft or self.family.draft),
            gap=str(row["gap"]),
            idea=str(row["idea"]),
            origins=_origins(row, self._unused(row)),
            figures=tuple(one for one in figures if one != self._gain(row) and one[0] != got[0])
            if got
            else figures,
            got=got,
            speed=self.speed(row) if good else "",
            elsewhere=elsewhere,
            answer=self._answer(row, expected, named) if got else "",
            verdict=claims_verdict(claims, self.tables.case, self._cases),
            percent=100 * ratio if good and not math.isnan(ratio) else None,
            noise=_noise(row) if good else "",
            excerpt=None
            if variant.prebuilt
            else excerpt(variant.file, text(row, "kernel"), variant.headers()),
            printed=self._printed(variant),
            story=(
                *(self._story(step, named) if step and good else ()),
                *(self._overlapping(row) if good else ()),
            ),
            factors=factor_table(apart, key=False) if apart else None,
            states=state_table(apart, key=False) if apart and apart[0].states else None,
            limits=limits if good and not same else (),
            lines=lines_table(self._lines(variant.name), self._sources[variant.name])
            if good and not same
            else None,
            claims=claims_table(claims),
            remarks=(*(one for one in _remarks(row) if one not in self.shared), *self._spilling(row))
            if good
            else (),
            header=replace(read_header(variant.file), expected=expected),
            on_path=variant.name in self.path,
            code=self._code(variant),
            counters=counters(step) if good and self.counted and not same else (),
            sources=views(self.texts[variant.name], heat) if heat.places else (),
            heat=heat,
            sass=() if same else self._machine_code(variant),
            memory=self._memory(variant) if good and not same else (),
        )

    def _limits(self, row: Row, bound: Bound, said: Collection[str]) -> tuple[str, ...]:
        """Returns the sentences on what bounds a variant, without the values in `said`: those on its step gave them."""
        launch = self.launches[str(row["variant"])]
        wavefronts = () if math.isnan(bound.shared) else ("shared_wavefronts",)
        return (
            *(bound_sentences(bound, said) if self.counted else long_run_sentences(bound.long_run)),
            *traffic_sentences(
                launch, self.explanation.compulsory_bytes(bound.variant), {*said, *wavefronts}
            ),
            *occupancy_sentences(bound, said),
        )

    def _unused(self, row: Row) -> dict[str, str]:
        """Returns a remark by parameter on those in which an earlier variant with the same kernel differs."""
        name, where = str(row["variant"]), f" (not used at {self.tables.case})"
        if not self._is_same(name):
            return {}
        own, first = (self.family.variant(one).parameters for one in (name, self.alike[name][0]))
        return {one: where for one, value in own.items() if first.get(one) != value}

    def _spilling(self, row: Row) -> tuple[str, ...]:
        """Returns a remark on the bytes that the kernel spills; none if it does not."""
        total = number(row, "spill_bytes")
        if not total > 0:
            return ()
        stores, loads = self.explanation.spills(str(row["variant"])) or (0, 0)
        split = f"spill stores {stores} B, loads {loads} B per thread"
        return (split if stores + loads else f"spill stores and loads {total:.0f} B per thread in all",)

    @property
    def states(self) -> set[str]:
        """The warp states that the page names."""
        steps = {state.name for step in self.steps.values() for state in step.states}
        lines = {text(row, "stall") for name in self.rows for row in self._lines(name)}
        return steps | lines | {bound.stall for bound in self.bounds.values()}

    @property
    def languages(self) -> set[str]:
        """The languages of the family's variants."""
        return {variant.language for variant in self.family.variants}

    @property
    def counted(self) -> bool:
        """Whether counters are captured for the family."""
        return "ncu" in self.family.measuring.profilers

    def _story(self, step: Step, named: Collection[str]) -> tuple[str, ...]:
        """Returns the sentences about a step, without the headline ratio that the page shows above them.

        `named` are the other cases whose ratios it shows there too.
        """
        if not self.counted and not math.isnan(step.ratio):
            return ()
        if self._is_same(step.variant):
            return self._same_kernel(step.variant, named)
        if step.case == self.tables.case or math.isnan(step.ratio):
            return reasons(step)
        told = sentences(step)
        if step.same_kernel:
            return told
        return f"At {step.case}, where the counters were captured: {told[0]}", *told[1:]

    def _same_kernel(self, name: str, named: Collection[str]) -> tuple[str, ...]:
        """Names the first step with a variant's kernel, and the case where the variant differs most from its parent.

        Unless that is one of those in `named`, whose ratios are known.
        """
        first, parent = self.alike[name][0], str(self.rows[name]["parent"])
        place = list(self.rows).index(first) + 1
        told = [f"Same kernel as {first} at {self.tables.case}; see step {place} for its counters."]
        apart = {case: ratio for case, (ratio, tied) in self._over(name, parent).items() if not tied}
        if apart:
            case = max(apart, key=lambda one: abs(math.log(apart[one])))
            most = f"It differs most at {case}: {times_text(apart[case])} the speed of {parent}."
            told += [most] if case not in named else []
        return tuple(told)

    def _over(self, name: str, other: str) -> dict[str, tuple[float, bool]]:
        """Returns, by case, the speed of a variant over that of another one, and whether the two are tied."""
        found = {}
        for case, rows in self._by_case.items():
            pair = [rows.get(one, {}) for one in (name, other)]
            if all(row.get("status") == "ok" and number(row, "median_us") > 0 for row in pair):
                mine, others = pair
                found[case] = (
                    number(others, "median_us") / number(mine, "median_us"),
                    verdicts.tied(mine, others),
                )
        same = name in self.alike.get(other, ()) and self.tables.case in found
        return found | ({self.tables.case: (1.0, True)} if same else {})

    @cached_property
    def _cases(self) -> tuple[str, ...]:
        """The cases of the tables in order of size."""
        rows = as_rows(self.tables.measurements.sort_values("size", kind="stable"))
        return tuple(dict.fromkeys(str(row["case"]) for row in rows))

    def _overlapping(self, row: Row) -> tuple[str, ...]:
        """Returns the sentences about copies and kernels at once, for a family that has a figure of them."""
        if "overlap" not in self.family.figures:
            return ()
        parent = text(row, "parent")
        return overlap_sentences(
            self.overlaps.get(str(row["variant"]), {}), parent, self.overlaps.get(parent, {})
        )

    @cached_property
    def overlaps(self) -> dict[str, dict[str, float]]:
        """The metrics of the overlap of copies and kernels at the headline case, by variant."""
        metrics = self.tables.metrics
        rows = metrics[(metrics["case"] == self.tables.case) & metrics["metric"].isin(OVERLAP)]
        found: dict[str, dict[str, float]] = {}
        for row in as_rows(rows):
            found.setdefault(str(row["variant"]), {})[str(row["metric"])] = number(row, "value")
        return found

    def _lines(self, variant: str) -> list[Row]:
        """Returns the hot lines of the variant's longest kernel."""
        return list(self.explanation.kernel_lines.get(variant, ()))

    def _figures(self, row: Row) -> tuple[tuple[str, str], ...]:
        """Returns the speed, its ratio to the baseline, the speed of a slower long run, and the gain over a parent."""
        if row["status"] != "ok":
            return ()
        run = regimes.long_run(row)
        found = [(self.speed(row), f"at {row['case']}{', at rest' if run and run.at_rest else ''}")]
        found += [share] if (share := self._share(row)) else []
        found += [(self.speed(row, run.factor), run.regime)] if run else []
        found += [gain] if (gain := self._over_parent(row)) else []
        return tuple(pair for pair in found if pair[0])

    def _share(self, row: Row) -> tuple[str, str] | None:
        """Returns the speed in percent of the baseline; None for the baseline itself and without one."""
        ratio = number(row, "ratio_to_baseline")
        if math.isnan(ratio) or row["is_baseline"]:
            return None
        return f"{published.share(ratio)} %", f"of {row['baseline']}"

    def _over_parent(self, row: Row) -> tuple[str, str] | None:
        """Returns the speed over that of the parent; None without a time of both."""
        parent = self.rows.get(text(row, "parent"), {})
        if parent.get("status") != "ok" or not number(parent, "median_us") > 0 < number(row, "median_us"):
            return None
        if self._is_same(str(row["variant"])):
            return "the same kernel", f"as {row['parent']}"
        over = f"the speed of {row['parent']}{', tied within noise' if verdicts.tied(row, parent) else ''}"
        gain = times_text(number(parent, "median_us") / number(row, "median_us"))
        if above := faster_ancestor(self.rows, str(row["variant"])):
            beyond = times_text(number(self.rows[above], "median_us") / number(row, "median_us"))
            over += f", {beyond} that of {above}" if beyond != gain else ""
        return gain, over

    def _gain(self, row: Row) -> tuple[str, str] | None:
        """Returns the number to set beside an expectation: over the parent, or of the baseline without a parent."""
        return (self._over_parent(row) or self._share(row)) if row["status"] == "ok" else None

    def _got(self, row: Row) -> tuple[str, str] | None:
        """Returns `_gain` with the case, and the regime if it is known; the speed of the baseline."""
        where = f"({row['case']}{', at rest' if regimes.at_rest([row]) else ''})"
        if gain := self._gain(row):
            return gain[0], f"{gain[1]} {where}"
        return (self.speed(row), where) if row["is_baseline"] and row["status"] == "ok" else None

    def _answer(self, row: Row, expected: str, named: Collection[str]) -> str:
        """Returns whether the expectation is met at the headline case, and at how many cases it is otherwise."""
        found = [self._answers(row, expected).get(str(row["case"]), ""), self._reversed(row, named)]
        return "; ".join(filter(None, found))

    def _answers(self, row: Row, expected: str) -> dict[str, str]:
        """Returns by case whether the expectation is met, where it can be judged."""
        name, parent = str(row["variant"]), str(row["parent"] or row.get("baseline") or "")
        known: dict[str, dict[str, Measured]] = {case: {} for case in self._by_case}
        for other in self.rows:
            for case, (ratio, tied) in self._over(name, other).items() if other != name else ():
                known[case][other] = _measured(
                    ratio, tied, self._by_case[case][name], self._by_case[case][other]
                )
        return answers(
            expected, parent, known, str(row["case"]), str(row["gpu_name"]), _tflops(self._by_case, name)
        )

    def _reversed(self, row: Row, named: Collection[str]) -> str:
        """Returns at how many cases a variant is slower than its parent although it is not at the headline case.

        If it is slower there, at how many it is faster. The case with the largest difference is left out if it is one
        of those in `named`, whose ratios follow.
        """
        parent = text(row, "parent")
        found = self._over(str(row["variant"]), parent) if parent in self.rows else {}
        if row["case"] not in found:
            return ""
        least = 1 + _ELSEWHERE_PCT / 100
        slower = {case: 1 / ratio for case, (ratio, tied) in found.items() if 1 / ratio > least and not tied}
        faster = {case: ratio for case, (ratio, tied) in found.items() if ratio > least and not tied}
        word, turned = ("faster", faster) if row["case"] in slower else ("slower", slower)
        if not turned:
            return ""
        most = max(turned, key=turned.__getitem__)
        at_most = "" if most in named else f", {times_text(found[most][0])} at {most}"
        return f"{word} than {parent} by more than {_ELSEWHERE_PCT} % at {len(turned)} of {len(found)} cases{at_most}"

    def _elsewhere(self, row: Row, expected: str) -> tuple[tuple[str, str], ...]:
        """Returns the number of `_got` at each other case that the expectation names: ("1.02x", "at 8192")."""
        found, told = [], self._answers(row, expected)
        for case in dict.fromkeys((*named_cases(expected, self._by_case), *told)):
            if case == row["case"]:
                continue
            mine, parent = (
                self._by_case[case].get(str(name), {}) for name in (row["variant"], row["parent"])
            )
            value, tied = _gain_at(mine, parent if row["parent"] in self.rows else None)
            if value == _NO_TIME and case not in expected:  # of those above the sizes that it names
                continue
            value = self.speed(mine) if row["is_baseline"] else value
            beside = "; ".join(filter(None, (tied, told.get(case, ""))))
            found.append((value, f"at {case}" + (f" ({beside})" if beside else "")))
        return tuple(found)

    @cached_property
    def _by_case(self) -> dict[str, dict[str, Row]]:
        """The rows of `measurements` by case and variant."""
        return self.explanation.by_case

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """Remarks that apply to all variants with a time, shown once; empty if only one has a time."""
        each = [_remarks(row) for row in self.rows.values() if row["status"] == "ok"]
        return tuple(note for note in each[0] if all(note in own for own in each)) if len(each) > 1 else ()

    def _printed(self, variant: Variant) -> Table | None:
        """Returns published results after this campaign's result at the same case; None if there are none."""
        if not variant.published:
            return None
        unit = published.unit(self.family)
        rows = self.tables.measurements[self.tables.measurements["variant"] == variant.name]
        lines: list[tuple[str, ...]] = []
        for mine in as_rows(rows):
            case = str(mine["case"])
            figures = [p for p in variant.published if (p.case or self.family.headline_case) == case]
            if figures or case == self.family.headline_case:
                ratio = number(mine, "ratio_to_baseline")
                speed = number(mine, "gflops") / published.GFLOPS[unit]
                shown = published.speed(speed, str(mine["status"]), text(mine, "own_limits"))
                lines.append(("this campaign", str(mine["gpu_name"]), case, shown, _share(ratio)))
                lines += [self._line(figure, unit) for figure in figures]
        timed = {str(case) for case in rows["case"]}
        elsewhere = (p for p in variant.published if (p.case or self.family.headline_case) not in timed)
        lines += [self._line(figure, unit) for figure in elsewhere]
        titles = ("source", "GPU", "size", unit, f"% of {self.family.baseline or 'its baseline'}")
        return Table(titles, tuple(lines), frozenset({3, 4}))

    def _line(self, figure: Published, unit: str) -> tuple[str, ...]:
        value = figure.value * published.GFLOPS[figure.unit] / published.GFLOPS[unit]
        ratio = published.ratio(self.family, figure)
        return figure.source, figure.gpu, figure.case or "not stated", published.speed(value), _share(ratio)


def _gain_at(row: Row, parent: Row | None) -> tuple[str, str]:
    """Returns the speed over the parent's, or in percent of the baseline without one; a word if there is no time."""
    if parent is None:
        ratio = number(row, "ratio_to_baseline")
        return ("no share" if math.isnan(ratio) else f"{published.share(ratio)} %", "")
    if any(one.get("status") != "ok" or not number(one, "median_us") > 0 for one in (row, parent)):
        return _NO_TIME, ""
    tied = "tied within noise" if verdicts.tied(row, parent) else ""
    return times_text(number(parent, "median_us") / number(row, "median_us")), tied


def _measured(ratio: float, tied: bool, mine: Row, other: Row) -> Measured:
    """Returns how a variant compares with another one, given the rows of both at a case."""
    us, (low, high), (least, most) = number(other, "median_us"), *map(regimes.interval_us, (mine, other))
    ends = (1.0, 1.0) if tied and ratio == 1 else (least / high, most / low)
    return Measured(ratio, tied, us - us / ratio, ends)


def _tflops(by_case: Mapping[str, Mapping[str, Row]], name: str) -> dict[str, Measured]:
    """Returns the speed of a variant in TFLOP/s by case, of the cases where it is known."""
    found = {}
    for case, rows in by_case.items():
        row = rows.get(name, {})
        speed = number(row, "gflops") / 1e3
        if row.get("status") == "ok" and speed > 0:
            low, high = (speed * number(row, "median_us") / us for us in reversed(regimes.interval_us(row)))
            found[case] = Measured(speed, False, ends=(low, high))
    return found


def _changed(variant: Variant, parent: Variant) -> str:
    """Returns the parameters that differ: "BN 64 → 128"."""
    names = dict.fromkeys((*parent.parameters, *variant.parameters))
    pairs = [
        (name, parent.parameters.get(name, "none"), variant.parameters.get(name, "none")) for name in names
    ]
    moved = [f"{name} {before} → {after}" for name, before, after in pairs if before != after]
    return ", ".join(moved) or "same parameters"


def _badge(row: Row, draft: bool) -> str:
    labels = [words(row["status"], row["own_limits"])] if row["status"] != "ok" else []
    labels += ["baseline"] if row["is_baseline"] else []
    return ", ".join([*labels, "draft"] if draft else labels)


def _origins(row: Row, unused: Mapping[str, str]) -> tuple[str, ...]:
    parameters = json.loads(text(row, "parameters") or "{}")
    origins = [f"based on {parent}"] if (parent := text(row, "parent")) else []
    origins += [credit] if (credit := text(row, "credit")) else []
    origins += [f"compiled with {options}"] if (options := text(row, "compile")) else []
    given = (f"{name} {value}{unused.get(name, '')}" for name, value in parameters.items())
    origins += [", ".join(given)] if parameters else []
    return tuple(origins)


def _noise(row: Row) -> str:
    median, low, high = (time_text(number(row, name)) for name in ("median_us", "q1_us", "q3_us"))
    if (samples := int(number(row, "samples"))) == 1:
        return f"One launch with a cold L2: {median}."
    spread = f"quartiles {_between(low, high)}" if low != high else f"both quartiles {low}"
    where = regimes.where_timed([row])
    if regimes.has_processes([row]):
        least, most = map(time_text, regimes.interval_us(row))
        ends = f"{least} each" if least == most else _between(least, most)
        of = f"median of {number(row, 'processes'):.0f} processes ({ends}), {samples} launches"
        return f"{median} {where}: {of}; {spread}."
    return f"{median} {where}: median of {samples} launches; {spread}."


def _between(low: str, high: str) -> str:
    """Returns two times with their unit once, if they have the same: "302.5 to 303.2 µs"."""
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}')} to {high}"


def _remarks(row: Row) -> tuple[str, ...]:
    found = [one.words() for one in remarks.read(row["remarks"])]
    if row.get("agreement") == "disagree":
        named = {"rest": regimes.where_timed([row]), "hot": "in short bursts with a warm L2"}
        times = remarks.agreement_words(remarks.read_notes(row["agreement_notes"]), named)
        found.append(f"the profilers' times differ: {times}")
    if row.get("throttle_reasons") and not regimes.at_rest([row]):  # else only launches at full clock count
        found.append(f"the GPU throttled during timing: {_limits(str(row['throttle_reasons']))}")
    return tuple(found)


def _limits(reasons: str) -> str:
    """Returns the driver's names of limits in words: "software power cap" for sw_power_cap."""
    spelt = reasons.replace("sw_", "software ").replace("hw_", "hardware ")
    return spelt.replace("_", " ")


def _share(ratio: float) -> str:
    return "" if math.isnan(ratio) else published.share(ratio)
