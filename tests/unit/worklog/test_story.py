"""The main path of a ladder, its detours, and the counters and memory charts that explain a step."""

import math
from dataclasses import replace

import pytest
from warplog.worklog.pictures.story import counters, path_table, waterfall
from worklog_pages import FAMILY, Page, rung, told

from warplog import worklog
from warplog.analysis.decomposition import Change, Factor, StateChange, Step, Use
from warplog.worklog import explain
from warplog.worklog.html import html


def row(parent, us, **more):
    ends = {"q1_us": us * 0.999, "q3_us": us * 1.001}
    return {"parent": parent, "median_us": us, "status": "ok", "is_baseline": False, **ends, **more}


LADDER = {
    "first": row(None, 100.0),
    "second": row("first", 20.0),
    "wrong": row("second", math.nan, status="wrong"),
    "dead_end": row("second", 40.0),
    "deeper": row("dead_end", 39.99),
    "third": row("second", 10.0),
    "unrelated": row(None, 50.0),
    "library": row(None, 5.0, is_baseline=True),
}
SPEEDS = dict.fromkeys(LADDER, "")


def test_a_path_may_begin_at_the_baseline():
    rows = {
        "plain": row(None, 9.0, is_baseline=True),
        "better": row("plain", 3.0),
        "best": row("better", 1.0),
    }
    assert [step.name for step in waterfall(rows, dict.fromkeys(rows, ""), "plain").steps] == list(rows)


def test_detours_stand_at_the_step_of_the_path_that_they_descend_from():
    steps = {step.name: step for step in waterfall(LADDER, SPEEDS, "library").steps}
    assert {(one.name, one.ratio, one.verdict) for one in steps["second"].detours} == {
        ("wrong", "", "wrong"),
        ("dead_end", "0.500x", "slower"),
        ("deeper", "0.500x", "slower"),
    }
    assert {one.step for one in steps["second"].detours} == {"second"}, (
        "not its parent, which is another detour"
    )
    assert steps["first"].detours == steps["third"].detours == ()
    with_detours = path_table(waterfall(LADDER, SPEEDS, "library"))
    assert with_detours.titles[3] == "detours, over this step"
    assert with_detours.rows[1][3].startswith("wrong wrong, dead_end 0.500x")
    alone = {name: LADDER[name] for name in ("first", "second", "third", "library")}
    table = path_table(waterfall(alone, SPEEDS, "library"))
    assert table.titles == ("main path", "speed", "over the previous step"), "no column without a detour"
    assert {len(row) for row in table.rows} == {3}


def test_equal_factors_are_equal_lengths_and_a_step_begins_where_the_one_before_ends():
    times = {"a": 1000.0, "b": 100.0, "c": 10.0}
    rows = {name: row(parent, times[name]) for name, parent in (("a", None), ("b", "a"), ("c", "b"))}
    fall = waterfall(rows, dict.fromkeys(rows, ""))
    _, second, third = fall.steps
    assert second.end - second.start == pytest.approx(third.end - third.start)
    assert third.start == second.end
    assert fall.steps[0].start == fall.steps[0].end, "the first step gains over nothing"
    assert 0 < fall.steps[0].end < third.end <= 1
    assert [step.ratio for step in fall.steps] == ["", "10.0x", "10.0x"]
    assert fall.baseline is None


def test_a_path_of_two_steps_has_no_waterfall():
    assert waterfall({name: LADDER[name] for name in ("first", "second")}, SPEEDS) is None


def test_the_page_opens_with_the_main_path_and_folds_the_detours(page):
    assert [step.name for step in page.waterfall.steps] == [one.name for one in page.rungs if one.on_path]
    source = html(page)
    assert source.index('class="fall"') < source.index('id="rung-')
    for one in page.rungs:
        tag = "section" if one.on_path else "details"
        assert f'<{tag} class="rung{"" if one.on_path else " side"}" id="rung-{one.name}">' in source


def test_a_step_shows_what_was_expected_of_it_beside_what_it_got(recorded, tmp_path):
    variants = recorded.variants.assign(expected="Twice the speed, <at most>.")
    page = told(replace(recorded, variants=variants))
    assert "Twice the speed, <at most>." in Page(html(page)).text
    assert "Expected: Twice the speed, &lt;at most>." in worklog.markdown(page, tmp_path)
    assert rung(page, "warptile").header.cost.startswith("Seven ")


def test_names_between_backticks_are_code_in_what_was_expected(recorded, tmp_path):
    variants = recorded.variants.assign(expected="Twice `naive`, not `<b>`.")
    page = told(replace(recorded, variants=variants))
    assert "Twice <code>naive</code>, not <code>&lt;b&gt;</code>." in html(page)
    assert "Expected: Twice `naive`, not \\`&lt;b>\\`." in worklog.markdown(page, tmp_path)


def test_at_most_three_counters_explain_a_step_and_none_a_tie(page, recorded):
    shown = {one.name: one.counters for one in page.rungs}
    assert ("LDG instructions", "4.29 G", "134 M") in shown["smem_tiled"]
    assert all(len(found) <= 3 for found in shown.values())
    rows = recorded.measurements.copy()
    parent = rows[(rows["variant"] == "gmem_coalesced") & (rows["case"] == "4096")]
    hit = (rows["variant"] == "smem_tiled") & (rows["case"] == "4096")
    for column in ("median_us", "q1_us", "q3_us"):
        rows.loc[hit, column] = parent[column].iloc[0]
    assert rung(told(replace(recorded, measurements=rows), FAMILY), "smem_tiled").counters == ()


def test_no_counter_moves_against_the_step_that_it_explains(recorded):
    for step in explain.Explanation(recorded).steps:
        for name, before, after in counters(step):
            if name in {state.name for state in step.states}:
                times = [float(text.split()[0]) for text in (before, after)]
                assert (times[1] < times[0]) == (step.ratio > 1)


def test_the_state_that_explains_a_step_is_given_as_a_time():
    issues, wait = StateChange("issuing or ready", 0.9, 0.1, ()), StateChange("barrier", 0.3, 0.5, ())
    fewer = Factor(Change("sm_busy_pct", 96.0, 48.0), 0.5)
    step = Step("f", "child", "parent", "4096", 0.9, (fewer,), (issues, wait), 1.0, kernel_us=(200.0, 220.0))
    assert counters(step) == (("SM activity", "96 %", "48 %"), ("barrier", "60 µs", "100 µs"))


def test_the_counters_are_those_that_the_sentences_tell_first():
    faster = Factor(Change("ipc", 1.0, 4.0), 4.0)
    step = Step("f", "child", "parent", "4096", 4.0, (faster,), (), 1.0, kernel_us=(40.0, 10.0))
    assert counters(step) == (("instructions per cycle", "1", "4"),)
    grid = Change("grid_blocks", 32, 4096), Change("waves_per_sm", 0.015, 3.88)
    assert counters(replace(step, use=Use(grid=grid))) == (("blocks in the grid", "32", "4096"),)
    busier = Use(
        units=(Change("dram_throughput_pct", 21.0, 84.0),),
        even={"dram_throughput_pct": Change("dram_bytes", 9e6, 9e6)},
    )
    assert counters(replace(step, use=busier)) == (("device memory", "21 %", "84 %"),)
    assert counters(replace(step, use=Use(contended=(True, False)))) == ()


def test_steps_with_the_same_kernel_are_said_to_have_it_and_have_no_ratio():
    alike = dict.fromkeys(("second", "third", "dead_end"), ("second", "third", "dead_end"))
    fall = waterfall(LADDER, SPEEDS, "library", "third", alike)
    assert [(step.ratio, step.tied) for step in fall.steps] == [
        ("", False),
        ("5.00x", False),
        ("same kernel", True),
    ]
    assert [row[2] for row in path_table(fall).rows] == ["", "5.00x", "same kernel"]
    same = next(one for one in fall.steps[1].detours if one.name == "dead_end")
    assert (same.ratio, same.verdict) == ("", "same kernel")


def test_a_step_has_the_chart_of_its_parent_and_its_own_with_the_recorded_values(recorded):
    page = told(recorded)
    parent, own = rung(page, "blocktile_2d").memory
    assert (parent.title, own.title) == ("blocktile_1d", "blocktile_2d")
    rows = recorded.counters(["l2_hit_pct"]).set_index("variant")["l2_hit_pct"]
    for one in (parent, own):
        hits = next(box for box in one.boxes if box.name == "L2").lines[1].removeprefix("▲ ")
        assert float(hits.removesuffix(" % hits")) == pytest.approx(rows[one.title], abs=0.05)
    (first,) = rung(page, "naive").memory
    assert first.title == "naive"


def test_the_charts_are_on_the_page_folded_and_with_a_text_for_those_who_do_not_see_them(recorded):
    source = html(told(recorded))
    shown = Page(source)
    assert "Memory chart: blocktile_1d and blocktile_2d" in shown.text
    assert "at least 10 % more or less than in the parent" in shown.text
    assert 'aria-label="Memory chart of blocktile_2d: Kernel' in source


def test_a_step_without_counters_has_no_chart(recorded):
    rows = recorded.metrics.copy()
    rows.loc[rows["variant"] == "blocktile_2d", "value"] = math.nan
    page = told(replace(recorded, metrics=rows))
    assert rung(page, "blocktile_2d").memory == ()
    assert [chart.title for chart in rung(page, "vectorized").memory] == ["vectorized"]


def test_the_lead_tells_the_main_path_from_the_step_that_the_waterfall_begins_with(recorded):
    variants = recorded.variants.copy()
    variants.loc[variants["variant"] == "naive", "parent"] = "cublas"
    page = told(replace(recorded, variants=variants))
    assert page.waterfall.steps[0].name == "cublas"
    way = next(text for text in page.lead if "main path" in text)
    assert way.startswith("In 7 steps, the main path leads from cublas (51.2 TFLOP/s) to warptile."), (
        "told in percent"
    )
    way = next(text for text in told(recorded).lead if "main path" in text)
    assert way.startswith("In 6 steps, the main path leads from naive")
