"""Rows that are concluded from tables: what must hold however the tables are turned, and examples by hand."""

from dataclasses import replace

import pandas as pd
import pytest

from made_up_tables import MadeUpTables
from made_up_traces import ACCESSES, with_traces
from warplog.analysis.conclude import conclude
from warplog.analysis.explanation import Explanation
from warplog.tables import conclusions
from warplog.tables.files import as_frame

FLOOR = {"gpu": "h200", "processes": 3, "floor": 0.01, "deviation": 0.003, "freedom": 100.0, "groups": 0.0}
COUNTED = {
    "instructions_executed": 1e9, "waves_per_sm": 3.0, "l2_throughput_pct": 70.0, "stall_barrier_pct": 80.0,
    "stall_barrier_cycles_per_issue": 5.0, "stall_selected_cycles_per_issue": 1.0,
}  # fmt: skip


def family(parents=None, times=None, order=None, **facts):
    """Tables of a family: a naive step, its successor that is the baseline, and one that is twice as fast."""
    parents = parents or {"naive": "", "base": "naive", "best": "base"}
    times = times or {"naive": 400.0, "base": 200.0, "best": 100.0}
    made = MadeUpTables()
    for place, name in enumerate(order or parents):
        made.variant("f", name, place, len(parents), "1", parent=parents[name], is_baseline=name == "base")
        made.measured("f", name, "1", 1024, times[name], 1e9, 1e6, **facts)
        cycles = 2000 * times[name]
        counted = COUNTED | {"duration_us": times[name], "gpu_cycles": cycles, "ipc": 1e9 / 132 / cycles}
        made.counted("f", name, "1", f"{name}()", 0, counted)
    return made.tables(f="base")


def verdict(concluded, name, against, case="1", regime="rest"):
    key = (name, against, case, regime)
    return next(row for row in concluded.verdicts if (row.variant, row.against, row.case, row.regime) == key)


def test_a_verdict_is_given_against_ancestors_the_baseline_the_fastest_and_the_best():
    concluded = conclude(family(), {})
    assert {(row.variant, row.against) for row in concluded.verdicts} == {
        ("naive", "base"), ("naive", "best"), ("base", "naive"), ("base", "best"), ("best", "base"), ("best", "naive"),
    }  # fmt: skip
    faster = verdict(concluded, "best", "base")
    assert (faster.word, faster.us, faster.against_us, faster.speedup) == ("FASTER", 100.0, 200.0, 2.0)
    assert faster.low < 2 < faster.high


def test_the_main_path_runs_through_a_baseline_that_is_a_step():
    places = {place.variant: place for place in conclude(family(), {}).ladder}
    assert [places[name].step for name in ("naive", "base", "best")] == [1, 2, 3]
    assert [places[name].previous for name in ("naive", "base", "best")] == ["", "naive", "base"]
    assert places["best"].fastest == "best"
    assert (places["best"].gain, places["best"].share_pct) == (2.0, 200.0)


def test_a_library_as_baseline_stays_beside_the_path():
    parents, times = {"naive": "", "best": "naive", "base": ""}, {"naive": 4.0, "best": 2.0, "base": 1.0}
    places = {place.variant: place for place in conclude(family(parents, times), {}).ladder}
    assert [places[name].step for name in ("naive", "best", "base")] == [1, 2, 0]
    assert (places["base"].previous, places["base"].word) == ("", "")


def test_a_step_has_the_times_before_and_after_and_its_reasons():
    concluded = conclude(family(), {})
    step = next(row for row in concluded.steps if row.variant == "best")
    assert (step.parent, step.word, step.speedup, step.explained, step.gap) == (
        "base", "FASTER", 2.0, "counters", "",
    )  # fmt: skip
    assert (step.kernel_us, step.parent_kernel_us, step.counted_pct) == (100.0, 200.0, 100.0)
    first = next(change for change in concluded.changes if change.variant == "best")
    assert (first.rank, first.role, first.quantity, first.unit) == (0, "cause", "barrier", "us")
    assert first.saved_us == pytest.approx(100 * 5 / 6)
    bound = next(row for row in concluded.bounds if row.variant == "best")
    assert (bound.kind, bound.ceiling, bound.ceiling_pct, bound.stall, bound.traffic) == pytest.approx(
        ("near", "l2_throughput_pct", 70.0, "barrier", float("nan")), nan_ok=True
    )


def test_sustained_times_are_compared_where_both_have_a_floor():
    tables = family(sustained_us=300.0)
    assert all(row.regime == "rest" for row in conclude(tables, {}).verdicts)
    floors = [
        {"family": "f", "variant": name, "case": "1", "regime": "sustained", **FLOOR}
        for name in ("naive", "base")
    ]
    concluded = conclude(replace(tables, floors=pd.DataFrame(floors)), {})
    sustained = [row for row in concluded.verdicts if row.regime == "sustained"]
    assert {(row.variant, row.against) for row in sustained} == {("naive", "base"), ("base", "naive")}
    assert {(row.word, row.us, row.speedup) for row in sustained} == {("SAME", 300.0, 1.0)}


def test_swapping_parent_and_child_turns_the_word_and_inverts_the_speed_up():
    times = {"a": 103.0, "b": 100.0, "base": 500.0}
    there = verdict(conclude(family({"a": "", "b": "a", "base": ""}, times), {}), "b", "a")
    back = verdict(conclude(family({"b": "", "a": "b", "base": ""}, times), {}), "a", "b")
    assert (there.word, back.word) == ("FASTER", "SLOWER")
    assert (back.speedup, back.low, back.high) == pytest.approx(
        (1 / there.speedup, 1 / there.high, 1 / there.low)
    )
    assert (back.p, back.floor_pct) == pytest.approx((there.p, there.floor_pct))


def by_key(concluded):
    """The rows of each table by their keys, with numbers to nine digits."""
    return {
        kind.TABLE: {
            tuple(getattr(row, key) for key in kind.KEYS): {
                name: f"{value:.9g}" if isinstance(value, float) else value
                for name, value in conclusions.cells(row).items()
            }
            for row in concluded.rows(kind.TABLE)
        }
        for kind in conclusions.OF_FAMILIES
    }


def without(concluded, *columns):
    return {
        table: {key: {n: v for n, v in row.items() if n not in columns} for key, row in rows.items()}
        for table, rows in by_key(concluded).items()
    }


def test_scaling_all_times_changes_no_word_speed_up_or_cause(recorded):
    rows = recorded.measurements.copy()
    for column in [name for name in rows if name.endswith("_us")]:
        rows[column] *= 2
    metrics = recorded.metrics.copy()
    metrics.loc[metrics["metric"].isin(["duration_us", "gpu_cycles"]), "value"] *= 2
    metrics.loc[metrics["metric"] == "ipc", "value"] /= 2
    slower = replace(recorded, measurements=rows, metrics=metrics)
    before, after = conclude(recorded, {}), conclude(slower, {})
    assert [(v.word, round(v.speedup, 9)) for v in before.verdicts] == [
        (v.word, round(v.speedup, 9)) for v in after.verdicts
    ]
    assert [(s.variant, s.word, s.explained) for s in before.steps] == [
        (s.variant, s.word, s.explained) for s in after.steps
    ]
    reasons = [
        [(c.variant, c.quantity, c.role) for c in side.changes if c.role in ("cause", "cost")]
        for side in (before, after)
    ]
    assert reasons[0] == reasons[1]


def test_a_variant_that_nobody_compares_with_changes_nothing_else():
    more = {"naive": "", "base": "naive", "best": "base", "alone": ""}
    times = {"naive": 400.0, "base": 200.0, "best": 100.0, "alone": 900.0}
    before, after = by_key(conclude(family(), {})), by_key(conclude(family(more, times), {}))
    for table, rows in before.items():
        left = {key: row for key, row in after[table].items() if key[1] != "alone"}
        assert left == rows, table


def test_the_order_of_the_rows_in_the_tables_changes_nothing(recorded):
    turned = replace(
        recorded,
        measurements=recorded.measurements.iloc[::-1].reset_index(drop=True),
        variants=recorded.variants.iloc[::-1].reset_index(drop=True),
    )
    assert by_key(conclude(turned, {})) == by_key(conclude(recorded, {}))


def test_the_order_of_variants_in_the_ladder_changes_only_their_position():
    turned = family(order=["best", "naive", "base"])
    assert without(conclude(turned, {}), "order") == without(conclude(family(), {}), "order")


def test_rows_come_back_from_their_table_as_they_were(recorded):
    names = {"naive": "naive", "smem_conflict": "gmem_coalesced", "padded": "smem_tiled"}
    traces = [row | {"family": "sgemm", "variant": names[row["variant"]]} for row in ACCESSES]
    concluded = conclude(with_traces(recorded, traces, is_counted=True), {})
    for kind in conclusions.OF_FAMILIES:
        rows = concluded.rows(kind.TABLE)
        cells = [conclusions.cells(row) for row in rows]
        table = as_frame(cells, conclusions.columns(kind), kind.TABLE)
        assert rows or kind is conclusions.SassStep, "no machine code in this campaign"
        assert repr(conclusions.rows(table, kind)) == repr(list(rows))


def test_every_explained_step_of_the_small_campaign_has_a_cause(recorded):
    concluded = conclude(recorded, {})
    caused = {change.variant for change in concluded.changes if change.role == "cause"}
    assert {row.variant for row in concluded.steps if row.explained == "counters"} == caused
    assert len(caused) >= 6


@pytest.mark.parametrize(
    ("changed", "borrowed"),
    [
        ("", True),
        ("block_threads", False),
        ("shared_bytes_per_block", False),
        ("occupancy_limit_registers_blocks", False),
    ],
)
def test_a_bubble_is_compared_with_that_of_a_farther_ancestor_only_if_its_blocks_are_alike(
    recorded, changed, borrowed
):
    gaps = {"blocktile_2d": 4.8, "warptile": 0.1}  # between them is vectorized, without a timeline
    metrics = recorded.metrics.copy()
    own = (metrics["variant"] == "blocktile_2d") & (metrics["metric"] == changed)
    limits = metrics["metric"].str.startswith("occupancy_limit_") & metrics["variant"].isin(
        ["blocktile_2d", "vectorized"]
    )
    metrics.loc[limits, "value"] = 4.0
    metrics.loc[own, "value"] = 1.0
    launches = pd.DataFrame(
        [{"variant": name, "case": "4096", "bubble_us": gap} for name, gap in gaps.items()]
    )
    explained = Explanation(replace(recorded, metrics=metrics, launches=launches))
    step = next(step for step in explained.steps if step.variant == "warptile")
    assert step.use.tile_end == (("blocktile_2d", 4.8, 0.1) if borrowed else None)
