"""Finds campaigns by name: a recorded campaign, a results folder, or runs in a tracking store."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.catalog.family import Family
from warplog.core import paths, store
from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder
from warplog.judge.samples import Campaign, Key, Measured, load
from warplog.machine import device
from warplog.migration import migrated
from warplog.records import campaign, door
from warplog.records.config import Config
from warplog.records.extract import Extract
from warplog.records.family_file import Entry, FamilyRecord
from warplog.records.stages import folder_of as records_folder
from warplog.records.time import Time
from warplog.records.verification import manifest
from warplog.track import address, connection, identity, versions

if TYPE_CHECKING:
    from mlflow.entities import Run

MLFLOW, PARENTS = "mlflow:", "parents"
_MOST_RUNS = 5000
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"  # pattern of campaign names


def recorded_campaign(settings: Config, project: Path) -> tuple[Path, campaign.Campaign]:
    """Returns folder and campaign record of the recorded campaign `settings.recorded`.

    Searches the working directory first, then `project`.

    Raises:
        WarplogError: no campaign has that name (the message lists the recorded ones), a file is not as its manifest
            says, or `settings.gpu` is not the GPU of the campaign.
    """
    root = _recorded_root(settings.recorded, project)
    files = sorted((root / "campaign").glob("*.json"))
    if not files:
        no_gpu = "" if settings.mode == "recorded" else f"no GPU here ({device.why_not()}) and "
        raise WarplogError(
            f"{no_gpu}no recorded campaign {root}; recorded: {', '.join(_recorded(project)) or 'none'}"
        )
    manifest.check(root)
    record = door.read(files[0], campaign.Campaign)
    if record.gpu != files[0].stem:
        why = f"gpu is {record.gpu!r}, but its place is that of {files[0].stem!r}"
        raise WarplogError(f"{files[0]}: {why}; restore it (git checkout -- {root})")
    if settings.gpu not in ("auto", "all", record.gpu):
        raise WarplogError(
            f"config: gpu: {settings.gpu!r}: the recorded campaign {root} was measured on {record.gpu}; set"
            " `recorded` to a campaign of that GPU, or `mode` to live if the jobs run on another machine"
        )
    return root, record


def find(name: str, project: Path = Path(), holds: str = "time") -> Path | None:
    """Returns the folder that `name` refers to: a results folder, here or in `project`, or a recorded campaign.

    Only folders with a result in a folder `holds` count; "" accepts any. None if there is none.
    """
    recorded = [_recorded_root(name, project)] if re.fullmatch(NAME, name) else []
    places = (Path(name), project / name, *recorded)
    if not holds:
        return next(filter(Path.is_dir, places), None)
    return next(
        (place for place in places if any((place / holds).glob("[!.]*")) or store.packs(place, holds)), None
    )


def folder_of(name: str, project: Path, holds: str = "time") -> Path:
    """Returns the folder that `find` returns.

    Raises:
        WarplogError: there is none; the message lists the recorded campaigns.
    """
    if (folder := find(name, project, holds)) is not None:
        return folder
    hint = f"(recorded: {', '.join(_recorded(project)) or 'none'})"
    if holds == "tables":
        made = paths.command("tables")
        raise WarplogError(
            f"{name}: neither a results folder with tables nor a recorded campaign {hint}; `{made}` makes the tables,"
            f" with --directory FOLDER those in FOLDER/{paths.RESULTS}"
        )
    if Path(name).is_dir():
        raise WarplogError(
            f"{name}: contains no timings; run the campaign on a machine with a GPU, or name another campaign {hint}"
        )
    raise WarplogError(f"{name}: no such folder or recorded campaign {hint}")


def _recorded_root(name: str, project: Path) -> Path:
    """Returns the folder of a recorded campaign: in the working directory if it exists there, else in `project`."""
    places = [place / paths.recorded_root(name) for place in (Path(), project)]
    return next((place for place in places if place.is_dir()), places[0])


def _recorded(project: Path) -> list[str]:
    folders = {p for place in (Path(), project) for p in (place / paths.RECORDED).glob("[!.]*") if p.is_dir()}
    return sorted({folder.name for folder in folders})


@dataclass(frozen=True)
class Sources:
    """Where campaigns are searched by name.

    Attributes:
        project: the folder whose results/recorded/ contains the recorded campaigns.
        uri: the tracking store.
        gpu: slug of the GPU to load, if a folder has several.
        results: the results folder whose A/A rounds give the floors if no compared campaign has any (default:
            that of the project).
        read_report: loads a single report of a profiler (`profiled.load`); None: reports are not accepted.
    """

    project: Path
    uri: str = ""
    gpu: str = ""
    results: Path | None = None
    read_report: Callable[[Path], Campaign] | None = None

    @property
    def own_results(self) -> Path:
        """The results folder with A/A rounds of this project."""
        return self.results or self.project / paths.RESULTS

    def load(self, name: str) -> Campaign:
        """Loads a campaign: a results folder, a recorded campaign, a report, or mlflow:<campaign, its id or a run id>.

        Raises:
            WarplogError: `name` is none of these, or the campaign is not readable.
        """
        if name.startswith(MLFLOW):
            with temporary_folder() as folder:
                fetch(name.removeprefix(MLFLOW), self.uri, folder)
                return replace(load(folder, self.gpu), name=name)
        if self.read_report is not None and Path(name).is_file():
            return self.read_report(Path(name))
        return load(folder_of(name, self.project), self.gpu)


def parent_of(families: Mapping[str, Family]) -> dict[tuple[str, str], str]:
    """Returns (family, variant) -> parent, for all variants with a parent."""
    return {(f.name, v.name): v.parent for f in families.values() for v in f.variants if v.parent}


def parents(campaign: Campaign, above: Mapping[tuple[str, str], str]) -> Campaign:
    """Returns the campaign with the measurements of each variant replaced by those of its parent.

    Comparing a campaign with it compares each variant with its parent. `above` is the result of `parent_of`. Variants
    without a parent, or whose parent was not timed, are left out.
    """

    def shifted(cases: Mapping[Key, Measured]) -> dict[Key, Measured]:
        parent_keys = {key: (key[0], above.get(key[:2], ""), key[2]) for key in cases}
        return {key: cases[parent] for key, parent in parent_keys.items() if parent in cases}

    rounds = tuple(replace(aa_round, cases=shifted(aa_round.cases)) for aa_round in campaign.rounds)
    return replace(campaign, name=f"parents in {campaign.name}", cases=shifted(campaign.cases), rounds=rounds)


def fetch(name: str, uri: str, folder: Path) -> None:
    """Writes the records of a campaign or a single run, from the store at `uri`, to `folder` as a results folder.

    Raises:
        WarplogError: the store does not respond or has no such campaign or run, several campaigns have that name, or a
            record is not valid.
    """
    if not re.fullmatch(NAME, name):
        raise WarplogError(f"{MLFLOW}{name}: neither the name of a campaign nor the id of a run")
    with connection.connect(uri, write=False) as link:
        runs = list(_runs(link.client, name))
        if not runs:
            raise WarplogError(f"{MLFLOW}{name}: no such campaign or run in {address.shown(uri)}")
        ids = [str(run.info.run_id) for run in runs]
        _write([record for id_ in ids for record in _logged(link.client, id_, Time)], Time, folder)
        _write([record for id_ in ids for record in _logged(link.client, id_, Extract)], Extract, folder)


def _write(records: Sequence[Entry], kind: type[Entry], folder: Path) -> None:
    together: dict[Path, FamilyRecord[Entry]] = {}
    for record in records:
        place = folder / records_folder(kind) / record.gpu / f"{record.family}.json"
        together.setdefault(place, FamilyRecord(place, kind, {})).put(record)
    for file in together.values():
        file.write()


def _runs(client: Any, name: str) -> Iterator["Run"]:
    """Yields the runs of the campaign with that name or id, else the run with that id, from warplog's experiments.

    Of a campaign, only current runs; of several runs of a variant, the one with the most cases comes last.
    """
    experiments = [
        experiment.experiment_id
        for experiment in client.search_experiments(max_results=1000)
        if versions.FAMILY in experiment.tags
    ]
    campaign = (f"tags.{key} = '{name}'" for key in ("campaign", identity.CAMPAIGN_ID))
    for search in (*campaign, f"attributes.run_id = '{name}'"):
        runs: Sequence[Run] = (
            client.search_runs(experiments, search, max_results=_MOST_RUNS) if experiments else ()
        )
        if runs and search.startswith("attributes"):
            yield from runs
            return
        kept = [
            run for run in runs if run.data.tags.get(versions.STATE, versions.CURRENT) == versions.CURRENT
        ]
        identity.check_one(name, kept)
        if kept:
            yield from sorted(kept, key=lambda run: run.data.tags.get(versions.SELECTION, "").count(","))
            return


def _logged(client: Any, run_id: str, kind: type[Entry]) -> Iterator[Entry]:
    """Yields the record of a run's stage; a run that failed before the stage has none."""
    name = f"records/{records_folder(kind)}.json"
    if name in {file.path for file in client.list_artifacts(run_id, "records")}:
        with temporary_folder() as part:
            file = Path(client.download_artifacts(run_id, name, str(part)))
            yield door.decode(migrated(door.read_json(file), str(file)), kind, str(file))
