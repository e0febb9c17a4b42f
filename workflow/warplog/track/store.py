"""Write to an MLflow store: runs are added, and marked when others take their place; none is deleted."""

import datetime
import getpass
import os
import platform
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder, write_text
from warplog.core.hashing import sha256_file, sha256_of
from warplog.figures.shared import gallery
from warplog.records.campaign import Campaign
from warplog.track import identity, versions
from warplog.track.connection import Connection
from warplog.track.runs import Run

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment
    from mlflow.entities import Run as StoredRun

FIGURES = "warplog.figures"
_A_BATCH = 900  # metrics; MLflow takes 1000 of metrics, parameters and tags together, and 100 parameters
_MOST_TAG = 5000  # characters; the limit of older servers
_MOST_PASSES = 20
_WRITERS = 8  # runs at a time, which a server takes

Lines = dict[str, list["StoredRun"]]
_One = TypeVar("_One")
_Done = TypeVar("_Done")


@dataclass(frozen=True)
class Store:
    """A store that answers."""

    link: Connection

    @property
    def client(self) -> "MlflowClient":
        """The client of MLflow, through which alone the store is written."""
        return self.link.client

    def each(self, do: Callable[[_One], _Done], runs: Iterable[_One]) -> list[_Done]:
        """Returns what `do` returns of each run; to a server, several at a time, since each call is a request."""
        with ThreadPoolExecutor(_WRITERS if self.link.artifacts is None else 1) as threads:
            return list(threads.map(do, runs))

    def experiment(self, name: str, family: str) -> "Experiment":
        """Returns the experiment of that name; creates it, or restores it if it was deleted."""
        from mlflow.exceptions import MlflowException

        experiment, folder = self.client.get_experiment_by_name(name), self.link.artifacts
        if experiment is None:
            place = str(folder / re.sub(r"[^\w.-]", "_", name)) if folder else None
            try:
                self.client.create_experiment(name, place, {versions.FAMILY: family})
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":  # another process was faster
                    raise
        elif experiment.lifecycle_stage == "deleted":
            self.client.restore_experiment(experiment.experiment_id)
        experiment = self.client.get_experiment_by_name(name)
        self.set_experiment_tag(experiment, versions.FAMILY, family)
        return experiment

    def lines(self, experiment_id: str, campaign: Campaign) -> Lines:
        """Returns warplog's runs of an identified campaign by line, including incomplete and deleted ones.

        Runs of the campaign that an earlier version of warplog logged, without identity, get their tags first.
        """
        search = f"tags.campaign = '{campaign.campaign}' and tags.gpu = '{campaign.gpu}'"
        stored = by_line(search_all(self.client, [experiment_id], search, deleted=True))
        runs = [run for line in stored.values() for run in line]
        before = [run for run in runs if versions.is_active(run) and _is_earlier(run, campaign)]
        for run in before:
            self._adopt(run, campaign)
        if before:
            return self.lines(experiment_id, campaign)
        return by_line(run for run in runs if run.data.tags.get(identity.CAMPAIGN_ID) == campaign.id)

    def _adopt(self, run: "StoredRun", campaign: Campaign) -> None:
        """Gives a run of an earlier version the tags of its campaign, all in one request."""
        tags = run.data.tags
        line = identity.line(campaign, tags.get("family", ""), tags.get("variant", ""))
        renewed = f"{line}/{tags[versions.KEY].rpartition('/')[2]}"
        _again(partial(self._tag, run.info.run_id, {versions.KEY: renewed, **identity.tags(campaign)}))

    def mark_interrupted(self, experiments: Sequence[str]) -> None:
        """Marks the runs whose writer has died; while no other process can write, all that are incomplete."""
        for search in ("attributes.status = 'RUNNING'", f"tags.`{versions.STATE}` = '{versions.WRITING}'"):
            for run in search_all(self.client, experiments, search):
                ended = self.link.artifacts is not None or versions.has_died(run)
                if versions.KEY in run.data.tags and not versions.is_complete(run) and ended:
                    self.client.set_terminated(run.info.run_id, status="KILLED")
                    self.set_tag(run.info.run_id, versions.STATE, versions.INTERRUPTED)

    def add(
        self, experiment_id: str, run: Run, note: str, folder: Path, line: Sequence["StoredRun"]
    ) -> tuple[str, str]:
        """Writes a new run, unless a complete run of the line has the same key and content.

        Returns its id and what was done: created, new version, unchanged, or deleted if it was current when somebody
        deleted it. `line` are the runs of its line in the store, also deleted ones.
        """
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        digests = {name: sha256_file(p) for name, p in files.items()}
        mark = sha256_of(run.params, run.tags, [vars(p) for p in run.points], note, run.outcome, digests)[:16]
        complete = [r for r in line if versions.is_complete(r)]
        number = 1 + max(map(versions.version, complete), default=0)
        mine = [r for r in complete if r.data.tags[versions.KEY] == run.key]
        equal = [
            r for r in mine if r.data.tags[versions.FINGERPRINT] == mark and r.info.status == run.outcome
        ]
        same = versions.newest(r for r in equal if versions.is_active(r) and _has(r, files))
        if same is None:
            gone = (r for r in equal if not versions.is_active(r))
            if any(r.data.tags.get(versions.STATE) == versions.CURRENT for r in gone):
                return "", "deleted"
            change = "new version" if any(map(versions.is_active, mine)) else "created"
            return self._write(experiment_id, run, note, folder, mark, number), change
        run_id = str(same.info.run_id)
        changes = {k: v for k, v in run.looks.items() if same.data.tags.get(k) != v}
        if same is not versions.newest(r for r in complete if versions.contains(run.selection, r)):
            changes[versions.VERSION] = str(number)  # logged again, so it is current again
        for name, value in changes.items():
            self.set_tag(run_id, name, value)
        return run_id, "new version" if versions.VERSION in changes else "unchanged"

    def settle(self, experiment_id: str, campaign: Campaign) -> Lines:
        """Marks the campaign's complete runs as current or superseded; returns them by line.

        Looks again after each change until there is nothing to change. Whichever writer changes last has then seen all
        that the others wrote, so that the marks agree with `versions.states` once all writers are done.

        Raises:
            WarplogError: other writers keep changing the runs.
        """
        for _ in range(_MOST_PASSES):
            lines = self.lines(experiment_id, campaign)
            runs = {run.info.run_id: run for line in lines.values() for run in line}
            wanted = {run: state for line in lines.values() for run, state in versions.states(line).items()}
            wrong = [
                run_id
                for run_id, state in wanted.items()
                if versions.is_active(runs[run_id]) and runs[run_id].data.tags.get(versions.STATE) != state
            ]
            if not wrong:
                return lines
            for run_id in wrong:
                self.set_tag(run_id, versions.STATE, wanted[run_id])
        raise WarplogError(
            f"experiment {experiment_id}: other processes keep changing its runs; run again later"
        )

    def put_figures(
        self, experiment_id: str, runs: Collection[str], home: str, page: str, figures: Sequence[Path]
    ) -> int:
        """Adds the page with a family's figures to the runs, and the figures to the run `home`.

        A run that already holds the same figures is left alone. Returns the number of runs that were changed.
        """
        if not figures or not runs:
            return 0
        mark = sha256_of(page, [(path.name, sha256_file(path)) for path in figures])[:16]
        wanted = f"attributes.run_id IN ({', '.join(repr(run) for run in sorted(runs))})"
        stored = search_all(self.client, [experiment_id], wanted)
        changed = [run.info.run_id for run in stored if run.data.tags.get(FIGURES) != mark]
        with temporary_folder() as folder:
            write_text(folder / gallery.NAME, page)

            def put(run_id: str) -> None:
                self.client.log_artifact(run_id, str(folder / gallery.NAME))
                for figure in figures if run_id == home else ():
                    self.client.log_artifact(run_id, str(figure), "figures")
                self.client.set_tag(run_id, FIGURES, mark)

            self.each(put, changed)
        return len(changed)

    def set_tag(self, run_id: str, name: str, value: str) -> None:
        """Sets a tag of a run, which another process may set at the same time."""
        _again(partial(self.client.set_tag, run_id, name, value))

    def set_experiment_tag(self, experiment: "Experiment", key: str, value: str) -> None:
        """Sets a tag of an experiment if its value differs."""
        if experiment.tags.get(key) != value:
            _again(partial(self.client.set_experiment_tag, experiment.experiment_id, key, value))

    def _write(self, experiment_id: str, run: Run, note: str, folder: Path, mark: str, number: int) -> str:
        """Writes a run; the fingerprint last, so that one that was interrupted does not count as complete."""
        from mlflow.entities import Metric, Param

        tags = {
            versions.KEY: run.key,
            versions.SELECTION: versions.joined(run.selection),
            versions.VERSION: str(number),
            versions.STATE: versions.WRITING,
            versions.LOGGED_AT: datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds"),
            versions.WRITER: versions.this_writer(),
            "mlflow.note.content": note,
            # What the UI shows as source, version and user.
            "mlflow.source.name": "warplog",
            "mlflow.source.type": "JOB",
            "mlflow.source.git.commit": run.tags.get("commit", ""),
            "mlflow.user": _user(),
            "host": platform.node(),
            **run.identity,
            **run.tags,
            **run.looks,
        }
        tags = {name: value[:_MOST_TAG] for name, value in tags.items() if value}
        made = self.client.create_run(experiment_id, run.started_ms, tags, run.variant)
        run_id = str(made.info.run_id)
        params = [Param(name, value) for name, value in run.params.items()]
        metrics = [Metric(p.name, p.value, run.started_ms, p.step) for p in run.points]
        self.client.log_batch(run_id, metrics[:_A_BATCH], params)
        for start in range(_A_BATCH, len(metrics), _A_BATCH):
            self.client.log_batch(run_id, metrics[start : start + _A_BATCH])
        self.client.log_artifacts(run_id, str(folder))
        self.client.set_terminated(run_id, run.outcome, run.ended_ms)
        # The first run of its line is current; whether a further one is, `settle` decides. A run that others took for
        # interrupted is none any more.
        state = versions.CURRENT if number == 1 else versions.WRITING
        self._tag(run_id, {versions.FINGERPRINT: mark, versions.STATE: state})
        return run_id

    def _tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        from mlflow.entities import RunTag

        self.client.log_batch(run_id, tags=[RunTag(name, value) for name, value in tags.items()])


def _again(set_tag: Callable[[], None]) -> None:
    """Sets a tag; tries again if another process created the same tag meanwhile, which MLflow reports as an error."""
    from mlflow.exceptions import MlflowException

    for _ in range(_MOST_PASSES):
        try:
            return set_tag()
        except MlflowException as error:
            if not re.search("IntegrityError|UniqueViolation", str(error)):
                raise
    return set_tag()


def search_all(
    client: "MlflowClient", experiments: Sequence[str], search: str, deleted: bool = False
) -> list["StoredRun"]:
    """Returns all active runs that match the filter, page by page; with `deleted`, deleted ones as well."""
    from mlflow.entities import ViewType

    kind = ViewType.ALL if deleted else ViewType.ACTIVE_ONLY
    runs: list[StoredRun] = []
    token = None
    while True:
        page = client.search_runs(list(experiments), search, kind, max_results=1000, page_token=token)
        runs += page
        token = page.token
        if not token:
            return runs


def by_line(runs: Iterable["StoredRun"]) -> Lines:
    """Returns warplog's runs by line; leaves out all others."""
    lines: Lines = {}
    for run in runs:
        if versions.KEY in run.data.tags:
            lines.setdefault(versions.line_of(run), []).append(run)
    return lines


def _has(run: "StoredRun", files: Mapping[str, Path]) -> bool:
    """Returns whether the run's folder has files of these sizes; True if its artifacts are not in the file system."""
    place = Path(str(run.info.artifact_uri).removeprefix("file://"))
    if not place.is_absolute():
        return True
    there = ((place / name, path) for name, path in files.items())
    return all(stored.is_file() and stored.stat().st_size == path.stat().st_size for stored, path in there)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name, as in a container
        return f"uid {os.getuid()}"


def _is_earlier(run: "StoredRun", campaign: Campaign) -> bool:
    """Returns whether a run with the campaign's name and GPU is of this campaign, and logged by an earlier version."""
    tags = run.data.tags
    return identity.CAMPAIGN_ID not in tags and tags.get("content_sha256") == campaign.content_sha256
