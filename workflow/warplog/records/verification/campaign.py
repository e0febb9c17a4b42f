"""Verifies all records of a campaign's folder: format, place, proof of correctness and statistics."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from warplog.core import paths, store
from warplog.core.errors import WarplogError
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Campaign
from warplog.records.check import Check
from warplog.records.family_file import FOLDERS, FamilyRecord, misplaced
from warplog.records.measured import Absent
from warplog.records.profile import Profile
from warplog.records.time import Time
from warplog.records.timeline import Timeline
from warplog.records.tune import Tune
from warplog.records.verification.invariants import consistent, shown_correct

_FAMILY_RECORDS: Mapping[str, type] = {
    **{f"{folder}/*/*.json": kind for kind, folder in FOLDERS.items()},
    "aa/round*/time/*/*.json": Time,
}
# The type of a record, and the keys that its path names, from the end of the path.
_SINGLE_RECORDS: Mapping[str, tuple[type, tuple[str, ...]]] = {
    "campaign/*.json": (Campaign, ("gpu",)),
    "build/*/*/*/record.json": (Build, ("variant", "family", "arch")),
    "tune/*/*/*.json": (Tune, ("variant", "family", "gpu")),
    "timeline/build/*/*/*/record.json": (Build, ("variant", "family", "arch")),
}


def record_problems(root: Path) -> list[str]:
    """Returns one line per record below `root` that is damaged, misplaced, or has results that cannot be believed.

    `root` is the folder of a campaign, or of several in folders of their own.
    """
    return [line for one in _roots(root) for line in (*_single_problems(one), *_family_problems(one))]


def count(root: Path) -> int:
    """Returns the number of files with records below `root`."""
    patterns = (*_SINGLE_RECORDS, *_FAMILY_RECORDS)
    return sum(len(store.glob(one, pattern)) for one in _roots(root) for pattern in patterns)


def _roots(root: Path) -> list[Path]:
    """Returns the folder, and the folders in it that are those of campaigns (one per GPU)."""
    return [root, *sorted(path.parent for path in root.glob("*/campaign"))]


def _single_problems(root: Path) -> Iterator[str]:
    for pattern, (kind, keys) in _SINGLE_RECORDS.items():
        for path in store.glob(root, pattern):
            names = path.with_suffix("").parts[::-1]
            place = dict(zip(keys, names[1:] if names[0] == "record" else names, strict=False))
            try:
                why = misplaced(asdict(door.read(path, kind)), place)
            except WarplogError as error:
                yield str(error)
            else:
                if why:
                    yield f"{path}: {why}"


def _family_problems(root: Path) -> Iterator[str]:
    for pattern, kind in _FAMILY_RECORDS.items():
        for path in store.glob(root, pattern):
            try:
                found: FamilyRecord[Any] = FamilyRecord.inspect(path, kind)
                yield from (f"{path}: {fault}" for fault in found.faults.values())
                if kind in (Time, Profile, Timeline):
                    yield from _unbelieved(path.parents[2], found)
            except WarplogError as error:
                yield str(error)


def _unbelieved(root: Path, stage: FamilyRecord[Any]) -> Iterator[str]:
    """Yields one line per variant whose results cannot be believed; an A/A round below `root` has no checks."""
    gpu, family = stage.path.parts[-2], stage.path.name.partition(".")[0]
    path = paths.family_record(root, "check", gpu, family)
    checks, checked = (
        FamilyRecord.inspect_if_there(path, Check).variants,
        bool(store.glob(root, "check/*/*.json")),
    )
    for name, record in stage.variants.items():
        check = checks.get(name) or Absent(status="missing", reason=f"not in {path}")
        proven = shown_correct(record, check, _build(root, family, name)) if checked else record
        if (found := consistent(proven)) is not record:
            yield f"{stage.path}: {name}: {found.reason}"


def _build(root: Path, family: str, variant: str) -> Build | None:
    """Returns the build record of a variant, if there is exactly one that is readable."""
    files = store.glob(root, f"build/*/{family}/{variant}/record.json")
    try:
        return door.read(files[0], Build) if len(files) == 1 else None
    except WarplogError:
        return None  # reported as a damaged record
