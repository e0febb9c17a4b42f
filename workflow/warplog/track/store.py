"""Write to an MLflow store; writing again updates runs instead of duplicating them."""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.core.records import sha256_file, sha256_of
from warplog.track.connection import FAMILY
from warplog.track.runs import Run

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.entities import Run as StoredRun

KEY, FINGERPRINT, CAMPAIGN, FIGURES = "warplog.key", "warplog.fingerprint", "campaign", "warplog.figures"
LOGGED_AT = "warplog.logged_at"
_METRICS_A_BATCH, _PARAMS_A_BATCH = 1000, 100
_MOST_TAG = 5000  # characters; the limit of older servers


@dataclass(frozen=True)
class Logged:
    """A run in the store; `change` is created, replaced or unchanged."""

    run_id: str
    change: str


@dataclass(frozen=True)
class Store:
    """A reachable MLflow store; `artifacts` is the artifact folder beside an SQLite database, else None."""

    client: Any
    artifacts: Path | None

    def experiment(self, name: str, family: str) -> "Experiment":
        """Returns the experiment of that name; creates it, or restores it if it was deleted."""
        found = self.client.get_experiment_by_name(name)
        if found is None:
            place = str(self.artifacts / re.sub(r"[^\w.-]", "_", name)) if self.artifacts else None
            made = self.client.create_experiment(name, artifact_location=place, tags={FAMILY: family})
            return self.client.get_experiment(made)
        if found.lifecycle_stage == "deleted":
            self.client.restore_experiment(found.experiment_id)
            self._drop_doubles(found.experiment_id)
        if FAMILY not in found.tags:
            self.client.set_experiment_tag(found.experiment_id, FAMILY, family)
        return self.client.get_experiment(found.experiment_id)

    def campaign_runs(self, experiment_id: str, campaign: str, gpu: str) -> dict[str, list["StoredRun"]]:
        """Returns warplog's runs of a campaign on a GPU by key, including incomplete ones."""
        return self._by_key(experiment_id, f"tags.`{CAMPAIGN}` = '{campaign}' and tags.`gpu` = '{gpu}'")

    def upsert(
        self, experiment_id: str, run: Run, note: str, folder: Path, old: Sequence["StoredRun"]
    ) -> Logged:
        """Keeps the run if nothing changed; otherwise writes a new run and deletes the old ones.

        The fingerprint is written last, so that a run interrupted by a crash does not count as complete.
        """
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        digests = {name: sha256_file(p) for name, p in files.items()}
        mark = sha256_of(run.params, run.tags, [vars(p) for p in run.points], note, run.outcome, digests)[:16]
        complete = next((r for r in old if _is_complete(r, mark, run.outcome, files)), None)
        if complete is None:
            run_id = self._write(experiment_id, run, note, folder if files else None, mark)
        else:
            run_id = str(complete.info.run_id)
            for key, value in run.looks.items():
                if complete.data.tags.get(key) != value:
                    self.client.set_tag(run_id, key, value)
        self.delete([r for r in old if r.info.run_id != run_id])
        return Logged(run_id, "unchanged" if complete else "replaced" if old else "created")

    def delete(self, runs: Sequence["StoredRun"]) -> None:
        """Marks runs as deleted; `mlflow gc` removes them for good."""
        for run in runs:
            self.client.delete_run(run.info.run_id)

    def put_figures(self, run_id: str, figures: Sequence[Path]) -> None:
        """Uploads a family's figures to one run, unless the run already holds the same figures."""
        mark = sha256_of([(p.name, sha256_file(p)) for p in figures])[:16]
        if not figures or self.client.get_run(run_id).data.tags.get(FIGURES) == mark:
            return
        for figure in figures:
            self.client.log_artifact(run_id, str(figure), "figures")
        self.client.set_tag(run_id, FIGURES, mark)

    def set_experiment_tag(self, experiment: "Experiment", key: str, value: str) -> None:
        """Sets a tag of an experiment if its value differs."""
        if experiment.tags.get(key) != value:
            self.client.set_experiment_tag(experiment.experiment_id, key, value)

    def _write(self, experiment_id: str, run: Run, note: str, folder: Path | None, mark: str) -> str:
        tags = {
            KEY: run.key,
            LOGGED_AT: datetime.datetime.now(datetime.UTC).isoformat(),
            "mlflow.note.content": note,
            **_mlflow_tags(run),
            **run.tags,
            **run.looks,
        }
        tags = {key: value[:_MOST_TAG] for key, value in tags.items()}
        made = self.client.create_run(
            experiment_id, start_time=run.started_ms, tags=tags, run_name=run.variant
        )
        run_id = str(made.info.run_id)
        self._log(run_id, run)
        if folder is not None:
            self.client.log_artifacts(run_id, str(folder))
        self.client.set_tag(run_id, FINGERPRINT, mark)
        self.client.set_terminated(run_id, status=run.outcome, end_time=run.started_ms)
        return run_id

    def _log(self, run_id: str, run: Run) -> None:
        from mlflow.entities import Metric, Param

        params = [Param(key, value) for key, value in run.params.items()]
        metrics = [Metric(p.name, p.value, run.started_ms, p.step) for p in run.points]
        for start in range(0, len(params), _PARAMS_A_BATCH):
            self.client.log_batch(run_id, params=params[start : start + _PARAMS_A_BATCH])
        for start in range(0, len(metrics), _METRICS_A_BATCH):
            self.client.log_batch(run_id, metrics=metrics[start : start + _METRICS_A_BATCH])

    def _by_key(self, experiment_id: str, search: str) -> dict[str, list["StoredRun"]]:
        found: dict[str, list[StoredRun]] = {}
        token = None
        while True:
            page = self.client.search_runs([experiment_id], search, max_results=1000, page_token=token)
            for run in page:
                if KEY in run.data.tags:
                    found.setdefault(run.data.tags[KEY], []).append(run)
            token = page.token
            if not token:
                return found

    def _drop_doubles(self, experiment_id: str) -> None:
        """Keeps the last written run of each key: restoring an experiment also restores replaced runs."""
        for runs in self._by_key(experiment_id, "").values():
            runs.sort(key=lambda r: r.data.tags.get(LOGGED_AT, ""))
            self.delete(runs[:-1])


def _is_complete(run: "StoredRun", mark: str, outcome: str, files: Mapping[str, Path]) -> bool:
    if run.data.tags.get(FINGERPRINT) != mark or run.info.status != outcome:
        return False
    place = str(run.info.artifact_uri).removeprefix("file://")
    return not place.startswith("/") or all((Path(place) / name).is_file() for name in files)


def _mlflow_tags(run: Run) -> dict[str, str]:
    """Returns the tags that the UI shows as source, version and user."""
    tags = {"mlflow.source.name": "warplog", "mlflow.source.type": "JOB", "mlflow.user": "warplog"}
    commit = run.tags.get("commit", "")
    return tags | ({"mlflow.source.git.commit": commit} if commit else {})
