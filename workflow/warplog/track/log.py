"""The MLflow stage: tells a tracking store what the tables say, and the figures when they are drawn; each once."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.core.errors import WarplogError
from warplog.core.records import read_json
from warplog.tables import view as figure_data
from warplog.tables.files import read_table
from warplog.tables.view import FigureTables
from warplog.track import connection, notes
from warplog.track import runs as mlflow_runs
from warplog.track import view as mlflow_view
from warplog.track.runs import Run
from warplog.track.store import Logged, Store
from warplog.track.view import View

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Experiment

EXPERIMENT = "warplog/{family}"
LOCAL_UI = "http://127.0.0.1:5000"
_CAMPAIGN_KEYS = ("campaign", "gpu", "gpu_name", "started")
_FOLDERS: Mapping[str, str] = {
    ".cu": "source",
    ".cuh": "source",
    ".sass": "build",
    ".log": "build",
    ".ncu-rep": "reports",
    ".nsys-rep": "reports",
    ".sqlite": "reports",
    ".json": "records",
}
_NOT_PREVIEWED = (".cuh", ".sass", ".log")  # by the UI, unless they end in .txt


# Files of a (family, variant): source, SASS, records, reports; one that does not exist or is empty is left out.
Artefacts = Mapping[tuple[str, str], Sequence[Path]]


@dataclass(frozen=True)
class LoggedFamily:
    """One experiment as it stands now: its id, the link to its view, the runs by variant.

    `home` is the variant whose run keeps what is of the whole family.
    """

    family: str
    experiment_id: str
    link: str
    home: str
    runs: Mapping[str, Logged]

    def as_record(self) -> dict[str, Any]:
        """As JSON-able data; `runs` holds the run id of each variant."""
        ids = {variant: run.run_id for variant, run in self.runs.items()}
        names = {"family": self.family, "experiment_id": self.experiment_id, "link": self.link}
        return {**names, "home": self.home, "runs": ids}


@dataclass(frozen=True)
class TrackingResult:
    """What stands in the store now; `uri` is without a password."""

    uri: str
    experiments: tuple[LoggedFamily, ...]

    def as_record(self) -> dict[str, Any]:
        """As JSON-able data, the same after a second run that found nothing to do."""
        return {"uri": self.uri, "experiments": [logged.as_record() for logged in self.experiments]}


def link_base(uri: str) -> str:
    """The address of the UI: the server's own, or the one that `mlflow ui` has by default."""
    served = uri.startswith(("http://", "https://"))
    return connection.shown(uri).rstrip("/") if served else LOCAL_UI


def log_campaign(
    tables: Path,
    campaign: Mapping[str, Any],
    artefacts: Artefacts,
    uri: str,
    tell: Callable[[str], None] = lambda line: None,
) -> TrackingResult:
    """Brings the store at `uri` up to the tables: one experiment per family, one flat run per variant.

    Running again changes nothing; a variant whose numbers or files changed gets a new run in place of its
    old one, and a variant that left the tables loses its run. Other campaigns and foreign runs stay.
    `campaign` is the campaign record; each line of progress goes to `tell`.

    Raises:
        WarplogError: the tables lack the campaign, or the store does not answer.
    """
    for key in _CAMPAIGN_KEYS:
        if not campaign.get(key) or "'" in str(campaign[key]):
            raise WarplogError(
                f"campaign record: {key}: {campaign.get(key)!r}: no usable value; measure again"
            )
    families = _families(tables, campaign)
    frames = figure_data.read_all(tables)
    with connection.connect(uri) as link:
        job = _Job(
            Store(link.client, link.artifacts), tables, frames, campaign, artefacts, link_base(uri), tell
        )
        logged = tuple(job.log_family(family, origin) for family, origin in families.items())
    shown = connection.shown(uri)
    if link_base(uri) == LOCAL_UI:
        tell(f"  track   the links need a server: mlflow ui --backend-store-uri {shown}")
    return TrackingResult(shown, logged)


def log_figures(
    record: Mapping[str, Any],
    figures: Mapping[str, Sequence[Path]],
    uri: str,
    tell: Callable[[str], None] = lambda line: None,
) -> None:
    """Puts each family's figures with its home run; those that lie there already are left alone.

    `record` is what log_campaign left (TrackingResult.as_record).

    Raises:
        WarplogError: the store does not answer.
    """
    with connection.connect(uri) as link:
        store = Store(link.client, link.artifacts)
        for logged in record["experiments"]:
            drawn = [path for path in figures.get(logged["family"], ()) if path.is_file()]
            store.put_figures(logged["runs"][logged["home"]], drawn)
            tell(f"  track   {logged['family']}  {len(drawn)} files of figures")


@dataclass(frozen=True)
class _Job:
    store: Store
    tables: Path
    frames: Mapping[str, "pd.DataFrame"]
    campaign: Mapping[str, Any]
    artefacts: Artefacts
    base: str
    tell: Callable[[str], None]

    def log_family(self, family: str, origin: str) -> LoggedFamily:
        campaign = {**self.campaign, "origin": origin}
        data = mlflow_runs.load(self.frames, self.tables, family, campaign)
        runs = mlflow_runs.runs(data, campaign, _colours(data))
        experiment = self.store.experiment(EXPERIMENT.format(family=family), family)
        old = self.store.campaign_runs(
            experiment.experiment_id, str(campaign["campaign"]), str(campaign["gpu"])
        )
        logged = {}
        for run, variant in zip(runs, data.variants.to_dict("records"), strict=True):
            note = notes.run_note(run, variant, data, campaign)
            files = self.artefacts.get((family, run.variant), ())
            with tempfile.TemporaryDirectory(prefix="warplog-mlflow-") as folder:
                lay_out(Path(folder), files, data, run.variant)
                if run is mlflow_runs.home(runs) and len(data.claims):
                    data.claims.to_csv(Path(folder) / "tables" / "claims.csv", index=False)
                former = old.pop(run.key, [])
                logged[run.variant] = self.store.upsert(
                    experiment.experiment_id, run, note, Path(folder), former
                )
            self.tell(f"  track   {family}/{run.variant}  {run.status}  run {logged[run.variant].change}")
        for gone in old.values():
            self.store.delete(gone)
        key = self._put_views(experiment, data, runs, campaign)
        link = f"{self.base}/{mlflow_view.path(experiment.experiment_id, key)}"
        self.tell(f"  track   {family}  {link}")
        return LoggedFamily(family, experiment.experiment_id, link, mlflow_runs.home(runs).variant, logged)

    def _put_views(
        self, experiment: "Experiment", data: FigureTables, runs: Sequence[Run], campaign: Mapping[str, Any]
    ) -> str:
        """Note and saved views (this campaign, all campaigns) of an experiment; the key of the first view."""
        quantity = data.quantity()
        note = notes.experiment_note(data, quantity, runs, campaign)
        self.store.set_experiment_tag(experiment, "mlflow.note.content", note)
        label = notes.text_of(data, "size_label", "problem size")
        shared = (quantity.column, data.case, label, runs)
        origin = ", recorded" if campaign["origin"] == "recorded" else ""
        key = f"warplog-{campaign['gpu']}-{campaign['origin']}"
        here = f"tags.campaign = '{campaign['campaign']}' and tags.gpu = '{campaign['gpu']}'"
        views = {
            key: View(f"Speed and why ({campaign['gpu_name']}{origin})", here, *shared),
            "warplog-all": View("Speed and why (all campaigns)", "", *shared),
        }
        for name, view in views.items():
            self.store.set_experiment_tag(experiment, mlflow_view.TAG_PREFIX + name, view.tag())
        return key


def lay_out(folder: Path, files: Sequence[Path], data: FigureTables, variant: str) -> None:
    """Lays out a run's files in source/, build/, records/ and reports/, and its rows of the tables as CSV."""
    for path in files:
        if path.is_file() and path.stat().st_size:
            target = folder / _place(path)
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(path.resolve())
    (folder / "tables").mkdir()
    for name, frame in (("measurements", data.measurements), ("metrics", data.metrics)):
        rows = frame[frame["variant"] == variant]
        if len(rows):
            rows.to_csv(folder / "tables" / f"{name}.csv", index=False)


def _place(path: Path) -> str:
    """Where a file goes: kernel.cu.txt for the source, <stage>.json for a record, its own name otherwise."""
    kind = next((suffix for suffix in _FOLDERS if path.name.endswith(suffix)), "")
    name = f"{path.name}.txt" if kind in _NOT_PREVIEWED else path.name
    if kind == ".cu":
        name = "kernel.cu.txt"
    elif kind == ".json":
        record = read_json(path)
        words = [record.get(key) for key in ("stage", "tool")] if isinstance(record, dict) else []
        name = "_".join(str(word) for word in words if word) + ".json" if any(words) else name
    return f"{_FOLDERS.get(kind, 'other')}/{name}"


def _families(tables: Path, campaign: Mapping[str, Any]) -> dict[str, str]:
    """The campaign's families, each with the origin of its rows, in the order of the tables."""
    rows = read_table(tables, "variants")
    mine = rows[(rows["campaign"] == campaign["campaign"]) & (rows["gpu"] == campaign["gpu"])]
    if mine.empty:
        raise WarplogError(
            f"{tables}/variants: no row of campaign {campaign['campaign']}; rebuild the tables"
        )
    return {str(family): str(origin) for family, origin in zip(mine["family"], mine["origin"], strict=True)}


def _colours(data: FigureTables) -> dict[str, str]:
    """The colour of each variant, as in the figures."""
    from warplog.plotting.style import variant_styles

    return {variant: style.colour for variant, style in variant_styles(data.variants).items()}
