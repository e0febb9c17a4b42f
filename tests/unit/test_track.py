"""The MLflow stage against a real SQLite store: runs equal the tables, once, and stay so."""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from script_modules import script
from track_tables import CAMPAIGN, LADDER, PROFILED, SIZES, write_tables
from warplog import track
from warplog.errors import WarplogError
from warplog.mlflow_connection import tracking_uri
from warplog.mlflow_points import metric_path

COLUMNS = {
    "gflops": ("perf/gflops", 1),
    "gbytes_per_s": ("perf/gbytes_per_s", 1),
    "ratio_to_baseline": ("perf/pct_of_baseline", 100),
    "median_us": ("time/median_us", 1),
    "q1_us": ("time/q1_us", 1),
    "q3_us": ("time/q3_us", 1),
    "hot_us": ("time/hot_us", 1),
    "ncu_us": ("time/ncu_us", 1),
    "samples": ("time/samples", 1),
    "power_w": ("device/power_w", 1),
    "max_error_over_tolerance": ("check/max_error_over_tolerance", 1),
}


class Project:
    """A folder with tables, files of some variants, and a store; what a user has."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.uri = f"sqlite:///{root}/results/mlflow.db"
        self.tables = root / "results" / "tables"

    def make(self) -> "Project":
        write_tables(self.tables)
        for variant in ("cublas", "naive", "warptile"):
            folder = self.root / "files" / variant
            folder.mkdir(parents=True)
            (folder / f"{variant}.cu").write_text(f"// {variant}\n")
            (folder / "kernel.sass").write_text("FFMA R0, R1, R2, R3 ;\n")
            (folder / "record.json").write_text(json.dumps({"stage": "build"}))
            (folder / "ncu.json").write_text(json.dumps({"stage": "profile", "tool": "ncu"}))
            (folder / f"{variant}.ncu-rep").write_bytes(b"\0" * 1000)
        (self.root / "figures").mkdir()
        (self.root / "figures" / "ladder.svg").write_text("<svg/>")
        return self

    def log(self, campaign: dict[str, Any] = CAMPAIGN) -> track.TrackingResult:
        variants = [path.name for path in (self.root / "files").iterdir()]
        files = {("sgemm", v): [*(self.root / "files" / v).iterdir(), Path("gone.log")] for v in variants}
        figures = {"sgemm": [self.root / "figures" / "ladder.svg"]}
        return track.log_campaign(self.tables, campaign, track.Attachments(files, figures), self.uri)

    def changes(self, result: track.TrackingResult) -> dict[str, str]:
        """What happened to the runs that are not as they were, by variant."""
        runs = {v: run for family in result.experiments for v, run in family.runs.items()}
        return {variant: run.change for variant, run in runs.items() if run.change != "unchanged"}

    @property
    def client(self) -> Any:
        import mlflow  # here, and not while tests are collected: then its telemetry would be on

        return mlflow.MlflowClient(self.uri)

    def experiment(self, family: str = "sgemm") -> Any:
        return self.client.get_experiment_by_name(f"warplog/{family}")

    def stored(self, family: str = "sgemm", deleted_too: bool = False) -> list[Any]:
        from mlflow.entities import ViewType

        kind = ViewType.ALL if deleted_too else ViewType.ACTIVE_ONLY
        return list(self.client.search_runs([self.experiment(family).experiment_id], "", kind, 1000))

    def run(self, variant: str, family: str = "sgemm") -> Any:
        (found,) = (r for r in self.stored(family) if r.data.params["variant"] == variant)
        return found

    def points(self, variant: str, family: str = "sgemm") -> dict[tuple[str, int], float]:
        run = self.run(variant, family)
        history = [m for n in run.data.metrics for m in self.client.get_metric_history(run.info.run_id, n)]
        found = {(m.key, m.step): m.value for m in history}
        assert len(found) == len(history), "a metric has two values at one step"
        return found

    def files(self, variant: str) -> list[str]:
        run_id = self.run(variant).info.run_id
        folders = [entry.path for entry in self.client.list_artifacts(run_id)]
        return sorted(entry.path for f in folders for entry in self.client.list_artifacts(run_id, f))

    def edit(self, table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        path = self.tables / f"{table}.parquet"
        change(pd.read_parquet(path)).to_parquet(path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A logged project that no test changes; its path has characters that a URI would escape."""
    project = Project(tmp_path_factory.mktemp("a project") / "first").make()
    result = project.log()
    assert {run.change for family in result.experiments for run in family.runs.values()} == {"created"}
    return project


@pytest.fixture
def project(template: Project, tmp_path: Path) -> Project:
    """A logged project to change: the template, copied to another place."""
    from mlflow.tracking._tracking_service import utils

    # Runs of the copy have the same ids, and MLflow remembers within a process where a run's files lie.
    utils._artifact_repos_cache.clear()
    shutil.copytree(template.root, tmp_path / "moved here")
    return Project(tmp_path / "moved here")


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


def test_counters_are_those_of_the_longest_kernel_of_each_profiled_case(template):
    points = template.points("warptile")
    counted = pd.read_parquet(template.tables / "metrics.parquet")
    rows = counted[(counted["variant"] == "warptile") & counted["kernel"].str.contains("warptile")]
    for name in ("dram_bytes", "achieved_occupancy_pct", "stall_barrier_pct", "registers_per_thread"):
        of_name = rows[(rows["metric"] == name) & (rows["tool"] == "ncu")]
        series = {step: v for (metric, step), v in points.items() if metric == metric_path(name, "4096")}
        assert series == {int(row.case): row.value for row in of_name.itertuples()}, name
        assert set(series) == set(PROFILED)
        assert points[f"headline/{name}", 0] == pytest.approx(series[4096], rel=1e-5)
    assert points["time/nsys_duration_us", 4096] == pytest.approx(points["time/duration_us", 4096] * 1.02)


def test_single_numbers_stand_at_step_0_and_series_at_the_size(template):
    points = template.points("warptile")
    singles = ("headline", "build", "sass")
    for name, step in points:
        assert (step == 0) == name.startswith(singles), name
        assert step in (0, *SIZES)
    assert points["build/registers_per_thread", 0] == 168
    assert points["sass/LDG.E.128", 0] == 64
    assert points["headline/gflops", 0] == pytest.approx(points["perf/gflops", 4096], rel=1e-5)


def test_missing_values_are_not_logged(template):
    names = {name for name, _ in template.points("naive")}
    assert not any("tensor_flops" in name or "nsys_us" in name for name in names)
    bad = {name for name, _ in template.points("broken")}
    assert bad
    assert all(name.startswith(("build/", "sass/")) for name in bad)


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
        assert run.data.tags[key] == CAMPAIGN[key]
    assert run.data.tags["mlflow.source.git.commit"] == CAMPAIGN["commit"]
    assert run.data.tags["dominant_stall"] == "long_scoreboard"
    assert run.data.tags["occupancy_limiter"] == "registers"
    assert run.data.params | {"BM": "128", "BK": "16", "TN": "4"} == run.data.params
    assert run.data.params["registers_per_thread"] == "168"
    assert "mlflow.parentRunId" not in run.data.tags
    assert run.info.start_time == pd.Timestamp("2026-11-20T03:10:00Z").timestamp() * 1000


def test_files_have_names_that_the_ui_previews(project):
    assert project.files("warptile") == [
        "build/kernel.sass.txt",
        "records/build.json",
        "records/profile_ncu.json",
        "reports/warptile.ncu-rep",
        "source/kernel.cu.txt",
        "tables/measurements.csv",
        "tables/metrics.csv",
    ]
    assert "figures/ladder.svg" in project.files("cublas")


def test_logging_again_changes_nothing(project):
    before = {r.info.run_id: r for r in project.stored(deleted_too=True)}
    tags = project.experiment().tags
    assert project.changes(project.log()) == {}
    after = {r.info.run_id: r for r in project.stored(deleted_too=True)}
    assert {k: r.data.tags for k, r in after.items()} == {k: r.data.tags for k, r in before.items()}
    assert project.experiment().tags == tags


def test_the_record_of_a_second_run_is_the_same(project):
    first, second = project.log().as_record(), project.log().as_record()
    assert first == second == json.loads(json.dumps(first))
    assert first["experiments"][0]["runs"]["naive"] == project.run("naive").info.run_id
    assert project.experiment().experiment_id in first["experiments"][0]["link"]


def test_a_changed_number_replaces_that_run_alone(project):
    def slower(table):
        return table.assign(hot_us=table["hot_us"].where(table["variant"] != "naive", table["hot_us"] * 2))

    others = {r.info.run_id for r in project.stored() if r.data.params["variant"] != "naive"}
    project.edit("measurements", slower)
    assert project.changes(project.log()) == {"naive": "replaced"}
    assert len(project.stored()) == len(LADDER)
    assert others < {r.info.run_id for r in project.stored()}
    measured = pd.read_parquet(project.tables / "measurements.parquet")
    row = measured[(measured["variant"] == "naive") & (measured["case"] == "4096")].iloc[0]
    assert project.points("naive")["time/hot_us", 4096] == row["hot_us"]


def test_a_changed_file_replaces_its_run(project):
    (project.root / "files" / "naive" / "naive.cu").write_text("// faster now\n")
    assert project.changes(project.log()) == {"naive": "replaced"}


def test_a_variant_added_in_front_leaves_the_other_runs_alone(project):
    def insert(table):
        new = table[table["variant"] == "naive"].assign(variant="first")
        moved = {"order": table["order"] + 1} if "order" in table else {}
        return pd.concat([new, table.assign(**moved)], ignore_index=True)

    for table in ("variants", "measurements", "metrics"):
        project.edit(table, insert)
    colour = project.run("warptile").data.tags["mlflow.runColor"]
    assert project.changes(project.log()) == {"first": "created"}
    assert project.run("warptile").data.tags["ladder_order"] == "8"
    assert project.run("warptile").data.tags["mlflow.runColor"] != colour


def test_a_variant_that_left_the_tables_loses_its_run(project):
    for table in ("variants", "measurements", "metrics"):
        project.edit(table, lambda rows: rows[rows["variant"] != "naive"])
    assert project.changes(project.log()) == {}
    assert {r.data.params["variant"] for r in project.stored()} == set(LADDER) - {"naive"}


def test_new_figures_are_uploaded_without_a_new_run(project):
    from mlflow.artifacts import download_artifacts

    (project.root / "figures" / "ladder.svg").write_text("<svg>new</svg>")
    assert project.changes(project.log()) == {}
    run_id = project.run("cublas").info.run_id
    path = download_artifacts(run_id=run_id, artifact_path="figures/ladder.svg", tracking_uri=project.uri)
    assert Path(path).read_text() == "<svg>new</svg>"


def test_a_run_that_was_cut_short_is_written_again(project, monkeypatch):
    from mlflow import MlflowClient

    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_artifacts", full)
        with pytest.raises(WarplogError, match="No space left on device"):
            project.log()
    assert "RUNNING" in {r.info.status for r in project.stored()}
    assert project.changes(project.log()) == {"naive": "replaced"}
    assert len(project.stored()) == len(LADDER)
    assert {r.info.status for r in project.stored()} == {"FINISHED", "FAILED", "KILLED"}


def test_a_run_that_never_ended_is_written_again(project):
    project.client.update_run(project.run("naive").info.run_id, status="RUNNING")
    assert project.changes(project.log()) == {"naive": "replaced"}


def test_foreign_runs_experiments_and_campaigns_stay(project):
    client = project.client
    ours = project.experiment().experiment_id
    foreign = client.create_experiment("my own")
    mine = [client.create_run(foreign), client.create_run(ours, tags={"campaign": CAMPAIGN["campaign"]})]
    mine += [client.create_run(ours, tags={"campaign": CAMPAIGN["campaign"], "gpu": "h200"})]
    assert project.changes(project.log()) == {}
    write_tables(project.tables, campaign="h200-later")
    changes = project.changes(project.log({**CAMPAIGN, "campaign": "h200-later"}))
    assert set(changes.values()) == {"created"}
    assert {client.get_run(r.info.run_id).info.lifecycle_stage for r in mine} == {"active"}
    assert len(project.stored()) == 2 * len(LADDER) + 2
    assert client.get_experiment(foreign).tags == {}


def test_a_project_that_moved_takes_its_files_along(project, template):
    """The fixture is a copy: the store still names the place of the original."""
    assert project.changes(project.log()) == {}
    assert str(project.root) in project.run("naive").info.artifact_uri
    assert "source/kernel.cu.txt" in project.files("naive")
    assert str(template.root) in template.run("naive").info.artifact_uri


def test_lost_files_are_logged_again(project):
    shutil.rmtree(project.root / "results" / "mlartifacts")
    assert set(project.changes(project.log()).values()) == {"replaced"}
    assert "source/kernel.cu.txt" in project.files("naive")
    assert len(project.stored()) == len(LADDER)


def test_a_deleted_experiment_comes_back_without_doubles(project):
    (project.root / "files" / "naive" / "naive.cu").write_text("// edited\n")
    project.log()
    project.client.delete_experiment(project.experiment().experiment_id)
    write_tables(project.tables, campaign="h200-later")
    project.log({**CAMPAIGN, "campaign": "h200-later"})
    assert len(project.stored()) == 2 * len(LADDER)


def test_tables_of_two_campaigns_give_each_its_own_runs(project):
    other = Project(project.root / "other")
    write_tables(other.tables, campaign="h200-later")
    for table in ("variants", "measurements", "metrics"):
        more = pd.read_parquet(other.tables / f"{table}.parquet")
        project.edit(table, lambda rows, more=more: pd.concat([rows, more], ignore_index=True))
    assert project.changes(project.log()) == {}
    result = project.log({**CAMPAIGN, "campaign": "h200-later"})
    assert set(project.changes(result).values()) == {"created"}
    assert len(project.stored()) == 2 * len(LADDER)


def test_a_recorded_campaign_says_so_everywhere(project):
    write_tables(project.tables, origin="recorded", campaign="h200-before")
    project.log({**CAMPAIGN, "campaign": "h200-before"})
    (run,) = (r for r in project.stored() if r.data.tags["warplog.key"] == "h200-before/h200/sgemm/naive")
    assert run.data.tags["origin"] == "recorded"
    assert "**Recorded**, not measured on this machine" in run.data.tags["mlflow.note.content"]
    note = project.experiment().tags["mlflow.note.content"]
    assert "recorded)" in note.splitlines()[0]
    assert note.count("| recorded |") == len(LADDER)


def test_the_experiments_note_leads_with_the_message(template):
    lines = template.experiment().tags["mlflow.note.content"].splitlines()
    assert lines[0].startswith(
        "### FP32 matrix multiplication: warptile reaches 36.3 TFLOP/s, 71 % of cublas"
    )
    assert sum(line.startswith("| ") for line in lines) == len(LADDER) + 1
    assert any("float4 \\| A transposed" in line for line in lines)


def test_verdicts_on_claims_lie_with_the_baselines_run_and_in_the_note(project):
    told = {"claim": "Tiles | help.", "measured": 11.8, "unit": "x", "condition": ">= 5", "reason": ""}
    mark = {"family": "sgemm", "gpu": "h200", "campaign": CAMPAIGN["campaign"]}
    verdicts = {"B1": "confirmed", "B2": "refuted", "B3": "confirmed"}
    pd.DataFrame([{"id": i, "verdict": v, **told, **mark} for i, v in verdicts.items()]).to_parquet(
        project.tables / "claims.parquet"
    )
    assert project.changes(project.log()) == {"cublas": "replaced"}
    tags = project.run("cublas").data.tags
    counted = {tags[f"claims_{v}"] for v in ("confirmed", "refuted", "not_measurable")}
    assert (tags["claim.B2"], counted) == ("refuted", {"2", "1", "0"})
    assert "tables/claims.csv" in project.files("cublas")
    assert "claim.B2" not in project.run("naive").data.tags
    note = project.experiment().tags["mlflow.note.content"]
    assert "Tiles \\| help." in note
    assert note.index("| B2&nbsp;") < note.index("| B1&nbsp;"), "what is refuted comes first"
    assert project.changes(project.log()) == {}


def test_a_flood_of_claims_leaves_the_note_within_what_mlflow_takes(project):
    told = {"claim": "long " * 40, "verdict": "confirmed", "measured": 1.0, "unit": "x", "condition": "> 0"}
    mark = {"family": "sgemm", "gpu": "h200", "campaign": CAMPAIGN["campaign"], "reason": ""}
    pd.DataFrame([{"id": f"X{i}", **told, **mark} for i in range(200)]).to_parquet(
        project.tables / "claims.parquet"
    )
    project.log()
    note = project.experiment().tags["mlflow.note.content"]
    assert len(note) < 20_000
    assert "More claims: `tables/claims.csv`" in note


def test_cases_of_equal_size_become_series_of_their_own(template):
    points = template.points("global_atomics", "histogram")
    assert points["time/median_us", 1 << 24] * 3 == pytest.approx(points["time/median_us_skewed", 1 << 24])
    assert points["memory/dram_bytes", 1 << 24] == 4 << 24


@pytest.mark.timeout(60)
def test_a_dead_server_fails_with_one_line_and_no_password(template):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        uri = f"http://me:secret@127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(WarplogError) as told:
            track.log_campaign(template.tables, CAMPAIGN, track.Attachments(), uri)
    text = str(told.value)
    assert "does not answer" in text
    assert "MLFLOW_TRACKING_URI" in text
    assert "secret" not in text
    assert "\n" not in text


@pytest.mark.timeout(60)
def test_a_silent_server_fails_too(template, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(WarplogError, match="does not answer"):
            track.log_campaign(template.tables, CAMPAIGN, track.Attachments(), uri)


def test_a_broken_store_names_the_remedy(template, tmp_path):
    (tmp_path / "mlflow.db").write_text("this is no database, and it is longer than a header\n" * 10)
    with pytest.raises(WarplogError, match=r"mlflow\.db: the MLflow store cannot be used .* move it away"):
        track.log_campaign(template.tables, CAMPAIGN, track.Attachments(), f"sqlite:///{tmp_path}/mlflow.db")


def test_a_campaign_that_the_tables_lack_is_an_error(template, tmp_path):
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    with pytest.raises(WarplogError, match="no row of campaign other"):
        track.log_campaign(template.tables, {**CAMPAIGN, "campaign": "other"}, track.Attachments(), uri)
    with pytest.raises(WarplogError, match="campaign"):
        track.log_campaign(template.tables, {**CAMPAIGN, "campaign": "x' or 1"}, track.Attachments(), uri)
    with pytest.raises(WarplogError, match=r"variants\.parquet"):
        track.log_campaign(tmp_path, CAMPAIGN, track.Attachments(), uri)
    assert not (tmp_path / "mlflow.db").exists()


def test_the_environment_is_as_before_and_telemetry_was_off(project, monkeypatch):
    from mlflow import MlflowClient

    seen = []
    plain = MlflowClient.search_experiments

    def watched(*arguments: Any, **options: Any) -> Any:
        seen.append((os.environ["MLFLOW_DISABLE_TELEMETRY"], os.environ["DO_NOT_TRACK"]))
        return plain(*arguments, **options)

    monkeypatch.setattr(MlflowClient, "search_experiments", watched)
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "DO_NOT_TRACK"))]:
        monkeypatch.delenv(name)
    before = dict(os.environ)
    project.log()
    assert seen == [("true", "true")]
    assert dict(os.environ) == before


def test_the_environments_uri_goes_first():
    assert tracking_uri("sqlite:///a.db", {}) == "sqlite:///a.db"
    assert tracking_uri("sqlite:///a.db", {"MLFLOW_TRACKING_URI": " "}) == "sqlite:///a.db"
    assert tracking_uri("sqlite:///a.db", {"MLFLOW_TRACKING_URI": "http://x"}) == "http://x"
    assert track.link_base("https://me:pw@host/mlflow/") == "https://host/mlflow"
    assert track.link_base("sqlite:///a.db") == track.LOCAL_UI


@pytest.mark.parametrize(
    ("variant", "report", "kept"),
    [
        ("cublas", "session-1.ncu-rep", ["session-1.ncu-rep"]),
        ("naive", "session-1.ncu-rep", []),
        ("naive", "naive.ncu-rep", ["naive.ncu-rep"]),
        ("cublas", "", []),
    ],
)
def test_a_report_of_the_whole_family_lies_with_the_baselines_run(
    tmp_path, monkeypatch, variant, report, kept
):
    logging = script("log_mlflow")
    (tmp_path / "x.ncu.json").touch()
    monkeypatch.setattr(logging, "read_json", lambda *_: {"report": report})
    assert [path.name for path in logging.reports(tmp_path / "x.ncu.json", variant, "cublas")] == kept
    assert logging.reports(tmp_path / "none.ncu.json", variant, "cublas") == []
