"""A project whose tables are logged to its own store; tests of tracking inspect and change it."""

import re
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
from warplog.track.artefacts import VariantFiles
from warplog.track.presence import LoggedCampaign

TABLES = ("variants", "measurements", "metrics", "timeline")


class Project:
    """A folder with tables, files of some variants and a store, as a user has.

    `changes` are the created runs and new versions of the last logging, as it reported them: variant -> change.
    """

    def __init__(self, root: Path, uri: str = "") -> None:
        self.root = root
        self.uri = uri or f"sqlite:///{root}/results/mlflow.db"
        self.tables = root / "results" / "tables"
        self.changes: dict[str, str] = {}

    def make(self) -> "Project":
        write_tables(self.tables)
        for variant in ("cublas", "naive", "warptile"):
            folder = self.root / "files" / variant
            folder.mkdir(parents=True)
            (folder / f"{variant}.cu").write_text(f"// {variant}\n")
            (folder / "kernel.sass").write_text("FFMA R0, R1, R2, R3 ;\n")
            (folder / f"{variant}.ncu-rep").write_bytes(b"\0" * 1000)
        (self.root / "figures" / "sgemm").mkdir(parents=True)
        (self.root / "figures" / "sgemm" / "ladder.svg").write_text("<svg/>")
        return self

    def only(self, *variants: str) -> None:
        """Leaves only these variants in the tables."""
        for table in TABLES:
            self.edit(table, lambda rows: rows[rows["variant"].isin(variants)])

    def slower(self, *variants: str) -> None:
        """Doubles a number of these variants, or of all."""
        self.edit(
            "measurements",
            lambda rows: rows.assign(
                hot_us=rows["hot_us"].mask(
                    rows["variant"].isin(variants or set(rows["variant"])), rows["hot_us"] * 2
                )
            ),
        )

    def log(self, campaign: Campaign = CAMPAIGN) -> LoggedCampaign:
        """Logs the tables and figures, as the rules log_mlflow and log_figures do."""
        records = {
            "profile_ncu.json": made_up_records.profile(tool="ncu"),
            "build.json": made_up_records.build(),
        }
        files = {
            place.name: VariantFiles([*place.iterdir(), self.root / "missing.log"], records)
            for place in (self.root / "files").iterdir()
        }
        lines: list[str] = []
        logged = track.log_campaign(self.tables, campaign, {"sgemm": lambda: files}, self.uri, lines.append)
        found = re.findall(r"/(\S+)  \S+  run (created|new version|deleted)", "\n".join(lines))
        self.changes = dict(found)
        track.log_figures(logged, [self.root / "figures" / "sgemm"], self.uri)
        return logged

    def logs(self, campaign: Campaign = CAMPAIGN) -> dict[str, str]:
        """Logs it; returns what changed."""
        self.log(campaign)
        return self.changes

    @property
    def client(self) -> Any:
        import mlflow  # not while tests are collected: its telemetry would be on

        return mlflow.MlflowClient(self.uri)

    def experiment(self, family: str = "sgemm") -> Any:
        return self.client.get_experiment_by_name(f"warplog/{family}")

    def stored(self, family: str = "sgemm") -> list[Any]:
        """Returns all runs that are not deleted."""
        return list(self.client.search_runs([self.experiment(family).experiment_id], max_results=1000))

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
        return self.files_of(self.run(variant).info.run_id)

    def files_of(self, run_id: str) -> list[str]:
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
    assert set(project.logs().values()) == {"created"}
    return project


def moved(project: Project, root: Path) -> Project:
    """Returns a copy of a logged project in another folder."""
    from mlflow.tracking._tracking_service import utils

    # Runs of the copy have the same ids, and MLflow caches the artifact location of a run within a process.
    utils._artifact_repos_cache.clear()
    shutil.copytree(project.root, root)
    return Project(root)
