"""Verifies all records of a campaign's folder: format, place, proof of correctness and statistics."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.records import door, stages
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.family_file import FamilyRecord, misplaced
from warplog.records.measured import Absent
from warplog.records.profile import Profile
from warplog.records.requested.accesses import Accesses
from warplog.records.requested.timeline import Timeline
from warplog.records.time import Time
from warplog.records.verification.invariants import consistent, shown_correct


def record_problems(root: Path) -> list[str]:
    """Returns one line per record below `root` that is damaged, misplaced, or has results that cannot be believed.

    `root` is the folder of a campaign, or of several in folders of their own.
    """
    return [
        line for folder in _roots(root) for line in (*_single_problems(folder), *_family_problems(folder))
    ]


def count(root: Path) -> int:
    """Returns the number of files with records below `root`."""
    return sum(len(stage.files(campaign)) for campaign in _roots(root) for stage in stages.RECORDED)


def _roots(root: Path) -> list[Path]:
    """Returns the folder, and the folders in it that are those of campaigns (one per GPU)."""
    return [root, *sorted(path.parent for path in root.glob("*/campaign"))]


def _single_problems(root: Path) -> Iterator[str]:
    for stage in stages.RECORDED:
        for path in [] if stage.of_family else stage.files(root):
            try:
                why = misplaced(asdict(door.read(path, stage.record)), stage.keys(root, path) or {})
            except WarplogError as error:
                yield str(error)
            else:
                if why:
                    yield f"{path}: {why}"


def _family_problems(root: Path) -> Iterator[str]:
    for stage in stages.RECORDED:
        for path in stage.files(root) if stage.of_family else []:
            try:
                file: FamilyRecord[Any] = FamilyRecord.inspect(path, stage.record)
                yield from (f"{path}: {fault}" for fault in file.faults.values())
                if stage.record in (Time, Profile, Timeline, Accesses):
                    yield from _unbelieved(path.parents[2], file)
            except WarplogError as error:
                yield str(error)


def _unbelieved(root: Path, stage: FamilyRecord[Any]) -> Iterator[str]:
    """Yields one line per variant whose results cannot be believed; an A/A round below `root` has no checks."""
    gpu, family = stage.path.parts[-2], stage.path.name.partition(".")[0]
    path = stages.CHECK.at(root, gpu=gpu, family=family)
    checks, checked = FamilyRecord.inspect_if_there(path, Check).variants, bool(stages.CHECK.files(root))
    for name, record in stage.variants.items():
        check = checks.get(name) or Absent(status="missing", reason=f"not in {path}")
        proven = shown_correct(record, check, _build(root, family, name)) if checked else record
        if (believed := consistent(proven)) is not record:
            yield f"{stage.path}: {name}: {believed.reason}"


def _build(root: Path, family: str, variant: str) -> Build | None:
    """Returns the build record of a variant, if there is exactly one that is readable."""
    files = store.glob(root, f"build/*/{family}/{variant}/record.json")
    try:
        return door.read(files[0], Build) if len(files) == 1 else None
    except WarplogError:
        return None  # reported as a damaged record
