"""The memory charts of a step: its kernel below its parent's, drawn in the page."""

import math
from dataclasses import replace

import pytest
from worklog_pages import RECORDED, Page, rung, told

from warplog import worklog
from warplog.tables import view


@pytest.fixture(scope="module")
def tables():
    return view.load(RECORDED / "tables", "sgemm")


def test_a_step_has_the_chart_of_its_parent_and_its_own_with_the_recorded_values(tables):
    page = told(tables)
    parent, own = rung(page, "blocktile_2d").memory
    assert (parent.title, own.title) == ("blocktile_1d", "blocktile_2d")
    rows = tables.counters(["l2_hit_pct"]).set_index("variant")["l2_hit_pct"]
    for one in (parent, own):
        hits = next(box for box in one.boxes if box.name == "L2").lines[1].removeprefix("▲ ")
        assert float(hits.removesuffix(" % hits")) == pytest.approx(rows[one.title], abs=0.05)
    (first,) = rung(page, "naive").memory
    assert first.title == "naive"


def test_the_charts_are_on_the_page_folded_and_with_a_text_for_those_who_do_not_see_them(tables):
    source = worklog.html(told(tables))
    shown = Page(source)
    assert "Memory chart: blocktile_1d and blocktile_2d" in shown.text
    assert "at least 10 % more or less than the parent" in shown.text
    assert 'aria-label="Memory chart of blocktile_2d: Kernel' in source


def test_a_step_without_counters_has_no_chart(tables):
    rows = tables.metrics.copy()
    rows.loc[rows["variant"] == "blocktile_2d", "value"] = math.nan
    page = told(replace(tables, metrics=rows))
    assert rung(page, "blocktile_2d").memory == ()
    assert [chart.title for chart in rung(page, "vectorized").memory] == ["vectorized"]
