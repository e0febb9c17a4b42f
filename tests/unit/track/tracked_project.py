"""A project whose tables are logged to its own store; tests of tracking inspect and change it."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from track_tables import CAMPAIGN, write_tables

import made_up_records
from warplog.records.campaign import Campaign
from warplog.track import log as track
from warplog.track.log import VariantFiles


class Project:
    """A folder with tables, files of some variants and a store, as a user has."""

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
            (folder / f"{variant}.ncu-rep").write_bytes(b"\0" * 1000)
        (self.root / "figures").mkdir()
        (self.root / "figures" / "ladder.svg").write_text("<svg/>")
        return self

    def log(self, campaign: Campaign = CAMPAIGN) -> track.TrackingResult:
        variants = [path.name for path in (self.root / "files").iterdir()]
        records = {
            "profile_ncu.json": made_up_records.profile(tool="ncu"),
            "build.json": made_up_records.build(),
        }
        files = {
            ("sgemm", v): VariantFiles(
                [*(self.root / "files" / v).iterdir(), self.root / "missing.log"], records
            )
            for v in variants
        }
        result = track.log_campaign(self.tables, campaign, files, self.uri)
        figures = {"sgemm": sorted((self.root / "figures").iterdir())}
        track.log_figures(result.as_record(), figures, self.uri)
        return result

    def changes(self, result: track.TrackingResult) -> dict[str, str]:
        """Returns created runs and new versions as variant -> change."""
        runs = {v: run for family in result.experiments for v, run in family.runs.items()}
        return {variant: run.change for variant, run in runs.items() if run.change != "unchanged"}

    @property
    def client(self) -> Any:
        import mlflow  # not while tests are collected: its telemetry would be on

        return mlflow.MlflowClient(self.uri)

    def experiment(self, family: str = "sgemm") -> Any:
        return self.client.get_experiment_by_name(f"warplog/{family}")

    def stored(self, family: str = "sgemm", deleted_too: bool = False) -> list[Any]:
        from mlflow.entities import ViewType

        kind = ViewType.ALL if deleted_too else ViewType.ACTIVE_ONLY
        return list(self.client.search_runs([self.experiment(family).experiment_id], "", kind, 1000))

    def run(self, variant: str, family: str = "sgemm") -> Any:
        """Returns the variant's current run."""
        (found,) = (r for r in self.current(family) if r.data.params["variant"] == variant)
        return found

    def current(self, family: str = "sgemm") -> list[Any]:
        return [run for run in self.stored(family) if run.data.tags.get("warplog.state") == "current"]

    def of(self, campaign: str) -> list[Any]:
        """Returns the current runs of a campaign."""
        return [run for run in self.current() if run.data.tags["campaign"] == campaign]

    def states(self, variant: str) -> dict[str, int]:
        """Returns how many runs of a variant have each state."""
        runs = [r for r in self.stored() if r.data.params.get("variant") == variant]
        return dict(Counter(run.data.tags["warplog.state"] for run in runs))

    def points(self, variant: str, family: str = "sgemm") -> dict[tuple[str, int], float]:
        run = self.run(variant, family)
        history = [m for n in run.data.metrics for m in self.client.get_metric_history(run.info.run_id, n)]
        found = {(m.key, m.step): m.value for m in history}
        assert len(found) == len(history), "a metric has two values at one step"
        return found

    def files(self, variant: str) -> list[str]:
        run_id = self.run(variant).info.run_id
        found = list(self.client.list_artifacts(run_id))
        folders = [entry.path for entry in found if entry.is_dir]
        found += [entry for folder in folders for entry in self.client.list_artifacts(run_id, folder)]
        return sorted(entry.path for entry in found if not entry.is_dir)

    def edit(self, table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
        path = self.tables / f"{table}.parquet"
        change(pd.read_parquet(path)).to_parquet(path)


def logged(root: Path) -> Project:
    """Returns a project whose tables have been logged once."""
    project = Project(root).make()
    result = project.log()
    assert {run.change for family in result.experiments for run in family.runs.values()} == {"created"}
    return project


def moved(project: Project, root: Path) -> Project:
    """Returns a copy of a logged project in another folder."""
    from mlflow.tracking._tracking_service import utils

    # Runs of the copy have the same ids, and MLflow caches the artifact location of a run within a process.
    utils._artifact_repos_cache.clear()
    shutil.copytree(project.root, root)
    return Project(root)
