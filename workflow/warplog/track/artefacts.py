"""The files of a variant's run: source, SASS, records and the ncu report, in the folders of its artifacts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family, Variant
from warplog.core import paths, store
from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_text
from warplog.records import door, stages
from warplog.records.build import Build
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Identity
from warplog.records.profile import Profile
from warplog.records.stages import Recorded
from warplog.tables.view import FigureTables

_RECORDS: Mapping[str, Recorded] = {  # by name of the artefact
    "check.json": stages.CHECK,
    "time.json": stages.TIME,
    "extract.json": stages.EXTRACT,
    "profile_ncu.json": stages.NCU,
    "profile_nsys.json": stages.NSYS,
}
_BUILT = ("kernel.sass", "kernel.ptx", "compile.log")
# Suffix -> folder and name of the artifact. The UI previews some only with a further .txt.
_PLACES: Mapping[str, str] = {
    ".cu": "source/kernel.cu.txt",
    ".cuh": "source/{name}.txt",
    ".py": "source/{name}",
    ".sass": "build/{name}.txt",
    ".ptx": "build/{name}.txt",
    ".log": "build/{name}.txt",
    ".ncu-rep": "reports/{name}",
}


@dataclass(frozen=True)
class VariantFiles:
    """The artefacts of a run.

    Attributes:
        files: source, SASS, report; one that does not exist or is empty is left out.
        records: the variant's records by file name ("time.json").
    """

    files: Sequence[Path] = ()
    records: Mapping[str, Identity] = field(default_factory=dict)


# By family: what finds the files of its variants.
Artefacts = Mapping[str, Callable[[], Mapping[str, VariantFiles]]]


def collect(
    root: Path,
    gpu: str,
    family: Family,
    variants: Sequence[Variant],
    built: Callable[[Variant], Path],
) -> dict[str, VariantFiles]:
    """Returns the files of these variants, from the records in `root`; `built` names a variant's build record.

    Raises:
        WarplogError: a record is not valid.
    """
    stored = {
        artefact: FamilyRecord.read_if_there(
            stage.at(root, gpu=gpu, family=family.name), stage.record
        ).variants
        for artefact, stage in _RECORDS.items()
    }
    captures = paths.captures(stages.NCU.at(root, gpu=gpu, family=family.name))
    collected = {}
    for variant in variants:
        records: dict[str, Any] = {a: of[variant.name] for a, of in stored.items() if variant.name in of}
        build = built(variant)
        if store.is_file(build):
            records["build.json"] = door.read(build, Build)
        report = kept_report(records.get("profile_ncu.json"), family.baseline)
        files = [variant.file, *map(build.with_name, _BUILT), *([captures / report] if report else [])]
        collected[variant.name] = VariantFiles(files, records)
    return collected


def kept_report(capture: Profile | None, baseline: str) -> str:
    """Returns the ncu report for a variant's run: its own, or for the baseline the family's; '' if none."""
    if capture and (capture.variant == baseline or capture.report.startswith(f"{capture.variant}.")):
        return capture.report
    return ""


def lay_out(folder: Path, artefacts: VariantFiles, data: FigureTables, variant: str, home: bool) -> None:
    """Links a run's files into source/, build/ and reports/, and writes its records and rows of tables as files.

    The `home` run has the verdicts on the family's claims.
    """
    for path in artefacts.files:
        if path.is_file() and path.stat().st_size:
            target = folder / _PLACES.get(path.suffix, "other/{name}").format(name=path.name)
            target.parent.mkdir(exist_ok=True)
            target.symlink_to(path.resolve())
    for name, record in artefacts.records.items():
        write_text(folder / "records" / name, door.as_json(record, indent=1) + "\n")
    for name, frame in (("measurements", data.measurements), ("metrics", data.metrics)):
        rows = frame[frame["variant"] == variant]
        if len(rows):
            # The type of a column, and so the text of its numbers, must not depend on the rows of other variants.
            write_text(folder / "tables" / f"{name}.csv", csv_of_table(rows.convert_dtypes()))
    if home and len(data.claims):
        write_text(folder / "tables" / "claims.csv", csv_of_table(data.claims))
