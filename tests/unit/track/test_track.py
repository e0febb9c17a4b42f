"""What is logged to MLflow: runs equal the tables, and notes, tags and files state where the numbers come from."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from msgspec import structs
from track_tables import CAMPAIGN, LADDER, SIZES, write_tables

import made_up_records
from warplog.core.text import HIDDEN
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.tables import view as figure_data
from warplog.track import artefacts, runs
from warplog.track import points as track_points
from warplog.track.identity import identified

RECORDED = Path(__file__).parents[3] / "results" / "recorded" / "h200"
COLUMNS = {
    "gflops": ("perf/achieved_tflop_per_s", 1e-3),
    "gbytes_per_s": ("perf/achieved_gb_per_s", 1),
    "ratio_to_baseline": ("perf/pct_of_baseline", 100),
    "median_us": ("time/median_us", 1),
    "q1_us": ("time/q1_us", 1),
    "q3_us": ("time/q3_us", 1),
    "hot_us": ("time/hot_us", 1),
    "ncu_us": ("time/ncu_us", 1),
    "samples": ("time/samples", 1),
    "power_w": ("power/power_w", 1),
}


def test_runs_hold_what_the_tables_hold(template):
    measured = pd.read_parquet(template.tables / "measurements.parquet")
    for variant in LADDER:
        points = template.points(variant)
        rows = measured[(measured["variant"] == variant) & (measured["status"] == "ok")]
        for column, (name, factor) in COLUMNS.items():
            series = {step: value for (metric, step), value in points.items() if metric == name}
            assert series == {row.size_: getattr(row, column) * factor for row in _rows(rows)}, (
                variant,
                name,
            )


def _rows(frame: pd.DataFrame) -> list[Any]:
    return list(frame.rename(columns={"size": "size_"}).itertuples())


def test_counters_are_those_of_the_longest_kernel_of_the_profiled_case(template):
    points = template.points("warptile")
    counted = pd.read_parquet(template.tables / "metrics.parquet")
    rows = counted[(counted["variant"] == "warptile") & counted["kernel"].str.contains("warptile")]
    rows = rows[(rows["tool"] == "ncu") & (rows["case"] == "4096")].set_index("metric")["value"]
    for name in ("dram_bytes", "achieved_occupancy_pct", "stall_barrier_cycles_per_issue"):
        assert points[f"profile/{name}", 0] == pytest.approx(rows[name], rel=1e-5), name


def test_single_numbers_stand_at_step_0_and_series_at_the_size(template):
    points = template.points("warptile")
    for name, step in points:
        assert (step == 0) == name.startswith(("headline/", "profile/", "system/")), name
        assert step in (0, *SIZES)
    name = "achieved_tflop_per_s"
    assert points[f"headline/{name}", 0] == pytest.approx(points[f"perf/{name}", 4096], rel=1e-5)


def test_a_headline_has_the_rate_of_its_family_alone(template):
    assert ("headline/achieved_gb_per_s", 0) not in template.points("warptile")
    assert ("headline/achieved_gb_per_s", 0) in template.points("global_atomics", "histogram")


def test_the_tab_for_system_metrics_has_the_state_of_the_gpu_at_the_headline_case(template):
    points = template.points("warptile")
    assert points["system/power_w", 0] == pytest.approx(points["power/power_w", 4096], rel=1e-5)


def test_the_first_metric_by_name_is_a_speed_which_comparing_runs_starts_with(template):
    first = {min(run.data.metrics) for run in template.stored() if run.data.metrics}
    assert first == {"headline/achieved_tflop_per_s"}


def test_the_first_parameters_by_name_which_comparing_runs_starts_with_are_those_of_every_kernel(template):
    runs = [template.run(variant) for variant in ("naive", "warptile")]
    assert {min(run.data.params) for run in runs} == {"kernel/registers_per_thread"}


def test_a_run_of_the_recorded_campaign_has_at_most_60_metrics():
    tables = figure_data.read_all(RECORDED / "tables")
    record = door.read(RECORDED / "campaign" / "h200.json", Campaign)
    campaign = structs.replace(identified(record), origin="recorded")
    for family in ("sgemm", "histogram", "power"):
        data = runs.of_campaign(figure_data.of_family(tables, RECORDED / "tables", family), campaign)
        for run in runs.runs(data, campaign):
            assert 10 < len({point.name for point in run.points}) <= track_points.MOST_NAMES


def test_counts_of_machine_instructions_are_in_a_file_of_the_run(template):
    from mlflow.artifacts import download_artifacts

    run_id = template.run("warptile").info.run_id
    path = download_artifacts(run_id=run_id, artifact_path="tables/metrics.csv", tracking_uri=template.uri)
    assert "sass_LDG.E.128" in set(pd.read_csv(path)["metric"])
    assert not any("sass" in name for name, _ in template.points("warptile"))


def test_missing_values_are_not_logged(template):
    names = {name for name, _ in template.points("naive")}
    assert not any("tensor_flops" in name or "nsys_us" in name for name in names)
    assert not template.points("broken")


@pytest.mark.parametrize(
    ("variant", "status", "outcome"),
    [
        ("warptile", "ok", "FINISHED"),
        ("broken", "wrong", "FAILED"),
        ("tma_pipelined", "unsupported", "KILLED"),
    ],
)
def test_a_variant_without_a_result_has_a_run_that_says_so(template, variant, status, outcome):
    run = template.run(variant)
    assert (run.data.tags["status"], run.info.status) == (status, outcome)
    assert LADDER[variant].bad[1] in run.data.tags.get("reason", "")
    assert LADDER[variant].bad[1] in run.data.tags["mlflow.note.content"].replace("\\", "")


def test_provenance_is_in_the_tags_and_knobs_are_plain_numbers(template):
    run = template.run("warptile")
    for key in ("campaign", "gpu", "gpu_name", "driver", "cuda", "commit", "content_sha256", "origin"):
        assert run.data.tags[key] == getattr(CAMPAIGN, key)
    assert run.data.tags["mlflow.source.git.commit"] == CAMPAIGN.commit
    assert run.data.tags["dominant_stall"] == "long_scoreboard"
    assert run.data.tags["occupancy_limiter"] == "registers"
    tiles = {"tuning/BM": "128", "tuning/BK": "16", "tuning/TN": "4"}
    assert run.data.params | tiles == run.data.params
    assert run.data.params["kernel/registers_per_thread"] == "168"
    assert run.data.tags["tools"] == "nvcc 13.0.88, ncu 2025.3.1"
    assert run.data.params["language"] == "cuda"
    assert "mlflow.parentRunId" not in run.data.tags
    assert run.info.start_time == pd.Timestamp("2026-11-20T03:10:00Z").timestamp() * 1000


def test_the_gain_over_the_parent_is_a_tag_with_its_verdict(template):
    def told(variant):
        tags = template.run(variant).data.tags
        return tags.get("gain_over_parent"), tags.get("gain_verdict")

    assert told("naive") == (None, None), "it has no parent"
    assert told("warptile") == (f"{36.3 / 31.4:.2f}", "FASTER")
    assert told("broken") == ("n/a", "n/a"), "a wrong answer has no speed"


def test_a_gain_is_updated_in_place_and_kept_while_the_parent_is_left_out(project):
    run_id = project.run("warptile").info.run_id
    times = pd.read_parquet(project.tables / "measurements.parquet")
    parent = times["variant"] == "vectorized"
    project.edit("measurements", lambda rows: rows.assign(median_us=rows["median_us"].where(~parent, 1e6)))
    assert set(project.logs()) == {"vectorized"}
    slow = project.run("warptile")
    assert slow.info.run_id == run_id
    assert float(slow.data.tags["gain_over_parent"]) > 200

    for table in ("variants", "measurements", "metrics"):
        project.edit(table, lambda rows: rows[rows["variant"] != "vectorized"])
    project.log()
    assert project.run("warptile").data.tags["gain_over_parent"] == slow.data.tags["gain_over_parent"]


def test_files_have_names_that_the_ui_previews(project):
    assert "figures.html" in project.files("warptile")
    assert [name for name in project.files("warptile") if name != "figures.html"] == [
        "build/kernel.sass.txt",
        "records/build.json",
        "records/profile_ncu.json",
        "reports/warptile.ncu-rep",
        "source/kernel.cu.txt",
        "tables/measurements.csv",
        "tables/metrics.csv",
    ]
    assert "figures/ladder.svg" in project.files("cublas")


def test_a_recorded_campaign_says_so_everywhere(project):
    write_tables(project.tables, origin="recorded", campaign="h200-before")
    project.log(structs.replace(CAMPAIGN, campaign="h200-before"))
    (run,) = (r for r in project.of("h200-before") if r.data.params["variant"] == "naive")
    assert run.data.tags["origin"] == "recorded"
    assert "**Recorded**, not measured on this machine" in run.data.tags["mlflow.note.content"]
    note = project.experiment().tags["mlflow.note.content"]
    assert "recorded)" in note.splitlines()[0]
    assert "**Recorded**, not measured on this machine" in note


def test_the_experiments_note_leads_with_the_message(template):
    lines = template.experiment().tags["mlflow.note.content"].splitlines()
    assert lines[0].startswith("FP32 matrix multiplication: warptile reaches 36.3 TFLOP/s, 71 % of cublas")
    assert sum(line.startswith("| ") for line in lines) == len(LADDER) + 1
    assert any("float4 \\| A transposed" in line for line in lines)


def test_the_experiments_note_links_each_variant_to_its_current_run(project):
    project.edit("measurements", lambda rows: rows.assign(hot_us=rows["hot_us"] * 2))
    project.log()
    experiment = project.experiment()
    for run in project.current():
        variant = run.data.params["variant"]
        address = (
            f"#/experiments/{experiment.experiment_id}/runs/{run.info.run_id}?workflowType=machine_learning"
        )
        assert f"[{variant}]({address})" in experiment.tags["mlflow.note.content"]


def test_the_duration_of_a_run_is_the_time_of_its_jobs(project):
    new = structs.replace(CAMPAIGN, campaign="another")
    write_tables(project.tables, campaign="another")
    mark = {"family": "sgemm", "campaign": "another", "gpu": "h200"}
    rows = [("naive", "build", 2.5), ("naive", "time", 5.0), ("warptile", "build", 9.0)]
    stages = [{"variant": v, "stage": stage, "seconds": seconds, **mark} for v, stage, seconds in rows]
    pd.DataFrame(stages).to_parquet(project.tables / "stages.parquet")
    project.log(new)
    took = {
        run.data.params["variant"]: run.info.end_time - run.info.start_time
        for run in project.current()
        if run.data.tags["campaign"] == "another"
    }
    assert (took["naive"], took["warptile"], took["cublas"]) == (7500, 9000, 0)


def test_verdicts_on_claims_lie_with_the_baselines_run_and_in_the_note(project):
    texts = {"claim": "Tiles | help.", "measured": 11.8, "unit": "x", "condition": ">= 5", "reason": ""}
    mark = {"family": "sgemm", "gpu": "h200", "campaign": CAMPAIGN.campaign, "about": ""}
    verdicts = {"B1": "confirmed", "B2": "refuted", "B3": "confirmed"}
    pd.DataFrame([{"id": i, "verdict": v, **texts, **mark} for i, v in verdicts.items()]).to_parquet(
        project.tables / "claims.parquet"
    )
    assert project.logs() == {"cublas": "created"}
    assert project.states("cublas") == {"superseded": 1, "current": 1}
    tags = project.run("cublas").data.tags
    counted = {tags[f"claims_{v}"] for v in ("confirmed", "refuted", "not_measurable")}
    assert (tags["claim.B2"], counted) == ("refuted", {"2", "1", "0"})
    assert "tables/claims.csv" in project.files("cublas")
    assert "claim.B2" not in project.run("naive").data.tags
    note = project.experiment().tags["mlflow.note.content"]
    assert "Tiles \\| help." in note
    assert note.index("| B2&nbsp;") < note.index("| B1&nbsp;"), "what is refuted comes first"
    assert project.logs() == {}


def test_the_experiments_note_explains_its_regimes_and_whose_number_a_claim_is_about(project):
    project.edit(
        "measurements", lambda rows: rows.assign(set_mhz=1980.0, sustained_us=rows["median_us"] * 1.2)
    )
    claim = {
        "id": "X",
        "claim": "c",
        "verdict": "not_measurable",
        "measured": 37.0,
        "unit": "MB",
        "condition": "",
    }
    mark = {
        "family": "sgemm",
        "gpu": "h200",
        "campaign": CAMPAIGN.campaign,
        "about": "an A6000",
        "reason": "about an A6000: its L2",
    }
    pd.DataFrame([claim | mark]).to_parquet(project.tables / "claims.parquet")
    project.log()
    note = project.experiment().tags["mlflow.note.content"]
    assert "Times and speeds are at rest (single launches" in note
    assert "not judged: about an A6000" in note


def test_notes_and_tables_of_a_run_hide_nothing_and_hold_no_formula(project):
    text = "=fast\u202ewols\x1b[2J"
    project.edit("variants", lambda table: table.assign(idea=text, credit=text, title=text))
    project.edit("measurements", lambda table: table.assign(reason=text))
    project.log(structs.replace(identified(CAMPAIGN), driver=text))
    run = project.run("naive")
    notes = [project.experiment().tags["mlflow.note.content"], run.data.tags["mlflow.note.content"]]
    assert not [note for note in notes if HIDDEN.search(note)]
    (rows,) = Path(run.info.artifact_uri).glob("tables/measurements.csv")
    assert r"'=fast\u{202e}wols\u{1b}[2J" in rows.read_text()


def test_a_flood_of_claims_leaves_the_note_within_what_mlflow_takes(project):
    texts = {"claim": "long " * 40, "verdict": "confirmed", "measured": 1.0, "unit": "x", "condition": "> 0"}
    mark = {"family": "sgemm", "gpu": "h200", "campaign": CAMPAIGN.campaign, "reason": "", "about": ""}
    pd.DataFrame([{"id": f"X{i}", **texts, **mark} for i in range(200)]).to_parquet(
        project.tables / "claims.parquet"
    )
    project.log()
    note = project.experiment().tags["mlflow.note.content"]
    assert len(note) < 20_000
    assert "More claims: `tables/claims.csv`" in note


def test_cases_of_equal_size_become_series_of_their_own(template):
    points = template.points("global_atomics", "histogram")
    assert points["time/median_us", 1 << 24] * 3 == pytest.approx(points["time/median_us_skewed", 1 << 24])
    assert points["profile/dram_bytes", 0] == pytest.approx(4 << 24, rel=1e-5)


@pytest.mark.parametrize(
    ("variant", "report", "kept"),
    [
        ("cublas", "session-1.ncu-rep", "session-1.ncu-rep"),
        ("naive", "session-1.ncu-rep", ""),
        ("naive", "naive.ncu-rep", "naive.ncu-rep"),
        ("cublas", "", ""),
    ],
)
def test_a_report_of_the_whole_family_lies_with_the_baselines_run(variant, report, kept):
    capture = made_up_records.profile(variant=variant, report=report)
    assert artefacts.kept_report(capture, "cublas") == kept
    assert artefacts.kept_report(None, "cublas") == ""


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        (1.2, "36.3 TFLOP/s at rest, 30.3 TFLOP/s sustained, 71 % of cublas"),
        (1.0001, "36.3 TFLOP/s at rest and sustained, 71 % of cublas"),
    ],
)
def test_the_experiments_result_says_an_equal_speed_once(project, slower, said):
    def edited(rows):
        return rows.assign(
            set_mhz=1980.0,
            sustained_us=slower * rows["median_us"],
            sustained_gflops=rows["gflops"] / slower,
        )

    project.edit("measurements", edited)
    project.log()
    assert said in project.experiment().tags["mlflow.note.content"].splitlines()[0]
