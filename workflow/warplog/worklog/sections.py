"""Selects the rows, texts and code of each variant of a family for its page."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from warplog.catalog.family import Family, Variant
from warplog.catalog.header import read_header, read_source
from warplog.core.columns import Row, number, text
from warplog.figures.shared import memory_boxes as memory_chart
from warplog.figures.shared.memory_boxes import MemoryChart
from warplog.metrics.kernels import bare_name
from warplog.parsers import sass
from warplog.records import remarks
from warplog.tables import published, regimes
from warplog.tables.conclusions import Answer, Chip, Place, Verdict, by_variant, rows
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog import variant_conclusions
from warplog.worklog.cells import Cells
from warplog.worklog.code import machine_code
from warplog.worklog.code.heat import HeatMap, heat_map
from warplog.worklog.code.listing import Code, Line, code, listing, without_marks
from warplog.worklog.code.machine_code import MachineCode
from warplog.worklog.code.sources import views
from warplog.worklog.page import Conclusions, Origin, Section

_MOST_LINES, _MOST_NAMED = 5, 3
_LAUNCH = ("registers_per_thread", "block_threads", "shared_bytes_per_block")
_OTHER_CASES = "other_cases"  # badge of a variant that has times, but cannot run the headline case
_OVERLAP = ("wall_us", "kernel_us", "to_device_us", "to_host_us", "copy_hidden_pct")


@dataclass(frozen=True)
class Rows:
    """A family's tables with its conclusions by variant; `machine_code` is each variant's disassembly, if kept."""

    family: Family
    tables: FigureTables
    machine_code: Mapping[str, Path] = field(default_factory=dict)

    @cached_property
    def places(self) -> dict[str, Place]:
        """The variants in the order of the ladder."""
        return variant_conclusions.places(self.tables)

    @cached_property
    def measured(self) -> dict[str, Row]:
        """The row of each variant at the headline case."""
        return {str(row["variant"]): row for row in as_rows(self.tables.ladder(self.tables.case))}

    @cached_property
    def built(self) -> dict[str, Row]:
        """The row of each variant in the table `variants`."""
        return {str(row["variant"]): row for row in as_rows(self.tables.variants)}

    @cached_property
    def verdicts(self) -> dict[tuple[str, str], list[Verdict]]:
        """The verdicts at rest of a variant against another one, by both."""
        return variant_conclusions.verdicts(self.tables)

    @cached_property
    def _conclusions(self) -> dict[str, Conclusions]:
        return variant_conclusions.by_variant(self.tables)

    @cached_property
    def claims(self) -> dict[str, list[Row]]:
        """The claims by the variant that they are about; "" for those about the whole ladder."""
        answered = {
            answer.id: answer.variant
            for answer in rows(self.tables.answers, Answer)
            if answer.kind == "claim"
        }
        by_variant: dict[str, list[Row]] = {}
        for row in as_rows(self.tables.claims):
            by_variant.setdefault(answered.get(str(row["id"])) or self._about(row), []).append(row)
        return by_variant

    @cached_property
    def _timed(self) -> set[str]:
        """The variants that have a time at any case."""
        measurements = self.tables.measurements
        return set(measurements.loc[measurements["status"] == "ok", "variant"])

    def _about(self, claim: Row) -> str:
        """Returns the last variant that a claim's formula names, the baseline only if it is the only one."""
        words = re.findall(r"\w+", text(claim, "measure"))
        named = [name for name in self.places if name in words]
        own = [name for name in named if name != self.family.baseline] or named
        return own[-1] if 0 < len(own) <= _MOST_NAMED else ""

    @cached_property
    def shared_remarks(self) -> tuple[str, ...]:
        """Remarks that apply to all variants with a time; empty if only one has a time."""
        each = [_remarks(row) for row in self.measured.values() if row["status"] == "ok"]
        return tuple(note for note in each[0] if all(note in own for own in each)) if len(each) > 1 else ()

    def sections(self) -> tuple[Section, ...]:
        """Returns every variant of the table `ladder` in its order.

        Raises:
            WarplogError: if a source cannot be read.
        """
        return tuple(self._section(self.family.variant(name)) for name in self.places)

    def _section(self, variant: Variant) -> Section:
        name = variant.name
        row, place = self.measured[name], self.places[name]
        is_ok = row["status"] == "ok"
        conclusions = self._conclusions[name]
        is_same, root = bool(conclusions.same_kernel), conclusions.same_kernel or place.kernel_of or name
        heat = HeatMap() if is_same else self._heat[name]
        badges = _badges(row, name in self._timed, variant.draft or self.family.draft)
        return Section(
            **vars(conclusions),
            name=name,
            language=variant.language if len({other.language for other in self.family.variants}) > 1 else "",
            badges=badges,
            gap=""
            if is_ok
            else f"at {self.tables.case}, {row['gap']}"
            if _OTHER_CASES in badges
            else str(row["gap"]),
            idea=text(self.built[name], "idea"),
            note=text(self.built[name], "note"),
            origin=self._origin(variant, is_same, root),
            header=replace(read_header(variant.file), expected=text(self.built[name], "expected")),
            measured=Cells("measurements", row) if is_ok else None,
            answers=tuple(
                Cells(Answer.TABLE, answer)
                for answer in rows(self.tables.answers, Answer)
                if answer.variant == name and answer.kind != "claim"
            ),
            claims=tuple(Cells("claims", claim) for claim in self.claims.get(name, ())),
            published=tuple(Cells("published", value) for value in self._published.get(name, ())),
            lines=tuple(Cells("lines", line) for line in _hottest(self.tables.kernel_lines.get(name, ())))
            if is_ok and not is_same
            else (),
            overlap=self._metrics(_OVERLAP, self.tables.case).get(name, {})
            if "overlap" in self.family.figures
            else {},
            resources=self._metrics(_LAUNCH, self.tables.profiled_case, self._kernels).get(name, {}),
            built=Cells("variants", self.built[name]),
            remarks=tuple(remark for remark in _remarks(row) if remark not in self.shared_remarks)
            if is_ok
            else (),
            code=self._code(variant),
            heat=heat,
            sources=views(self._texts[name], heat) if heat.places else (),
            loops=tuple(self._loops.get(name, ())) if is_ok and not is_same else (),
            sass=() if is_same else self._machine_code(variant),
            chips=tuple(
                Cells(Chip.TABLE, chip)
                for chip in self._chips.get(name, ())
                if chip.source_sha256 == self.built[name]["source_sha256"]
            ),
            memory=self._memory(variant) if is_ok and not is_same else (),
        )

    def _origin(self, variant: Variant, is_same: bool, root: str) -> Origin:
        row = self.built[variant.name]
        given = json.loads(text(row, "parameters") or "{}")
        first = self.family.variant(root).parameters if is_same else {}
        unused = {
            parameter
            for parameter, value in variant.parameters.items()
            if is_same and first.get(parameter) != value
        }
        parent = variant.parent or ""
        before = self.family.variant(parent).parameters if parent in self.places else variant.parameters
        names = dict.fromkeys((*before, *variant.parameters))
        pairs = [(n, str(before.get(n, "")), str(variant.parameters.get(n, ""))) for n in names]
        return Origin(
            text(row, "parent"),
            text(row, "credit"),
            text(row, "compile"),
            tuple((n, str(value)) for n, value in given.items()),
            frozenset(unused),
            tuple(pair for pair in pairs if pair[1] != pair[2]),
        )

    @cached_property
    def _published(self) -> dict[str, list[Row]]:
        by_variant: dict[str, list[Row]] = {}
        for row in published.rows(self.family, as_rows(self.tables.measurements)):
            if text(row, "published_source"):
                by_variant.setdefault(str(row["variant"]), []).append(row)
        return by_variant

    def _metrics(
        self, names: Collection[str], case: str, kernels: Mapping[str, str] | None = None
    ) -> dict[str, dict[str, Cells]]:
        """Returns the rows of metrics at a case by variant and metric; of a kernel, if its name is given."""
        metrics = self.tables.metrics
        kept = metrics[(metrics["case"] == case) & metrics["metric"].isin(names) & metrics["value"].notna()]
        by_variant: dict[str, dict[str, Cells]] = {}
        for row in as_rows(kept):
            variant = str(row["variant"])
            if kernels is None or (row["tool"] == "ncu" and row["kernel"] == kernels.get(variant)):
                by_variant.setdefault(variant, {}).setdefault(str(row["metric"]), Cells("metrics", row))
        return by_variant

    @cached_property
    def _kernels(self) -> dict[str, str]:
        """The name of each variant's longest kernel; "" if it was not captured."""
        return {str(row["variant"]): str(row["kernel"]) for row in as_rows(self.tables.counters([]))}

    @cached_property
    def _memory_metrics(self) -> dict[str, dict[str, float]]:
        """The metrics of the memory chart of each variant's longest kernel, of variants that have any."""
        rows = memory_chart.kernel_metrics(self.tables)
        rows = rows[rows[list(memory_chart.METRICS)].notna().any(axis=1)]
        return {
            str(r["variant"]): {name: number(r, name) for name in memory_chart.METRICS} for r in as_rows(rows)
        }

    def _memory(self, variant: Variant) -> tuple[MemoryChart, ...]:
        metrics, parent = self._memory_metrics, variant.parent or ""
        if variant.name not in metrics:
            return ()
        above = (memory_chart.chart(parent, metrics[parent]),) if parent in metrics else ()
        return (*above, memory_chart.chart(variant.name, metrics[variant.name], metrics.get(parent)))

    @cached_property
    def _texts(self) -> dict[str, dict[Path, str]]:
        """The text of each variant's source, which comes first, and of its headers."""
        variants = [self.family.variant(name) for name in self.places]
        return {v.name: {path: read_source(path) for path in (v.file, *v.headers())} for v in variants}

    @cached_property
    def _chips(self) -> dict[str, list[Chip]]:
        return by_variant(rows(self.tables.chips, Chip))

    @cached_property
    def _loops(self) -> dict[str, list[MachineCode]]:
        return machine_code.by_variant(self.tables)

    @cached_property
    def _heat(self) -> dict[str, HeatMap]:
        """Where each variant's longest kernel spends its samples."""
        return {
            name: heat_map(
                self.tables.kernel_lines.get(name, ()), {path.name: own for path, own in texts.items()}
            )
            for name, texts in self._texts.items()
        }

    @cached_property
    def _listings(self) -> dict[str, tuple[Line, ...]]:
        return {
            name: without_marks(listing(texts, _bare(self._kernels.get(name, "")), self._heat[name]))
            for name, texts in self._texts.items()
        }

    def _code(self, variant: Variant) -> Code:
        """Returns a variant's code as a diff to its parent's."""
        parent = variant.parent or ""
        if parent not in self.places:
            return code(self._listings[variant.name], (), "")
        above = self.family.variant(parent)
        if variant.file == above.file:
            return Code((), parent, "same_source")
        own = {path.name for path in self._texts[variant.name] if path != variant.file}
        shared = own & {path.name for path in self._texts[parent] if path != above.file}
        return code(
            self._listings[variant.name], self._listings[parent], parent, shared, self._heat[variant.name]
        )

    def _machine_code(self, variant: Variant) -> tuple[str, ...]:
        """Returns the instructions of a variant's longest kernel; empty where they were not kept."""
        path, kernel = self.machine_code.get(variant.name), self._kernels.get(variant.name, "")
        if path is None or not kernel or not path.is_file():
            return ()
        return sass.instructions(path.read_text(encoding="utf-8", errors="replace"), _bare(kernel))


def _bare(kernel: str) -> str:
    return bare_name(kernel.replace("<unnamed>::", ""))


def _badges(row: Row, is_timed: bool, is_draft: bool) -> tuple[str, ...]:
    """Returns the codes of a variant's badges; `is_timed` says whether it has a time at any case."""
    status = "not_run" if text(row, "own_limits") else str(row["status"])
    status = _OTHER_CASES if status == "unsupported" and is_timed else status
    badges = (status != "ok", status), (bool(row["is_baseline"]), "baseline"), (is_draft, "draft")
    return tuple(code for holds, code in badges if holds)


def _hottest(lines: Sequence[Row]) -> list[Row]:
    """Returns the lines with most samples, and the one with most excess wavefronts."""

    def share(row: Row) -> float:
        return max(number(row, "sample_share"), 0.0) or max(number(row, "instruction_share"), 0.0)

    shown = sorted(lines, key=share, reverse=True)
    first, others = shown[: _MOST_LINES - 1], shown[_MOST_LINES - 1 :]
    excess = [row for row in others if number(row, "shared_wavefronts_excess") > 0]
    last = max(excess, key=lambda row: number(row, "shared_wavefronts_excess"), default=None)
    kept = [*first, last] if last else shown[:_MOST_LINES]
    return [row for row in kept if share(row) > 0 or number(row, "shared_wavefronts_excess") > 0]


def _remarks(row: Row) -> tuple[str, ...]:
    texts = [remark.words() for remark in remarks.read(row["remarks"])]
    if row.get("agreement") == "disagree":
        named = {"rest": regimes.where_timed([row]), "hot": "in short bursts with a warm L2"}
        times = remarks.agreement_words(remarks.read_notes(row["agreement_notes"]), named)
        texts.append(f"the profilers' times differ: {times}")
    if row.get("throttle_reasons") and not regimes.at_rest([row]):  # else only launches at full clock count
        reasons = str(row["throttle_reasons"]).replace("sw_", "software ").replace("hw_", "hardware ")
        texts.append(f"the GPU throttled during timing: {reasons.replace('_', ' ')}")
    return tuple(texts)
