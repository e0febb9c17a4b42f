"""The MLflow stage: add the tables, and later the figures, to a tracking store without duplicates."""

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from warplog.core import parallel
from warplog.core.columns import number
from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder
from warplog.core.paths import own_command
from warplog.figures import OF_VARIANT
from warplog.figures.shared import gallery
from warplog.records.campaign import Campaign
from warplog.records.fields import Origin
from warplog.tables import view as figure_data
from warplog.tables.files import as_rows, read_table
from warplog.tables.view import FigureTables
from warplog.track import address, connection, identity, notes, versions
from warplog.track import runs as mlflow_runs
from warplog.track import view as mlflow_view
from warplog.track.artefacts import Artefacts, VariantFiles, lay_out
from warplog.track.presence import LoggedCampaign, LoggedExperiment, LoggedFigures
from warplog.track.runs import Run
from warplog.track.store import Store
from warplog.track.view import View

if TYPE_CHECKING:
    from mlflow.entities import Experiment

EXPERIMENT = "warplog/{family}"
LOCAL_UI = "http://127.0.0.1:5000"

Progress = Callable[[str], None]


def link_base(uri: str) -> str:
    """Returns the address of the UI: the server's, or that of `warplog ui` if its port is free."""
    return address.shown(uri).rstrip("/") if address.is_server(uri) else LOCAL_UI


def log_campaign(
    tables: Path,
    campaign: Campaign,
    artefacts: Artefacts,
    uri: str,
    progress: Progress = lambda line: None,
    attempt: int = 1,
    processes: int = 1,
) -> LoggedCampaign:
    """Adds the tables to the store at `uri`: one experiment per family, one run per variant, not nested.

    Logging the same tables again changes nothing. A variant whose numbers or files changed gets a new run, and the
    former one is marked as superseded. No run is deleted or replaced: one with cases that are not in these tables stays
    current (`versions.states`). `campaign` is the campaign record; `progress` receives each progress line. Up to
    `processes` processes make what is logged, while this one writes to the store.

    Raises:
        WarplogError: the tables do not hold the campaign, or the store does not answer.
    """
    campaign = identity.identified(campaign)
    families = _families(tables, campaign)
    frames = figure_data.of_families(figure_data.read_all(tables), tables, families)
    parts = [
        _Part(
            mlflow_runs.of_campaign(frames[family], campaign),
            replace(campaign, origin=origin),
            artefacts.get(family, dict),
        )
        for family, origin in families.items()
    ]
    with (
        temporary_folder() as folder,
        parallel.each(partial(_made, folder, _took(tables, campaign)), parts, processes) as made,
        connection.connect(uri) as link,
    ):
        store = Store(link)
        places = {family: store.experiment(EXPERIMENT.format(family=family), family) for family in families}
        store.mark_interrupted([place.experiment_id for place in places.values()])
        logged = [
            _Family(store, part, runs, places[part.data.family], link_base(uri), progress).log()
            for part, runs in zip(parts, made, strict=True)
        ]
    if link_base(uri) == LOCAL_UI:
        progress(f"  track   to open the links, run: {own_command('ui')}")
    _, last = max(written for _, written in logged)
    experiments = tuple(experiment for experiment, _ in logged)
    return LoggedCampaign(uri=address.shown(uri), experiments=experiments, last=last, attempt=attempt)


def log_figures(
    record: LoggedCampaign, folders: Sequence[Path], uri: str, progress: Progress = lambda line: None
) -> LoggedFigures:
    """Adds a page with the family's figures to each of its runs, and the figures as files to its home run.

    Runs whose figures are unchanged are left alone. `record` is the result of log_campaign; `folders` hold the PNG and
    SVG files of a family each, whose name they have.

    Raises:
        WarplogError: the store does not answer.
    """
    figures = {
        # The ladder, from which a reader starts, before the others.
        folder.name: sorted(
            (
                path
                for path in folder.glob("*")
                if path.suffix in (".png", ".svg") and OF_VARIANT not in path.stem
            ),
            key=lambda path: (path.stem != "ladder", path.name),
        )
        for folder in folders
    }
    with connection.connect(uri) as link:
        for experiment in record.experiments:
            drawn = figures.get(experiment.family, [])
            text = gallery.page(experiment.family, [path for path in drawn if path.suffix == ".svg"])
            home = experiment.runs.get(experiment.home, "")
            changed = Store(link).put_figures(
                experiment.experiment_id, experiment.runs.values(), home, text, drawn
            )
            progress(f"  track   {experiment.family}  figures: {len(drawn)} files, new in {changed} runs")
    names = {family: tuple(path.name for path in drawn) for family, drawn in figures.items()}
    return LoggedFigures(uri=record.uri, figures=names)


@dataclass(frozen=True)
class _Part:
    """The tables of one family of an identified campaign, and what finds the files of its variants."""

    data: FigureTables
    campaign: Campaign
    artefacts: Callable[[], Mapping[str, VariantFiles]]


@dataclass(frozen=True)
class _Made:
    """A run with its note and the folder of its files."""

    run: Run
    note: str
    folder: Path


def _made(folder: Path, took_s: Mapping[tuple[str, str], float], part: _Part) -> list[_Made]:
    """Returns the runs of a family, with their files in new folders in `folder`."""
    data, files = part.data, part.artefacts()
    runs = mlflow_runs.runs(data, part.campaign, _colours(data), took_s)
    home, made = mlflow_runs.home(runs), []
    for run, variant in zip(runs, as_rows(data.variants), strict=True):
        place = Path(tempfile.mkdtemp(dir=folder))
        lay_out(place, files.get(run.variant, VariantFiles()), data, run.variant, run is home)
        made.append(_Made(run, notes.run_note(run, variant, data, part.campaign), place))
    return made


@dataclass(frozen=True)
class _Family:
    """What is logged of one family, and where."""

    store: Store
    part: _Part
    made: Sequence[_Made]
    experiment: "Experiment"
    base: str
    progress: Progress

    @property
    def runs(self) -> list[Run]:
        """The runs, in ladder order."""
        return [made.run for made in self.made]

    def log(self) -> tuple[LoggedExperiment, tuple[str, str]]:
        """Returns the experiment as it is now in the store; then the time of its newest run, and that run."""
        place, family = self.experiment.experiment_id, self.part.data.family
        before = self.store.lines(place, self.part.campaign)

        def add(made: _Made) -> tuple[str, str]:
            done = self.store.add(place, made.run, made.note, made.folder, before.get(made.run.line, []))
            shutil.rmtree(made.folder)
            return done

        added = self.store.each(add, self.made)
        for run, (run_id, change) in zip(self.runs, added, strict=True):
            new = run_id and change != "unchanged"
            link = f"  {self.base}/{mlflow_view.run_path(place, run_id)}" if new else ""
            self.progress(f"  track   {family}/{run.variant}  {run.status}  run {change}{link}")
        after = self.store.settle(place, self.part.campaign)
        stored = {}
        for run in self.runs:
            complete = [one for one in after.get(run.line, []) if versions.is_complete(one)]
            # Of equal runs that were written at the same time, that which counts.
            newest = versions.newest(one for one in complete if one.data.tags[versions.KEY] == run.key)
            if newest is not None and versions.is_active(newest):
                stored[run.variant] = newest
        ids = {variant: str(run.info.run_id) for variant, run in stored.items()}
        link = f"{self.base}/{mlflow_view.path(place, self._put_views(ids))}"
        self.progress(f"  track   {family}  {link}")
        home = mlflow_runs.home(self.runs).variant
        written = [
            (run.data.tags.get(versions.LOGGED_AT, ""), ids[variant]) for variant, run in stored.items()
        ]
        logged = LoggedExperiment(family=family, experiment_id=place, link=link, home=home, runs=ids)
        return logged, max(written, default=("", ""))

    def _put_views(self, ids: Mapping[str, str]) -> str:
        """Writes the experiment's note and its two saved views; returns the key of this campaign's view."""
        data, campaign, place = self.part.data, self.part.campaign, self.experiment.experiment_id
        quantity = data.quantity()
        links = {variant: mlflow_view.run_path(place, run) for variant, run in ids.items()}
        note = notes.experiment_note(data, quantity, self.runs, campaign, links)
        self.store.set_experiment_tag(self.experiment, "mlflow.note.content", note)
        label = notes.text_of(data, "size_label", "problem size")
        shared = (quantity.column, data.case, label, self.runs)
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
            self.store.set_experiment_tag(self.experiment, mlflow_view.TAG_PREFIX + name, view.tag())
        return key


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
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in as_rows(mine):
        seconds[str(row["family"]), str(row["variant"])] += number(row, "seconds")
    return seconds


def _colours(data: FigureTables) -> dict[str, str]:
    """Returns the colour of each variant, as in the figures."""
    from warplog.figures.shared.style import variant_styles

    return {variant: style.colour for variant, style in variant_styles(data.variants).items()}
