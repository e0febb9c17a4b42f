"""Campaigns to compare, by name: a recorded one, a results folder, runs of a tracking store, or the parents in one."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog import campaign_source, layout, mlflow_connection
from warplog.campaign_samples import Campaign, Key, Measured, load
from warplog.catalog import Family
from warplog.errors import WarplogError
from warplog.records import read_json

if TYPE_CHECKING:
    from mlflow.entities import Run

MLFLOW, PARENTS = "mlflow:", "parents"
_MOST_RUNS = 5000
_RECORDS = ("time", "extract")


@dataclass(frozen=True)
class Sources:
    """What names of campaigns are looked up in: the project's folder, its tracking store, the GPU's slug."""

    project: Path
    uri: str = ""
    gpu: str = ""

    def load(self, name: str) -> Campaign:
        """The campaign that `name` means: a folder, a recorded campaign, or mlflow:<campaign or run id>.

        Raises:
            WarplogError: it is none of them, or not readable.
        """
        if name.startswith(MLFLOW):
            with tempfile.TemporaryDirectory(prefix="warplog-mlflow-") as folder:
                fetch(name.removeprefix(MLFLOW), self.uri, Path(folder))
                return replace(load(Path(folder), self.gpu), name=name)
        return load(campaign_source.folder_of(name, self.project), self.gpu)


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
    if not re.fullmatch(campaign_source.NAME, wanted):
        raise WarplogError(f"{MLFLOW}{wanted}: neither the name of a campaign nor the id of a run")
    with mlflow_connection.connect(uri) as link:
        found = list(_runs(link.client, wanted))
        if not found:
            raise WarplogError(f"{MLFLOW}{wanted}: no such campaign or run in {mlflow_connection.shown(uri)}")
        for run in found:
            _fetch_run(link.client, run.info.run_id, folder)


def _runs(client: Any, wanted: str) -> Iterator["Run"]:
    """Our runs of that campaign or with that id, in all experiments of ours."""
    mine = [
        experiment.experiment_id
        for experiment in client.search_experiments(max_results=1000)
        if mlflow_connection.FAMILY in experiment.tags
    ]
    for search in (f"tags.campaign = '{wanted}'", f"attributes.run_id = '{wanted}'"):
        found: Sequence[Run] = client.search_runs(mine, search, max_results=_MOST_RUNS) if mine else ()
        if found:
            yield from found
            return


def _fetch_run(client: Any, run_id: str, folder: Path) -> None:
    """The time and extract records of one run; one that failed before it was timed has none."""
    logged = {file.path for file in client.list_artifacts(run_id, "records")}
    for stage in _RECORDS:
        if f"records/{stage}.json" not in logged:
            continue
        with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
            path = Path(client.download_artifacts(run_id, f"records/{stage}.json", part))
            record = read_json(path, "record")
            if record["stage"] != stage:
                raise WarplogError(f"run {run_id}: records/{stage}.json is of stage {record['stage']}")
            place = layout.record(folder, stage, record["gpu"], record["family"], record["variant"])
            place.parent.mkdir(parents=True, exist_ok=True)
            path.replace(place)
