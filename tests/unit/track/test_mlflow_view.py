"""The saved view: valid, deterministic, and limited to metrics and parameters that the runs have."""

import base64
import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from track_tables import CAMPAIGN, LADDER, write_tables

from warplog.core.errors import WarplogError
from warplog.tables import view as figure_data
from warplog.tables.view import FigureTables
from warplog.track import runs as mlflow_runs
from warplog.track import view as mlflow_view
from warplog.track.identity import identified
from warplog.track.view import View


def decode(tag):
    """Returns the state in a view's tag, unpacked as the UI does it."""
    mark, packed = json.loads(tag)["state"].split(";", 1)
    assert mark == "deflate"
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def load(folder: Path, family: str) -> FigureTables:
    """Writes made-up tables to `folder` and returns one family's rows."""
    tables = write_tables(folder)
    return mlflow_runs.of_campaign(figure_data.load(tables, family), CAMPAIGN)


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    data = load(tmp_path_factory.mktemp("tables"), "sgemm")
    runs = mlflow_runs.runs(data, identified(CAMPAIGN))
    return View("Speed and counters", "tags.campaign = 'x'", "gflops", "4096", "matrix size n", runs)


def test_the_tag_is_what_the_ui_reads(view):
    tag = json.loads(view.tag())
    assert tag["name"] == "Speed and counters"
    assert isinstance(tag["createdAt"], int)
    assert decode(view.tag())["runsHiddenMode"] == "SHOW_ALL"


def test_the_same_runs_give_the_same_tag(view):
    assert view.tag() == replace(view).tag()


def test_every_metric_parameter_and_tag_of_the_view_exists(view):
    state = decode(view.tag())
    names = {point.name for run in view.runs for point in run.points}
    params = {name for run in view.runs for name in run.params}
    tags = {name for run in view.runs for name in (*run.tags, *run.looks)}
    for column in state["selectedColumns"]:
        kind, name = column.rstrip("`").split(".`")
        assert name in {"metrics": names, "params": params, "tags": tags}[kind], column
    for chart in state["compareRunCharts"]:
        assert mlflow_view._metrics_of(chart) <= names
        assert set(chart.get("selectedParams", ())) <= params
    assert state["orderByKey"] == "metrics.`headline/achieved_tflop_per_s`"


def test_the_table_begins_with_the_result_of_a_variant(view):
    state = decode(view.tag())
    assert state["columnOrder"] == ["attributes.`Run Name`", *state["selectedColumns"]]
    assert set(state["columnWidths"]) == set(state["columnOrder"])
    assert state["selectedColumns"][:8] == [
        "metrics.`headline/achieved_tflop_per_s`",
        "metrics.`headline/pct_of_baseline`",
        "tags.`gain_over_parent`",
        "tags.`gain_verdict`",
        "tags.`status`",
        "tags.`dominant_stall`",
        "tags.`occupancy_limiter`",
        "params.`parent`",
    ]


def test_it_shows_all_runs_speed_against_size_stalls_and_knobs(view):
    state = decode(view.tag())
    charts = {(c["type"], c.get("metricKey", "")): c for c in state["compareRunCharts"]}
    assert state["runsHiddenMode"] == "SHOW_ALL"
    assert all(chart["runsCountToCompare"] >= len(LADDER) for chart in charts.values())
    for wanted in ("perf/achieved_tflop_per_s", "perf/pct_of_baseline"):
        assert charts["LINE", wanted]["xAxisKey"] == "step"
        assert charts["LINE", wanted]["xAxisScaleType"] == "log"
    bars = {name for kind, name in charts if kind == "BAR"}
    assert bars >= {
        "headline/achieved_tflop_per_s",
        "profile/stall_long_scoreboard_cycles_per_issue",
        "profile/achieved_occupancy_pct",
        "profile/shared_conflict_ways",
        "profile/dram_bytes",
    }
    assert "profile/stall_selected_cycles_per_issue" not in bars
    assert "profile/stall_not_selected_cycles_per_issue" not in bars, "it waits for nothing"
    tiles, resources = (c for c in state["compareRunCharts"] if c["type"] == "PARALLEL")
    assert tiles["selectedParams"][:3] == ["tuning/BM", "tuning/BN", "tuning/BK"]
    assert "kernel/registers_per_thread" in resources["selectedParams"]
    assert all("headline/achieved_tflop_per_s" in chart["selectedMetrics"] for chart in (tiles, resources))


def test_every_chart_lies_in_a_section_and_ours_come_first(view):
    state = decode(view.tag())
    sections = {s["uuid"]: s for s in state["compareRunSections"]}
    assert {c["metricSectionId"] for c in state["compareRunCharts"]} <= set(sections)
    names = [s["name"] for s in state["compareRunSections"]]
    assert [name[0] for name in names[:3]] == ["1", "2", "3"]
    assert "matrix size n" in names[0]
    assert [s["display"] for s in state["compareRunSections"]] == [True] * 3 + [False] * (len(names) - 3)
    assert {s["columns"] for s in state["compareRunSections"]} == {2}
    assert len({c["uuid"] for c in state["compareRunCharts"]}) == len(state["compareRunCharts"])
    assert len(set(names)) == len(sections)


def test_a_view_of_all_campaigns_tells_them_apart(view):
    state = decode(replace(view, several=True).tag())
    assert state["selectedColumns"][0] == "tags.`campaign`"
    assert state["runsHiddenMode"] == "FIRST_20_RUNS", "charts of a thousand runs are slow and unreadable"
    assert "tags.`campaign`" not in decode(view.tag())["selectedColumns"]


def test_a_family_without_flops_counters_or_tiles_still_has_a_view(tmp_path: Path):
    data = load(tmp_path, "histogram")
    view = View("v", "", "gbytes_per_s", data.case, "elements", mlflow_runs.runs(data, identified(CAMPAIGN)))
    state = decode(view.tag())
    assert [c.get("metricKey") for c in state["compareRunCharts"]] == [
        "headline/achieved_gb_per_s",
        "perf/achieved_gb_per_s",
        "perf/pct_of_baseline",
        "profile/dram_bytes",
    ]
    assert state["orderByAsc"] is False
    empty = decode(View("v", "", "median_us", "1", "n", []).tag())
    assert empty["compareRunCharts"] == empty["compareRunSections"] == []
    assert empty["orderByKey"] == "attributes.start_time"
    assert not any("headline" in column for column in empty["selectedColumns"])


def test_a_view_too_long_for_mlflow_is_an_error(view):
    with pytest.raises(WarplogError, match="MLflow accepts 20000"):
        replace(view, name="x" * 20_000).tag()


def test_a_large_family_fits(view):
    """200 variants with every metric: the tag holds names, not values."""
    assert len(replace(view, runs=list(view.runs) * 20).tag()) < mlflow_view.MOST_TAG_CHARACTERS / 2


def test_the_link_opens_the_table_of_the_view_in_the_right_mode():
    link = mlflow_view.path("7", "warplog-h200-live")
    assert link.startswith("#/experiments/7/runs?workflowType=machine_learning&")
    assert link.endswith("viewStateShareKey=warplog-h200-live")
