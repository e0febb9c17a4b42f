"""Write to an MLflow store: runs are added, and marked when others take their place; none is deleted."""

import contextlib
import datetime
import getpass
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.hashing import sha256_file, sha256_of
from warplog.figures.shared import gallery
from warplog.records.campaign import Campaign
from warplog.track import identity, versions, writers
from warplog.track.connection import FAMILY, Connection
from warplog.track.runs import Run

if TYPE_CHECKING:
    from mlflow.entities import Experiment
    from mlflow.entities import Run as StoredRun

FIGURES = "warplog.figures"
_METRICS_A_BATCH, _PARAMS_A_BATCH = 1000, 100
_MOST_TAG = 5000  # characters; the limit of older servers
_MOST_PASSES = 20
_UPLOADS = 8  # files at a time
_STAGING = ".figures-"

Lines = dict[str, list["StoredRun"]]


@dataclass(frozen=True)
class Logged:
    """A run in the store; `change` is created, new version or unchanged, `written` the time of its creation."""

    run_id: str
    change: str
    written: str = ""


@dataclass(frozen=True)
class Store:
    """A store that answers."""

    link: Connection

    @property
    def client(self) -> Any:
        """The MlflowClient."""
        return self.link.client

    def experiment(self, name: str, family: str) -> "Experiment":
        """Returns the experiment of that name; creates it, or restores it if it was deleted."""
        found = self.client.get_experiment_by_name(name) or self._new_experiment(name, family)
        if found.lifecycle_stage == "deleted":
            self.client.restore_experiment(found.experiment_id)
        if FAMILY not in found.tags:
            _again(lambda: self.client.set_experiment_tag(found.experiment_id, FAMILY, family))
        return self.client.get_experiment(found.experiment_id)

    def lines(self, experiment_id: str, campaign: Campaign) -> Lines:
        """Returns warplog's runs of an identified campaign by line, including incomplete ones.

        Runs of the campaign that an earlier version of warplog logged, without identity, get their tags first.
        """
        search = f"tags.campaign = '{campaign.campaign}' and tags.gpu = '{campaign.gpu}'"
        named = search_all(self.client, [experiment_id], search)
        before = [run for run in named if _is_earlier(run, campaign)]
        for run in before:
            self._adopt(run, campaign)
        if before:
            return self.lines(experiment_id, campaign)
        return by_line([run for run in named if run.data.tags.get(identity.CAMPAIGN_ID) == campaign.id])

    def _adopt(self, run: "StoredRun", campaign: Campaign) -> None:
        """Gives a run of an earlier version the tags of its campaign, all in one request."""
        from mlflow.entities import RunTag

        tags = run.data.tags
        line = identity.line(campaign, tags.get("family", ""), tags.get("variant", ""))
        new = {versions.KEY: versions.renewed(tags[versions.KEY], line), **identity.tags(campaign)}
        _again(partial(self.client.log_batch, run.info.run_id, tags=[RunTag(*tag) for tag in new.items()]))

    def mark_interrupted(self, experiments: Sequence[str]) -> None:
        """Marks the runs whose writer has died; while no other process can write, all that are incomplete."""
        for search in ("attributes.status = 'RUNNING'", f"tags.`{versions.STATE}` = '{versions.WRITING}'"):
            for run in search_all(self.client, experiments, search):
                run_id, ended = run.info.run_id, self.link.alone or writers.has_died(run)
                if versions.KEY in run.data.tags and not versions.is_complete(run) and ended:
                    self.client.set_terminated(run_id, status="KILLED")
                    _again(partial(self.client.set_tag, run_id, versions.STATE, versions.INTERRUPTED))

    def add(
        self, experiment_id: str, run: Run, note: str, folder: Path, line: Sequence["StoredRun"]
    ) -> Logged:
        """Writes a new run, unless a complete run of the line has the same key and content.

        `line` are the runs of its line in the store. The fingerprint is written last, so that a run interrupted by a
        crash does not count as complete.
        """
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        digests = {name: sha256_file(p) for name, p in files.items()}
        mark = sha256_of(run.params, run.tags, [vars(p) for p in run.points], note, run.outcome, digests)[:16]
        complete = [r for r in line if versions.is_complete(r)]
        number = 1 + max(map(versions.version, complete), default=0)
        mine = [r for r in complete if r.data.tags[versions.KEY] == run.key]
        same = versions.newest(r for r in mine if _holds(r, mark, run.outcome, files))
        if same is None:
            run_id = self._write(experiment_id, run, note, folder if files else None, mark, number)
            return Logged(run_id, "new version" if mine else "created")
        run_id = str(same.info.run_id)
        changes = {k: v for k, v in run.looks.items() if same.data.tags.get(k) != v}
        if same is not versions.newest(r for r in complete if versions.contains(run.selection, r)):
            changes[versions.VERSION] = str(number)  # logged again, so it is current again
        for key, value in changes.items():
            _again(partial(self.client.set_tag, run_id, key, value))
        return Logged(run_id, "new version" if versions.VERSION in changes else "unchanged")

    def settle(self, experiment_id: str, campaign: Campaign) -> Lines:
        """Marks the campaign's complete runs as current or superseded; returns them by line.

        Looks again after each change until there is nothing to change. Whichever writer changes last has then seen all
        that the others wrote, so that the marks agree with `versions.states` once all writers are done.

        Raises:
            WarplogError: other writers keep changing the runs.
        """
        for _ in range(_MOST_PASSES):
            lines = self.lines(experiment_id, campaign)
            tags = {run.info.run_id: run.data.tags for runs in lines.values() for run in runs}
            wanted = {
                run_id: state for runs in lines.values() for run_id, state in versions.states(runs).items()
            }
            wrong = {r: state for r, state in wanted.items() if tags[r].get(versions.STATE) != state}
            if not wrong:
                return lines
            for run_id, state in wrong.items():
                _again(partial(self.client.set_tag, run_id, versions.STATE, state))
        raise WarplogError(
            f"experiment {experiment_id}: other processes keep changing its runs; run again later"
        )

    def put_figures(
        self, experiment_id: str, runs: Collection[str], home: str, page: str, figures: Sequence[Path]
    ) -> int:
        """Adds the page with a family's figures to the runs, and the figures to the run `home`.

        A run that already holds the same figures is left alone. Returns the number of runs that were changed.

        Raises:
            WarplogError: a run is no longer in the store.
        """
        if not figures:
            return 0
        mark = sha256_of(page, [(path.name, sha256_file(path)) for path in figures])[:16]
        wanted = f"attributes.run_id IN ({', '.join(repr(run) for run in sorted(runs))})"
        stored = search_all(self.client, [experiment_id], wanted)
        if lost := set(runs) - {run.info.run_id for run in stored}:
            raise WarplogError(
                f"run {min(lost)} was deleted while it was used; run again, and it is logged anew"
            )
        changed = [run for run in stored if run.data.tags.get(FIGURES) != mark]
        with _staging(self.link.artifacts) as folder:
            write_text(folder / gallery.NAME, page)
            if self.link.artifacts is not None:
                figures = [shutil.copyfile(path, folder / path.name) for path in figures]
            put = partial(self._put_figures, folder / gallery.NAME, figures, home, mark)
            with ThreadPoolExecutor(1 if self.link.artifacts is not None else _UPLOADS) as threads:
                list(threads.map(put, changed))
        return len(changed)

    def _put_figures(
        self, page: Path, figures: Sequence[Path], home: str, mark: str, run: "StoredRun"
    ) -> None:
        run_id = str(run.info.run_id)
        self._put_file(page, run)
        for figure in figures if run_id == home else ():
            self._put_file(figure, run, "figures")
        self.client.set_tag(run_id, FIGURES, mark)

    def _put_file(self, file: Path, run: "StoredRun", folder: str = "") -> None:
        """Adds a file to a run; beside a database file, as a hard link, since all runs of a family have the same page.

        MLflow would write to a temporary file in the run's folder first, which stays there if the process is killed.
        """
        place = _folder(run)
        if self.link.artifacts is None or place is None:
            self.client.log_artifact(run.info.run_id, str(file), folder or None)
            return
        target = place / folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        # A former page may be shared with superseded runs, so it is replaced and not written to.
        target.unlink(missing_ok=True)
        try:
            os.link(file, target)
        except OSError:  # another file system, or one without hard links
            shutil.copyfile(file, target)

    def set_experiment_tag(self, experiment: "Experiment", key: str, value: str) -> None:
        """Sets a tag of an experiment if its value differs."""
        if experiment.tags.get(key) != value:
            _again(lambda: self.client.set_experiment_tag(experiment.experiment_id, key, value))

    def _new_experiment(self, name: str, family: str) -> "Experiment":
        from mlflow.exceptions import MlflowException

        folder = self.link.artifacts
        place = str(folder / re.sub(r"[^\w.-]", "_", name)) if folder else None
        try:
            self.client.create_experiment(name, artifact_location=place, tags={FAMILY: family})
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":  # another process was faster
                raise
        return self.client.get_experiment_by_name(name)

    def _write(
        self, experiment_id: str, run: Run, note: str, folder: Path | None, mark: str, number: int
    ) -> str:
        from mlflow.entities import RunTag

        tags = {
            versions.KEY: run.key,
            versions.SELECTION: versions.joined(run.selection),
            versions.VERSION: str(number),
            versions.STATE: versions.WRITING,
            versions.LOGGED_AT: datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds"),
            writers.WRITER: writers.this_process(),
            "mlflow.note.content": note,
            **_mlflow_tags(run),
            **run.identity,
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
            self._upload(made, folder)
        self.client.set_terminated(run_id, status=run.outcome, end_time=run.ended_ms)
        # The first run of its line is current; whether a further one is, `settle` decides. A run that others took for
        # interrupted is none any more.
        state = versions.CURRENT if number == 1 else versions.WRITING
        last = {versions.FINGERPRINT: mark, versions.STATE: state}
        self.client.log_batch(run_id, tags=[RunTag(key, value) for key, value in last.items()])
        return run_id

    def _upload(self, run: "StoredRun", folder: Path) -> None:
        """Uploads the files of a folder to a run; to a server, several at a time, since each is a request."""
        from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository

        if self.link.artifacts is not None:
            self.client.log_artifacts(run.info.run_id, str(folder))
            return
        # The client's own `log_artifact` asks the server for the run before each of the files.
        place_of_run = get_artifact_repository(run.info.artifact_uri, self.client.tracking_uri)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]

        def send(path: Path) -> None:
            place = path.parent.relative_to(folder).as_posix()
            place_of_run.log_artifact(str(path), None if place == "." else place)

        with ThreadPoolExecutor(_UPLOADS) as threads:
            list(threads.map(send, files))

    def _log(self, run_id: str, run: Run) -> None:
        from mlflow.entities import Metric, Param

        params = [Param(key, value) for key, value in run.params.items()]
        metrics = [Metric(p.name, p.value, run.started_ms, p.step) for p in run.points]
        # The limit of a batch is on the sum of metrics, parameters and tags, too.
        first = params[:_PARAMS_A_BATCH]
        room = _METRICS_A_BATCH - len(first)
        self.client.log_batch(run_id, params=first, metrics=metrics[:room])
        for start in range(_PARAMS_A_BATCH, len(params), _PARAMS_A_BATCH):
            self.client.log_batch(run_id, params=params[start : start + _PARAMS_A_BATCH])
        for start in range(room, len(metrics), _METRICS_A_BATCH):
            self.client.log_batch(run_id, metrics=metrics[start : start + _METRICS_A_BATCH])


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


def search_all(client: Any, experiments: Sequence[str], search: str) -> list["StoredRun"]:
    """Returns all active runs that match the filter, page by page."""
    found: list[StoredRun] = []
    token = None
    while True:
        page = client.search_runs(list(experiments), search, max_results=1000, page_token=token)
        found += page
        token = page.token
        if not token:
            return found


def by_line(runs: Sequence["StoredRun"]) -> Lines:
    """Returns warplog's runs by line; leaves out all others."""
    found: Lines = {}
    for run in runs:
        if versions.KEY in run.data.tags:
            found.setdefault(versions.line_of(run), []).append(run)
    return found


def _holds(run: "StoredRun", mark: str, outcome: str, files: Mapping[str, Path]) -> bool:
    """Returns whether the run has this content; files in a folder are compared by size."""
    if run.data.tags.get(versions.FINGERPRINT) != mark or run.info.status != outcome:
        return False
    place = _folder(run)
    if place is None:
        return True
    there = ((place / name, path) for name, path in files.items())
    return all(stored.is_file() and stored.stat().st_size == path.stat().st_size for stored, path in there)


def _folder(run: "StoredRun") -> Path | None:
    """Returns the folder with the artifacts of a run; None if they are not in the file system."""
    place = str(run.info.artifact_uri).removeprefix("file://")
    return Path(place) if place.startswith("/") else None


@contextlib.contextmanager
def _staging(artifacts: Path | None) -> Iterator[Path]:
    """Makes a temporary folder, in the artifact folder if there is one beside the database.

    Removes folders that killed processes left there; the lock of the database keeps other processes away meanwhile.
    """
    for left in artifacts.glob(f"{_STAGING}*") if artifacts is not None else ():
        shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_STAGING, dir=artifacts) as folder:
        yield Path(folder)


def _mlflow_tags(run: Run) -> dict[str, str]:
    """Returns the tags that the UI shows as source, version and user, and the host that logs."""
    tags = {"mlflow.source.name": "warplog", "mlflow.source.type": "JOB"}
    tags |= {"mlflow.user": _user(), "host": platform.node()}
    commit = run.tags.get("commit", "")
    return tags | ({"mlflow.source.git.commit": commit} if commit else {})


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a user id without a name, as in a container
        return f"uid {os.getuid()}"


def _is_earlier(run: "StoredRun", campaign: Campaign) -> bool:
    """Returns whether a run with the campaign's name and GPU is of this campaign, and logged by an earlier version."""
    tags = run.data.tags
    known = versions.KEY in tags and identity.CAMPAIGN_ID not in tags
    return known and tags.get("content_sha256") == campaign.content_sha256
