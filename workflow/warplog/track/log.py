"""The MLflow stage: add the tables, and later the figures, to a tracking store without duplicates."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from warplog.core.columns import number
from warplog.core.csv_text import csv_of_table
from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder, write_text
from warplog.core.paths import own_command
from warplog.figures.shared import gallery
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.fields import Origin
from warplog.records.measured import Identity
from warplog.tables import view as figure_data
from warplog.tables.files import as_rows, read_table
from warplog.tables.view import FigureTables
from warplog.track import address, connection, identity, notes, versions
from warplog.track import runs as mlflow_runs
from warplog.track import view as mlflow_view
from warplog.track.presence import LoggedCampaign, LoggedExperiment
from warplog.track.runs import Run
from warplog.track.store import Lines, Logged, Store
from warplog.track.view import View

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.entities import Experiment

EXPERIMENT = "warplog/{family}"
LOCAL_UI = "http://127.0.0.1:5000"
_FOLDERS: Mapping[str, str] = {
    ".cu": "source",
    ".cuh": "source",
    ".py": "source",
    ".sass": "build",
    ".ptx": "build",
    ".log": "build",
    ".ncu-rep": "reports",
    ".nsys-rep": "reports",
    ".sqlite": "reports",
}
_NOT_PREVIEWED = (".cuh", ".sass", ".ptx", ".log")  # the UI previews them only with a further .txt


@dataclass(frozen=True)
class VariantFiles:
    """The artefacts of a run.

    Attributes:
        files: source, SASS, reports; one that does not exist or is empty is left out.
        records: the variant's records by file name ("time.json").
    """

    files: Sequence[Path] = ()
    records: Mapping[str, Identity] = field(default_factory=dict)


Artefacts = Mapping[tuple[str, str], VariantFiles]  # by family and variant


@dataclass(frozen=True)
class LoggedFamily:
    """One experiment as it is now in the store: its id, the link to its saved view, its runs by variant.

    `home` is the variant whose run holds what belongs to the whole family.
    """

    family: str
    experiment_id: str
    link: str
    home: str
    runs: Mapping[str, Logged]

    def as_record(self) -> LoggedExperiment:
        """Returns what is kept of it."""
        return LoggedExperiment(
            family=self.family,
            experiment_id=self.experiment_id,
            link=self.link,
            home=self.home,
            runs={variant: run.run_id for variant, run in self.runs.items()},
        )


@dataclass(frozen=True)
class TrackingResult:
    """The content of the store after logging; `uri` holds no password, `last` is the run that was written last."""

    uri: str
    experiments: tuple[LoggedFamily, ...]
    last: str

    def as_record(self, attempt: int = 1) -> LoggedCampaign:
        """Returns what is kept of it; `attempt` is the number of the attempt."""
        experiments = tuple(logged.as_record() for logged in self.experiments)
        return LoggedCampaign(uri=self.uri, experiments=experiments, last=self.last, attempt=attempt)


def link_base(uri: str) -> str:
    """Returns the address of the UI: the server's, or that of `warplog ui` if its port is free."""
    return address.shown(uri).rstrip("/") if address.is_server(uri) else LOCAL_UI


def log_campaign(
    tables: Path,
    campaign: Campaign,
    artefacts: Artefacts,
    uri: str,
    progress: Callable[[str], None] = lambda line: None,
) -> TrackingResult:
    """Adds the tables to the store at `uri`: one experiment per family, one run per variant, not nested.

    Logging the same tables again changes nothing. A variant whose numbers or files changed gets a new run, and the
    former one is marked as superseded. No run is deleted or replaced: one with cases that are not in these tables stays
    current (`versions.states`). `campaign` is the campaign record; `progress` receives each progress line.

    Raises:
        WarplogError: the tables do not hold the campaign, or the store does not answer.
    """
    campaign = identity.identified(campaign)
    families = _families(tables, campaign)
    frames = figure_data.read_all(tables)
    with connection.connect(uri) as link:
        store = Store(link)
        places = {family: store.experiment(EXPERIMENT.format(family=family), family) for family in families}
        store.mark_interrupted([place.experiment_id for place in places.values()])
        took = _took(tables, campaign)
        job = _Job(store, tables, frames, campaign, artefacts, took, link_base(uri), progress)
        logged = tuple(job.log_family(family, origin, places[family]) for family, origin in families.items())
    if link_base(uri) == LOCAL_UI:
        progress(f"  track   to open the links, run: {own_command('ui')}")
    last = max(
        ((one.written, one.run_id) for family in logged for one in family.runs.values()), default=("", "")
    )
    return TrackingResult(address.shown(uri), logged, last[1])


def log_figures(
    record: LoggedCampaign,
    figures: Mapping[str, Sequence[Path]],
    uri: str,
    progress: Callable[[str], None] = lambda line: None,
) -> None:
    """Adds a page with the family's figures to each of its runs, and the figures as files to its home run.

    Runs whose figures are unchanged are left alone. `record` is the result of log_campaign; `figures` are PNG and SVG
    files by family, in the order of the page.

    Raises:
        WarplogError: the store does not answer.
    """
    with connection.connect(uri) as link:
        store = Store(link)
        for logged in record.experiments:
            drawn = [path for path in figures.get(logged.family, ()) if path.is_file()]
            home = logged.runs[logged.home]
            text = gallery.page(logged.family, [path for path in drawn if path.suffix == ".png"])
            changed = store.put_figures(logged.experiment_id, logged.runs.values(), home, text, drawn)
            progress(f"  track   {logged.family}  figures: {len(drawn)} files, new in {changed} runs")


@dataclass(frozen=True)
class _Job:
    store: Store
    tables: Path
    frames: Mapping[str, "pd.DataFrame"]
    campaign: Campaign
    artefacts: Artefacts
    took_s: Mapping[tuple[str, str], float]
    base: str
    progress: Callable[[str], None]

    def log_family(self, family: str, origin: Origin, experiment: "Experiment") -> LoggedFamily:
        campaign = replace(self.campaign, origin=origin)
        data = mlflow_runs.load(self.frames, self.tables, family, campaign)
        runs = mlflow_runs.runs(data, campaign, _colours(data), self.took_s)
        place = experiment.experiment_id
        before = self.store.lines(place, campaign)
        changes = {}
        for run, variant in zip(runs, as_rows(data.variants), strict=True):
            note = notes.run_note(run, variant, data, campaign)
            files = self.artefacts.get((family, run.variant), VariantFiles())
            with temporary_folder() as folder:
                lay_out(folder, files, data, run.variant)
                if run is mlflow_runs.home(runs) and len(data.claims):
                    write_text(folder / "tables" / "claims.csv", csv_of_table(data.claims))
                done = self.store.add(place, run, note, folder, before.get(run.line, []))
            changes[run.variant] = done.change
            link = (
                ""
                if done.change == "unchanged"
                else f"  {self._link(mlflow_view.run_path(place, done.run_id))}"
            )
            self.progress(f"  track   {family}/{run.variant}  {run.status}  run {done.change}{link}")
        after = self.store.settle(place, campaign)
        logged = {run.variant: _stored(run, after, changes[run.variant]) for run in runs}
        key = self._put_views(experiment, data, runs, logged, campaign)
        link = self._link(mlflow_view.path(experiment.experiment_id, key))
        self.progress(f"  track   {family}  {link}")
        return LoggedFamily(family, experiment.experiment_id, link, mlflow_runs.home(runs).variant, logged)

    def _link(self, path: str) -> str:
        return f"{self.base}/{path}"

    def _put_views(
        self,
        experiment: "Experiment",
        data: FigureTables,
        runs: Sequence[Run],
        logged: Mapping[str, Logged],
        campaign: Campaign,
    ) -> str:
        """Writes the experiment's note and its two saved views; returns the key of this campaign's view."""
        quantity = data.quantity()
        links = {
            variant: mlflow_view.run_path(experiment.experiment_id, run.run_id)
            for variant, run in logged.items()
        }
        note = notes.experiment_note(data, quantity, runs, campaign, links)
        self.store.set_experiment_tag(experiment, "mlflow.note.content", note)
        label = notes.text_of(data, "size_label", "problem size")
        shared = (quantity.column, data.case, label, runs)
        names = (identity.project_in(campaign), campaign.gpu, campaign.origin)
        key = "-".join(filter(None, ("warplog", *names)))
        every = f"tags.`{versions.STATE}` = '{versions.CURRENT}'"
        here = f"{every} and tags.{identity.CAMPAIGN_ID} = '{campaign.id}'"
        about = [campaign.project.name, campaign.gpu_name]
        about += ["recorded"] if campaign.origin == "recorded" else []
        views = {
            key: View(f"Speed and counters ({', '.join(filter(None, about))})", here, *shared),
            "warplog-all": View("Speed and counters (all campaigns)", every, *shared, several=True),
        }
        for name, view in views.items():
            self.store.set_experiment_tag(experiment, mlflow_view.TAG_PREFIX + name, view.tag())
        return key


def _stored(run: Run, lines: Lines, change: str) -> Logged:
    """Returns the run in the store: of equal runs that were written at the same time, that which counts."""
    complete = (r for r in lines.get(run.line, []) if versions.is_complete(r))
    found = versions.newest(r for r in complete if r.data.tags[versions.KEY] == run.key)
    if found is None:
        raise WarplogError(f"{run.family}/{run.variant}: its run was deleted while it was logged; run again")
    return Logged(str(found.info.run_id), change, found.data.tags.get(versions.LOGGED_AT, ""))


def lay_out(folder: Path, artefacts: VariantFiles, data: FigureTables, variant: str) -> None:
    """Links a run's files into source/, build/, records/ and reports/, and writes its table rows as CSV."""
    for path in artefacts.files:
        if path.is_file() and path.stat().st_size:
            target = folder / _place(path)
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(path.resolve())
    for name, record in artefacts.records.items():
        write_text(folder / "records" / name, door.as_json(record, indent=1) + "\n")
    (folder / "tables").mkdir()
    for name, frame in (("measurements", data.measurements), ("metrics", data.metrics)):
        rows = frame[frame["variant"] == variant]
        if len(rows):
            # The type of a column, and so the text of its numbers, must not depend on the rows of other variants.
            write_text(folder / "tables" / f"{name}.csv", csv_of_table(rows.convert_dtypes()))


def _place(path: Path) -> str:
    """Returns the artifact path; the source is named kernel.cu.txt, others as the file."""
    kind = next((suffix for suffix in _FOLDERS if path.name.endswith(suffix)), "")
    name = f"{path.name}.txt" if kind in _NOT_PREVIEWED else path.name
    if kind == ".cu":
        name = "kernel.cu.txt"
    return f"{_FOLDERS.get(kind, 'other')}/{name}"


def _families(tables: Path, campaign: Campaign) -> dict[str, Origin]:
    """Returns the campaign's families with the origin of their rows, in the order of the tables."""
    rows = read_table(tables, "variants")
    mine = rows[(rows["campaign"] == campaign.campaign) & (rows["gpu"] == campaign.gpu)]
    if mine.empty:
        raise WarplogError(f"{tables}/variants: no row of campaign {campaign.campaign}; rebuild the tables")
    recorded = zip(mine["family"], mine["origin"] == "recorded", strict=True)
    return {str(family): "recorded" if is_old else "live" for family, is_old in recorded}


def _took(tables: Path, campaign: Campaign) -> dict[tuple[str, str], float]:
    """Returns (family, variant) -> seconds of its jobs, from build to profile; {} without a table `stages`."""
    if not any((tables / f"stages{suffix}").is_file() for suffix in (".parquet", ".csv")):
        return {}
    rows = read_table(tables, "stages")
    mine = rows[(rows["campaign"] == campaign.campaign) & (rows["gpu"] == campaign.gpu)]
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in as_rows(mine):
        found[str(row["family"]), str(row["variant"])] += number(row, "seconds")
    return found


def _colours(data: FigureTables) -> dict[str, str]:
    """Returns the colour of each variant, as in the figures."""
    from warplog.figures.shared.style import variant_styles

    return {variant: style.colour for variant, style in variant_styles(data.variants).items()}
