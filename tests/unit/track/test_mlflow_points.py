"""Metric points from the tables: names and steps never collide; one kernel per launch, one status per run."""

from dataclasses import replace

import made_up_mechanisms
import small_campaign
from warplog import metrics
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.tables import view
from warplog.track import points, runs
from warplog.track.points import Point, case_steps, limited, main_rows


def test_case_steps_never_put_two_cases_on_one_point():
    rows = [{"case": c, "size": 64} for c in ("zeros", "random", "64")] + [{"case": "big", "size": 128}]
    steps = case_steps(rows, "random")
    assert len(set(steps.values())) == len(rows)
    assert steps["random"] == ("", 64)
    assert case_steps([{"case": "a", "size": 1}, {"case": "b", "size": 2}], "a") == {
        "a": ("", 1),
        "b": ("", 2),
    }


def test_main_rows_are_of_the_longest_kernel_and_the_whole_launch():
    def row(kernel, metric, value, tool="ncu"):
        return {"kernel": kernel, "launch": 0, "metric": metric, "value": value, "tool": tool}

    rows = [
        row("a", "duration_us", 1.0),
        row("void ns::b<8>(int)", "duration_us", 5.0),
        row("", "x", 1.0, "nsys"),
    ]
    assert [r["kernel"] for r in main_rows(rows)] == ["", "void ns::b<8>(int)"]


def test_every_metric_name_is_legal_and_none_covers_another():
    from mlflow.utils.validation import _validate_metric_name

    series = [name for name, _ in points.MEASURES.values()]
    headlines = [points.headline(column) for column in points.HEADLINES]
    profiled = [f"profile/{name}" for name in points.PROFILED]
    names = [*series, *headlines, *points.STATE.values(), *profiled]
    assert len(set(names)) == len(names)
    assert set(points.PROFILED) <= set(metrics.METRICS)
    for name in names:
        _validate_metric_name(name)


def test_a_run_has_at_most_60_metrics_and_the_headline_is_never_left_out():
    many = [Point(f"time/median_us_case{n}", 1.0, n) for n in range(100)]
    kept = {point.name for point in limited([*many, Point("headline/median_us", 1.0, 0)])}
    assert len(kept) == 60
    assert "headline/median_us" in kept


def test_metrics_that_are_always_zero_are_left_out():
    series = [Point("time/median_us", 0.0, 1), Point("time/median_us", 2.0, 2)]
    assert limited([*series, Point("profile/ipc", 0.0, 0)]) == series


def test_status_tells_the_worst_failure_but_not_what_a_case_cannot():
    status = runs.status_of
    assert status([("ok", ""), ("unsupported", "needs N to be a multiple of 128")]) == ("ok", "")
    assert status([("ok", ""), ("timeout", "slow"), ("wrong", "off")]) == ("wrong", "off")
    assert status([("skipped", "b"), ("skipped", "")]) == ("skipped", "b")
    assert status([("ok", ""), ("ok", "recorded for an earlier version")]) == (
        "ok",
        "recorded for an earlier version",
    )
    assert status([])[0] == "missing"


def test_a_run_has_the_mechanism_of_its_step_as_tags_and_both_savings_as_metrics():
    tables = replace(view.load(small_campaign.FOLDER / "tables", "sgemm"), **made_up_mechanisms.tables())
    campaign = door.read(next((small_campaign.FOLDER / "campaign").iterdir()), Campaign)
    made = {run.variant: run for run in runs.runs(tables, campaign)}
    run = made["gmem_coalesced"]
    assert (run.tags["mechanism"], run.tags["mechanism_word"]) == ("coalescing", "predicted")
    metrics_of = {point.name: point.value for point in run.points}
    assert (metrics_of["mechanism/predicted_us"], metrics_of["mechanism/measured_us"]) == (250e3, 251.9e3)
    assert (metrics_of["mechanism/low_us"], metrics_of["mechanism/high_us"]) == (150e3, 350e3)
    unknown = made["vectorized"]
    assert unknown.tags["mechanism_word"] == "not_in_evidence"
    assert "mechanism/predicted_us" not in {point.name for point in unknown.points}
    assert "mechanism" not in made["naive"].tags, "it is no step"
