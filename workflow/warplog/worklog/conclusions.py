"""Conclusions as rows: the ladder, its steps with what they change, bounds and verdicts of a family."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from warplog.analysis import verdicts
from warplog.catalog.family import Family
from warplog.core.columns import Row, number, text
from warplog.metrics import METRICS
from warplog.tables import conclusions as rows
from warplog.tables import regimes
from warplog.tables.conclusions import NAN, Change, Conclusion, Place, Verdict
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.worklog import bounds as bounding
from warplog.worklog.decomposition import CLOCK, ISSUING, Factor, StateChange
from warplog.worklog.decomposition import Change as Moved
from warplog.worklog.decomposition import Step as Decomposed
from warplog.worklog.kinship import time_us
from warplog.worklog.ladder import Ladder
from warplog.worklog.pictures.story import main_path
from warplog.worklog.sentences import main_causes, main_factors, main_states
from warplog.worklog.steps.use import BLOCKS

_CEILINGS = {name: counter for counter, name in bounding.NAMES.items()}
_WAITS = {
    "the tensor cores": "wgmma",
    "a barrier or the tensor cores": "barrier_or_wgmma",
    "TMA loads": "tma",
    "loads or other warps": "mbarrier",
    "an mbarrier, or data from global or local memory": "mbarrier_or_memory",
}
_UNITS = {"sm_busy_pct": "%", CLOCK: "MHz", BLOCKS: "blocks", "bubble_us": "us"}


def conclude(
    family: Family, tables: FigureTables, machine_code: Mapping[str, Path]
) -> dict[str, list[Conclusion]]:
    """Returns the rows of each table of conclusions about a family."""
    ladder = Ladder(family, tables, machine_code)
    return {
        "verdicts": list(_verdicts(ladder)),
        "ladder": list(_places(ladder)),
        "steps": [_step(ladder, step) for step in ladder.explanation.steps],
        "changes": [change for step in ladder.explanation.steps for change in _changes(step)],
        "bounds": [_bound(ladder, one) for one in ladder.explanation.bounds],
    }


def _verdict(family: str, mine: Row, other: Row, case: str) -> Verdict | None:
    first, second = verdicts.timed(other), verdicts.timed(mine)
    if first is None or second is None or mine["status"] != "ok" or other["status"] != "ok":
        return None
    found = verdicts.judge(first, second)
    return Verdict(
        family, str(mine["variant"]), str(other["variant"]), case, "rest", found.word, found.reason, second.us,
        first.us, 1 / found.ratio, 1 / found.high, 1 / found.low, 100 * found.floor, found.p,
    )  # fmt: skip


def _verdicts(ladder: Ladder) -> Iterator[Verdict]:
    for case, by_variant in ladder._by_case.items():
        own = {n: r for n, r in by_variant.items() if time_us(r) > 0 and n != ladder.family.baseline}
        fastest = min(own, key=lambda name: time_us(own[name]), default="")
        for name, row in by_variant.items():
            above = []
            place = text(ladder.rows.get(name, {}), "parent")
            while place in by_variant and place not in above:
                above.append(place)
                place = text(ladder.rows[place], "parent")
            for other in dict.fromkeys((*above, ladder.family.baseline, fastest, ladder.best)):
                if other and other != name and other in by_variant:
                    found = _verdict(ladder.family.name, row, by_variant[other], case)
                    if found:
                        yield found


def _against(ladder: Ladder, name: str, other: str) -> tuple[str, float, float, float]:
    """Returns word, speed-up and interval at the headline case."""
    rows_ = ladder.rows
    found = _verdict("", rows_[name], rows_[other], "") if name in rows_ and other in rows_ else None
    return (found.word, found.speedup, found.low, found.high) if found else ("", NAN, NAN, NAN)


def _places(ladder: Ladder) -> Iterator[Place]:
    path = main_path(ladder.rows, ladder.best)
    before = dict(zip(path[1:], path, strict=False))
    column, unit, factor = ladder.unit
    for order, (name, row) in enumerate(ladder.rows.items()):
        previous = before.get(name, "")
        if name not in path:
            previous, seen = text(row, "parent"), {name}
            while previous not in path and previous in ladder.rows and previous not in seen:
                seen.add(previous)
                previous = text(ladder.rows[previous], "parent")
            previous = previous if previous in path else ""
        alike = ladder.alike.get(name, ())
        run = regimes.long_run(row) if row["status"] == "ok" else None
        speed = number(row, column) * factor if row["status"] == "ok" else NAN
        slower = NAN if run is None else speed * (run.factor if column != "median_us" else 1 / run.factor)
        best = ladder.best
        tied = name != best and best and verdicts.tied(row, ladder.rows[best])
        yield Place(
            ladder.family.name, name, ladder.tables.case, order, path.index(name) + 1 if name in path else 0, previous,
            *_against(ladder, name, previous),
            alike[0] if alike and alike[0] != name else "",
            "best" if name == best else "tied" if tied else "",
            speed, slower, unit, 100 * number(row, "ratio_to_baseline"),
            run.regime.replace(" ", "_") if run else "", run.limited_by if run else "",
        )  # fmt: skip


def _step(ladder: Ladder, step: Decomposed) -> rows.Step:
    at = {str(r["variant"]): r for r in as_rows(ladder.tables.ladder(step.case))}
    found = _verdict("", at[step.variant], at[step.parent], "") if step.parent in at else None
    explained = (
        "" if step.gap
        else "tied" if step.tied
        else "same_kernel" if step.same_kernel
        else "other_kernels" if step.is_elsewhere
        else "within_runs" if step.is_within_runs
        else "counters" if step.explicable
        else "little"
    )  # fmt: skip
    gap = "" if not step.gap else "no_time" if math.isnan(step.ratio) else "no_counters"
    twin, (own, parent) = step.twin, (step.kernel_us[1], step.kernel_us[0])
    shares = [
        100 * k / (k + o) if k > 0 else NAN for k, o in zip(step.kernel_us, step.others_us, strict=True)
    ]
    return rows.Step(
        step.family, step.variant, step.parent, step.case, gap, "", step.gap,
        *((found.word, found.speedup, found.low, found.high) if found else ("", NAN, NAN, NAN)),
        explained, step.remainder, own, parent, step.others_us[1], step.others_us[0], shares[1], shares[0],
        *(step.ancestor or ("", NAN)),
        twin.variant if twin else "", ("same" if twin.same else "recompiled") if twin else "",
        "" if twin is None else _against(ladder, step.variant, twin.variant)[0],
        twin.ratio if twin else NAN, *(twin.instructions if twin else (-1, -1)), twin.registers if twin else -1,
        step.use.idle,
    )  # fmt: skip


def _unit(name: str) -> str:
    return METRICS[name].unit if name in METRICS else _UNITS.get(name, "")


def _changes(step: Decomposed) -> Iterator[Change]:
    """Yields causes first, then costs, then effects and details; each quantity once."""
    if step.gap:
        return
    told: dict[tuple[str, str], Change] = {}
    explained = step.explicable
    helps = step.ratio > 1

    def add(role: str, kind: str, moved: Moved, of: str = "", factor: float = NAN) -> None:
        told.setdefault(
            (kind, moved.name),
            Change(step.family, step.variant, len(told), step.parent, step.case, role, kind, moved.name, moved.before,
                   moved.after, _unit(moved.name), factor, NAN, of, "", "", "", ""),
        )  # fmt: skip

    def add_factor(role: str, one: Factor) -> None:
        add(role, "clock" if one.change.name == CLOCK else "factor", one.change, factor=one.factor)
        for change in one.evidence:
            add("detail", "counter", change, of=one.change.name)

    def add_state(role: str, one: StateChange) -> None:
        name = ISSUING.replace(" ", "_") if one.name == ISSUING else one.name
        parent = step.kernel_us[0]
        waits = [(_WAITS[w.what], w.line) if w else ("", "") for w in (one.wait, one.parents)]
        told.setdefault(
            ("state", name),
            Change(step.family, step.variant, len(told), step.parent, step.case, role, "state", name,
                   one.before * parent, one.after * parent, "us", NAN, one.share * parent, "", *waits[0], *waits[1]),
        )  # fmt: skip
        for change in one.evidence:
            add("detail", "counter", change, of=name)

    if explained:
        for one in main_causes(step):
            add(
                "cause",
                "unit" if one.name in bounding.NAMES else "sectors" if "sectors" in one.name else "grid",
                one,
            )
        for one in main_factors(step):
            add_factor("cause" if (one.factor > 1) == helps else "cost", one)
        for state in main_states(step):
            add_state("cause" if (state.share > 0) == helps else "cost", state)
    for one in step.use.traffic:
        add("detail", "traffic", one)
    for one in step.use.units:
        add("effect", "unit", one)
    for one in step.use.sectors:
        add("detail", "sectors", one)
    for one in (step.use.occupancy, step.use.blocks):
        if one:
            add("detail", "occupancy" if one is step.use.occupancy else "blocks", one)
    if end := step.use.tile_end:
        add("detail", "bubble", Moved("bubble_us", end[1], end[2]), of=end[0])
    for factor in step.factors:
        add_factor("detail", factor)
    for state in step.states:
        add_state("detail", state)
    yield from itertools.chain(told.values())


def _bound(ladder: Ladder, one: bounding.Bound) -> rows.Bound:
    launch, row = ladder.launches.get(one.variant, {}), ladder.rows[one.variant]
    compulsory = ladder._compulsory_bytes(row)
    moved = launch.get("dram_bytes", NAN)
    run = one.long_run
    is_l2 = one.ceiling == bounding.NAMES["l2_throughput_pct"]
    excess, whole = (launch.get(n, NAN) for n in ("shared_wavefronts_excess", "shared_wavefronts"))
    beside = "" if math.isnan(one.beside_pct) else "dram_throughput_pct" if is_l2 else "l2_throughput_pct"
    return rows.Bound(
        ladder.family.name, one.variant, ladder.tables.profiled_case, ladder.kernels.get(one.variant, ""),
        "no_counters" if one.gap else "", one.kind, _CEILINGS.get(one.ceiling, ""), one.ceiling_pct, beside,
        one.beside_pct, one.l1_bytes_pct, one.shared, one.stall, one.stall_pct,
        _WAITS[one.wait.what] if one.wait else "", one.wait.line if one.wait else "",
        one.theoretical_pct, one.achieved_pct, ",".join(one.limiters),
        -1 if math.isnan(one.blocks) else int(one.blocks), one.waves, -1 if math.isnan(one.sms) else int(one.sms),
        one.profiled_cycles, one.copies_us, moved, compulsory, moved / compulsory if compulsory > 0 else NAN,
        100 * excess / whole if whole > 0 else NAN,
        run.rest_us if run else NAN, run.long_us if run else NAN, run.long_us / run.rest_us if run else NAN,
        run.regime.replace(" ", "_") if run else "", run.limited_by if run else "",
        run.from_mhz if run else NAN, run.to_mhz if run else NAN, run.watts if run else NAN,
    )  # fmt: skip


def missing_integers(found: Sequence[Conclusion]) -> list[Row]:
    """Returns rows of a table, in which an integer that is not known is empty instead of -1."""
    integers = {
        n for one in found[:1] for n, column in rows.columns(type(one)).items() if column.kind == "int"
    }
    return [
        {n: None if n in integers and value == -1 else value for n, value in rows.cells(one).items()}
        for one in found
    ]
