"""Writes the tables of a campaign from its records: for the rules of a run, and for a campaign recorded before."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from warplog.analysis import answers
from warplog.analysis.conclude import conclude
from warplog.analysis.explanation import sources_of
from warplog.analysis.mechanisms import steps
from warplog.analysis.mechanisms.campaign import TABLES as ARGUED_FROM
from warplog.analysis.mechanisms.model import Calibration, calibration
from warplog.analysis.quantities import Quantities
from warplog.catalog.family import Family, Variant
from warplog.catalog.order import introductions
from warplog.core import parallel
from warplog.core.columns import CLAIMS, FLOORS, MEASUREMENTS, METRICS, ORACLE, ORIGIN, SANITIZE, Cell, Row
from warplog.core.errors import WarplogError, note
from warplog.core.files import write_text
from warplog.duel import open_steps
from warplog.judge import claims, floors, samples
from warplog.judge.oracle import Oracle
from warplog.judge.summary import shown
from warplog.judge.summary.gather import gather
from warplog.judge.summary.rows import Summary
from warplog.machine import device
from warplog.measure.stages import sanitize
from warplog.plan.files import Files
from warplog.plan.plan import Plan
from warplog.records import door, stages
from warplog.records.build import Chips
from warplog.records.family_file import FamilyRecord
from warplog.records.fields import Origin
from warplog.records.requested.sanitize import Sanitize
from warplog.records.requested.step_duels import StepDuels
from warplog.tables import chips, conclusions, view
from warplog.tables.costs import summary as costs
from warplog.tables.files import (
    as_frame,
    as_rows,
    read_file,
    read_table,
    write_parquet,
    write_table,
    write_tables,
)
from warplog.tables.rows import make_rows
from warplog.tables.traced import accesses, pictures
from warplog.tables.verified_records import FamilyRecords, Source
from warplog.worklog.site import index


def write_all(plan: Plan, source: Source, folder: Path) -> None:
    """Writes every table of a campaign; those of stages on request only if it has their records.

    Raises:
        WarplogError: A record is damaged, or a table cannot be written.
    """
    write_measured(plan, source, folder)
    write_floors(plan, source, folder)
    write_claims(plan, folder)
    if Files(plan).records(stages.ACCESSES):
        write_accesses(plan, source, folder)
    write_analysis(
        plan.families, plan.chosen, folder, Files(plan).recorded_ceilings(), len(os.sched_getaffinity(0))
    )
    probes = plan.oracle()
    if Files(probes).records(stages.TIME):
        write_oracle(probes, source, folder)
    if sanitized := [*Files(plan).records(stages.SANITIZE), *Files(probes).records(stages.SANITIZE)]:
        write_findings(plan, source, sanitized, folder)
    if Files(plan).records(stages.DUELS):
        write_duels(plan, source, folder)
    if built := stages.FOR_CHIPS.files(plan.root):
        write_chips(plan, source, built, folder)


def write_measured(plan: Plan, source: Source, folder: Path) -> None:
    """Writes the tables of `core.columns.TABLES`; of a live campaign, says how much time it took."""
    rows = _rows(plan, source)
    write_tables(rows, folder)
    if plan.live:
        note(f"  tables  {source.campaign.campaign}: {costs(rows['stages'])}")


def write_floors(plan: Plan, source: Source, folder: Path) -> None:
    """Writes the smallest gap that counts, case by case, from the processes of the campaign and of its A/A rounds."""
    chosen = {(f, v, case) for f, v in plan.pairs() for case in plan.cases[f]}
    timed = samples.load(plan.root, plan.gpu, counted=False) if Files(plan).records(stages.TIME) else None
    rows = floors.table_rows(timed) if timed else ()
    shown = [row for row in rows if (row["family"], row["variant"], row["case"]) in chosen]
    write_table([{**row, **source.labels()} for row in shown], FLOORS, folder / "floors")


def write_claims(plan: Plan, folder: Path) -> None:
    """Writes the verdicts on claims, the answers to all assertions, and the GPU's ceilings, by the tables there."""
    campaign = answers.read(folder)
    write_table(claims.judge_all(plan.families, campaign), CLAIMS, folder / "claims")
    answered = answers.answer_all(plan.families, campaign)
    write_parquet(answered, conclusions.columns(conclusions.Answer), folder / "answers")
    ceilings = answers.ceilings(plan.families, campaign)
    write_parquet(ceilings, conclusions.columns(conclusions.Ceiling), folder / "ceilings")


def write_analysis(
    families: Mapping[str, Family],
    chosen: Mapping[str, Iterable[Variant]],
    folder: Path,
    ceilings: Sequence[Path] = (),
    processes: int = 1,
) -> None:
    """Writes what is concluded from the tables in `folder`, as Parquet: the tables of `conclusions.ANALYSED`.

    Args:
        families: those of `chosen`, at least.
        chosen: the variants of each family in the tables.
        ceilings: tables of other campaigns of this GPU, for those that this one lacks.
        processes: how many families are analysed at a time.
    """
    names = [
        *view.TABLES,
        "floors",
        "instructions",
        *(name for name in ("ceilings", *view.TRACED) if any(folder.glob(f"{name}.*"))),
    ]
    read = {name: read_table(folder, name) for name in names}
    others = [row for path in ceilings for row in as_rows(read_file(path))]
    tables = view.of_families(read, folder, chosen)
    parts = [(tables[name], families[name], tuple(variants)) for name, variants in chosen.items()]
    with parallel.each(partial(_analysed, others, calibration()), parts, processes) as done:
        analysed = list(done)
    origins = {
        (row["family"], row["variant"]): {name: row[name] for name in ORIGIN}
        for row in as_rows(read["variants"])
    }
    for kind in conclusions.ANALYSED:
        rows = (row for of_family in analysed for row in of_family[kind.TABLE])
        labelled = [{**row, **origins[row["family"], row["variant"]]} for row in rows]
        write_parquet(labelled, conclusions.columns(kind), folder / kind.TABLE)


def _analysed(
    ceilings: Sequence[Row],
    fitted: Calibration,
    of_family: tuple[view.FigureTables, Family, Sequence[Variant]],
) -> dict[str, list[Row]]:
    """Returns the rows about a family, by table, from its tables and further ceilings of the GPU."""
    tables, family, variants = of_family
    sources = sources_of(variants)
    concluded = conclude(tables, sources)
    rows: dict[str, list[Row]] = {
        kind.TABLE: [conclusions.cells(row) for row in concluded.rows(kind.TABLE)]
        for kind in conclusions.OF_FAMILIES
    }
    known = {name: as_rows(getattr(tables, name)) for name in set(ARGUED_FROM) - set(rows)}
    all_ceilings = [*ceilings, *known.pop("ceilings")]
    argued = steps.rows(
        {**known, **rows, "ceilings": all_ceilings}, fitted, {family.name: sources}, {family.name: family}
    )
    for kind, of_kind in argued.items():
        rows[kind.TABLE] = [conclusions.cells(row) for row in of_kind]
    return rows


def write_summary(
    plan: Plan, order: Sequence[Path], figures: Mapping[str, Sequence[str]], folder: Path
) -> None:
    """Writes the result of the run: typed rows, a table of all variants, and the page to open.

    Args:
        order: the files that say in which order families are introduced.
        figures: names of the figures of each family.
        folder: results/.
    """
    introduced = introductions(order, list(plan.chosen))
    tables = folder / "tables"
    read = view.read_all(tables)
    families = list(view.of_families(read, tables, introduced).values())
    campaign, rows = plan.source().campaign, stages.SUMMARY.at(folder)
    origin: Origin = "live" if plan.live else "recorded"
    summary = gather(families, Files(plan).stage_results().troubles, _former(rows), campaign, origin)
    page = index.page(families, introduced, figures, campaign, shown.trouble_table(summary))
    write_text(folder / "index.html", page)
    write_text(rows.with_suffix(".md"), shown.markdown(summary))
    door.write(rows, summary)


def _former(rows: Path) -> Summary | None:
    """Returns the summary of the previous evaluation; None without one, or of another version of warplog."""
    try:
        return door.read(rows, Summary) if rows.is_file() else None
    except WarplogError:
        return None


def write_oracle(plan: Plan, source: Source, folder: Path) -> None:
    """Writes the measurements of the oracle beside their known true values; `plan` is that of its families."""
    rows = _rows(plan, source)
    numbers = Quantities(
        as_frame(rows["measurements"], MEASUREMENTS, "measurements"),
        as_frame(rows["metrics"], METRICS, "metrics"),
    )
    verdicts = Oracle(numbers, source.campaign.device.compute_capability).judge(
        plan.families[f] for f in plan.chosen
    )
    labels = labels_of(source, {str(row["commit"]) for row in rows["measurements"]})
    write_table([{**row, **labels} for row in verdicts], ORACLE, folder / "oracle")


def labels_of(source: Source, commits: set[str]) -> dict[str, Cell]:
    """Returns the origin columns: the campaign, or the commits of measurements outside of it."""
    others = sorted(commits - {"", source.campaign.commit})
    named = " and ".join(f"commit {commit[:7]}, not of the campaign" for commit in others)
    return {**source.labels(), **({"campaign": named} if named else {})}


def write_findings(plan: Plan, source: Source, records: Iterable[Path], folder: Path) -> list[Row]:
    """Writes the findings of compute-sanitizer in these records, and returns the rows."""
    both = {**plan.oracle().chosen, **plan.chosen}
    chosen = {family: {variant.name for variant in variants} for family, variants in both.items()}
    rows: list[Row] = [
        {**row, "campaign": source.campaign.campaign}
        for path in records
        for variant, record in FamilyRecord.read(path, Sanitize).variants.items()
        if variant in chosen[path.stem]
        for row in sanitize.rows(record)
    ]
    write_table(rows, SANITIZE, folder / "sanitize")
    return rows


def write_accesses(plan: Plan, source: Source, folder: Path) -> list[Row]:
    """Writes the traced accesses of all variants, and returns the rows of the table `accesses`."""
    rows: dict[str, list[Row]] = {name: [] for name in (*accesses.TABLES, *pictures.TABLES)}
    for family, variants in {**plan.oracle().chosen, **plan.chosen}.items():
        stored = FamilyRecords(source, family)
        for variant in variants:
            key: Row = {"family": family, "variant": variant.name, **source.labels()}
            record = stored.accesses(variant.name)
            for table, row in chain(accesses.rows(record), pictures.rows(record)):
                rows[table].append({**key, **row})
    for table, columns in accesses.TABLES.items():
        write_table(rows[table], columns, folder / table)
    for table, columns in pictures.TABLES.items():
        write_parquet(rows[table], columns, folder / table)
    return rows["accesses"]


def write_duels(plan: Plan, source: Source, folder: Path) -> list[conclusions.Duel]:
    """Writes the verdicts of the duels between chosen variants, and returns the rows."""
    chosen = set(plan.pairs())
    made = open_steps.rows(door.read(path, StepDuels) for path in Files(plan).records(stages.DUELS))
    shown = [row for row in made if {(row.family, row.variant), (row.family, row.against)} <= chosen]
    labelled = [{**conclusions.cells(row), **source.labels()} for row in shown]
    write_table(labelled, conclusions.columns(conclusions.Duel), folder / conclusions.Duel.TABLE)
    return shown


def write_chips(plan: Plan, source: Source, records: Iterable[Path], folder: Path) -> list[conclusions.Chip]:
    """Writes what these builds need on their chips, by the tables of the campaign, and returns the rows."""
    read = (door.read(path, Chips) for path in records)
    variants, metrics = (read_table(folder, name) for name in ("variants", "metrics"))
    entries = {(family, variant.name): variant for family, of in plan.chosen.items() for variant in of}
    made = chips.rows(read, variants, metrics, source.campaign.device.compute_capability, entries)
    labelled = [{**conclusions.cells(row), **source.labels()} for row in made]
    write_table(labelled, conclusions.columns(conclusions.Chip), folder / conclusions.Chip.TABLE)
    return made


def _rows(plan: Plan, source: Source) -> dict[str, list[Row]]:
    peaks = device.peaks(source.campaign.device, device.known_gpus(plan.project))
    return make_rows(source, plan.families, plan.cases, plan.chosen, peaks)
