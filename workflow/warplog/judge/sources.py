"""Campaigns by name: the live GPU, a recorded campaign, a results folder, or runs of a tracking store."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.catalog.family import Family
from warplog.core import paths, schema
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord, Record, read_json
from warplog.judge.samples import Campaign, Key, Measured, load
from warplog.machine import device
from warplog.track import connection

if TYPE_CHECKING:
    from mlflow.entities import Run

MLFLOW, PARENTS = "mlflow:", "parents"
_MOST_RUNS = 5000
_RECORDS = ("time", "extract")
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}"  # of a campaign


def live_gpu(settings: Mapping[str, Any], found: device.Gpu | None, project: Path) -> tuple[str, str]:
    """Slug and architecture of the GPU to measure on: the one here (`found`), or the one that is named.

    Raises:
        WarplogError: it is not here, and no gpus.yaml has an entry for it.
    """
    if settings["gpu"] in ("auto", getattr(found, "slug", None)) and found is not None:
        return found.slug, found.arch
    table = device.known_gpus(project)
    if settings["gpu"] not in table:
        raise WarplogError(
            f"config: gpu: {settings['gpu']!r} has no entry in config/gpus.yaml;"
            f" {schema.suggest(settings['gpu'], table)} (mode: live without a GPU requires such a name)"
        )
    return settings["gpu"], table[settings["gpu"]]["arch"]


def recorded_campaign(settings: Mapping[str, Any], project: Path) -> tuple[Path, Record]:
    """Folder and campaign record of the recorded campaign `settings["recorded"]`.

    It is looked up in the working directory first, then in `project`.

    Raises:
        WarplogError: no campaign has that name (the message lists the recorded ones), or `settings["gpu"]` names
            another GPU than the campaign's.
    """
    root = _recorded_root(settings["recorded"], project)
    files = sorted((root / "campaign").glob("*.json"))
    if not files:
        raise WarplogError(
            f"no GPU here ({device.why_not()}) and no recorded campaign {root};"
            f" recorded: {', '.join(_recorded(project)) or 'none'}"
        )
    record = read_json(files[0], "record")
    if settings["gpu"] not in ("auto", record["gpu"]):
        raise WarplogError(
            f"config: gpu: {settings['gpu']!r}: no GPU here, and {root} was measured on {record['gpu']}; set"
            " `recorded` to a campaign of that GPU, or `mode` to live if the jobs run on another machine"
        )
    return root, record


def find(name: str, project: Path = Path()) -> Path | None:
    """The folder with timings that `name` refers to: a results folder, or a recorded campaign; None for neither."""
    if (Path(name) / "time").is_dir():
        return Path(name)
    recorded = _recorded_root(name, project) if re.fullmatch(NAME, name) else None
    return recorded if recorded and (recorded / "time").is_dir() else None


def folder_of(name: str, project: Path) -> Path:
    """The folder that `find` finds.

    Raises:
        WarplogError: there is none; the message lists the recorded campaigns.
    """
    if (found := find(name, project)) is not None:
        return found
    known = ", ".join(_recorded(project))
    if Path(name).is_dir():
        raise WarplogError(
            f"{name}: holds no timings; run the campaign on a machine with a GPU, or name another"
            f" ({known or 'none is recorded'})"
        )
    raise WarplogError(f"{name}: no such folder or recorded campaign ({known or 'none here'})")


def _recorded_root(name: str, project: Path) -> Path:
    """The folder of a recorded campaign, in the working directory or else in `project`."""
    places = [place / paths.recorded_root(name) for place in (Path(), project)]
    return next((place for place in places if place.is_dir()), places[0])


def _recorded(project: Path) -> list[str]:
    folders = {p for place in (Path(), project) for p in (place / paths.RECORDED).glob("[!.]*") if p.is_dir()}
    return sorted({folder.name for folder in folders})


@dataclass(frozen=True)
class Sources:
    """Where names of campaigns are looked up.

    Attributes:
        project: the folder whose results/recorded/ holds the recorded campaigns.
        uri: the tracking store.
        gpu: slug of the GPU, if a folder holds several.
        results: the results folder whose A/A rounds give the floors if no compared campaign has any.
    """

    project: Path
    uri: str = ""
    gpu: str = ""
    results: Path = paths.RESULTS

    def load(self, name: str) -> Campaign:
        """The campaign that `name` means: a folder, a recorded campaign, or mlflow:<campaign or run id>.

        Raises:
            WarplogError: it is none of them, or not readable.
        """
        if name.startswith(MLFLOW):
            with tempfile.TemporaryDirectory(prefix="warplog-mlflow-") as folder:
                fetch(name.removeprefix(MLFLOW), self.uri, Path(folder))
                return replace(load(Path(folder), self.gpu), name=name)
        return load(folder_of(name, self.project), self.gpu)


def parent_of(families: Mapping[str, Family]) -> dict[tuple[str, str], str]:
    """(family, variant) -> the variant that it improves on; variants without one are left out."""
    return {(f.name, v.name): v.parent for f in families.values() for v in f.variants if v.parent}


def parents(campaign: Campaign, above: Mapping[tuple[str, str], str]) -> Campaign:
    """The campaign in which every variant stands for its parent: what a step of a ladder is compared with.

    `above` is (family, variant) -> variant, see parent_of. A variant without a parent, or whose parent was not timed,
    is left out.
    """

    def shifted(cases: Mapping[Key, Measured]) -> dict[Key, Measured]:
        wanted = {key: (key[0], above.get(key[:2], ""), key[2]) for key in cases}
        return {key: cases[parent] for key, parent in wanted.items() if parent in cases}

    rounds = tuple(replace(one, cases=shifted(one.cases)) for one in campaign.rounds)
    return replace(campaign, name=f"parents in {campaign.name}", cases=shifted(campaign.cases), rounds=rounds)


def fetch(wanted: str, uri: str, folder: Path) -> None:
    """Lays out the records of a campaign, or of a single run, as a results folder.

    Raises:
        WarplogError: the store does not answer, holds no such campaign or run, or a record is not one.
    """
    if not re.fullmatch(NAME, wanted):
        raise WarplogError(f"{MLFLOW}{wanted}: neither the name of a campaign nor the id of a run")
    with connection.connect(uri) as link:
        found = list(_runs(link.client, wanted))
        if not found:
            raise WarplogError(f"{MLFLOW}{wanted}: no such campaign or run in {connection.shown(uri)}")
        together: dict[Path, FamilyRecord] = {}
        for run in found:
            for stage, record in _records_of(link.client, run.info.run_id):
                place = paths.family_record(folder, stage, record["gpu"], record["family"])
                together.setdefault(place, FamilyRecord(place, {})).put(record)
    for one in together.values():
        one.write()


def _runs(client: Any, wanted: str) -> Iterator["Run"]:
    """Our runs of that campaign or with that id, in all experiments of ours."""
    mine = [
        experiment.experiment_id
        for experiment in client.search_experiments(max_results=1000)
        if connection.FAMILY in experiment.tags
    ]
    for search in (f"tags.campaign = '{wanted}'", f"attributes.run_id = '{wanted}'"):
        found: Sequence[Run] = client.search_runs(mine, search, max_results=_MOST_RUNS) if mine else ()
        if found:
            yield from found
            return


def _records_of(client: Any, run_id: str) -> Iterator[tuple[str, Record]]:
    """Stage and record of the time and extract records of one run; a run that failed before timing has none."""
    logged = {file.path for file in client.list_artifacts(run_id, "records")}
    for stage in _RECORDS:
        if f"records/{stage}.json" not in logged:
            continue
        with tempfile.TemporaryDirectory(prefix="warplog-record-") as part:
            record = read_json(
                Path(client.download_artifacts(run_id, f"records/{stage}.json", part)), "record"
            )
        if record["stage"] != stage:
            raise WarplogError(f"run {run_id}: records/{stage}.json is of stage {record['stage']}")
        yield stage, record
