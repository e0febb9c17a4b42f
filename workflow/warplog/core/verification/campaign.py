"""Verifies all records of a campaign's folder: format, place, proof of correctness and statistics."""

from collections.abc import Iterator
from pathlib import Path

from warplog.core import paths, store
from warplog.core.errors import WarplogError
from warplog.core.records import FamilyRecord, Record, misplaced, read_json
from warplog.core.verification.invariants import consistent, shown_correct

_FAMILY_RECORDS = (
    *(f"{stage}/*/*.json" for stage in ("check", "sanitize", "extract", "profile", "time", "timeline")),
    "aa/round*/time/*/*.json",
)
# The keys of a record that its path names, from the end of the path.
_SINGLE_RECORDS = {
    "campaign/*.json": ("gpu",),
    "build/*/*/*/record.json": ("variant", "family", "arch"),
    "tune/*/*/*.json": ("variant", "family", "gpu"),
    "timeline/build/*/*/*/record.json": ("variant", "family", "arch"),
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
    for pattern, keys in _SINGLE_RECORDS.items():
        for path in store.glob(root, pattern):
            names = path.with_suffix("").parts[::-1]
            place = dict(zip(keys, names[1:] if names[0] == "record" else names, strict=False))
            try:
                why = misplaced(read_json(path, "record"), place)
            except WarplogError as error:
                yield str(error)
            else:
                if why:
                    yield f"{path}: {why}"


def _family_problems(root: Path) -> Iterator[str]:
    for pattern in _FAMILY_RECORDS:
        for path in store.glob(root, pattern):
            try:
                found = FamilyRecord.inspect(path)
                yield from (f"{path}: {fault}" for fault in found.faults.values())
                if path.parts[-3] in ("time", "profile", "timeline"):
                    yield from _unbelieved(path.parents[2], found)
            except WarplogError as error:
                yield str(error)


def _unbelieved(root: Path, stage: FamilyRecord) -> Iterator[str]:
    """Yields one line per variant whose results cannot be believed; an A/A round below `root` has no checks."""
    gpu, family = stage.path.parts[-2], stage.path.name.partition(".")[0]
    path = paths.family_record(root, "check", gpu, family)
    checks, checked = FamilyRecord.inspect_if_there(path).variants, bool(store.glob(root, "check/*/*.json"))
    for name, record in stage.variants.items():
        check = checks.get(name, {"status": "missing", "reason": f"not in {path}"})
        proven = shown_correct(record, check, _build(root, family, name)) if checked else record
        if (found := consistent(proven)) != record:
            yield f"{stage.path}: {name}: {found['reason']}"


def _build(root: Path, family: str, variant: str) -> Record | None:
    """Returns the build record of a variant, if there is exactly one that is readable."""
    files = store.glob(root, f"build/*/{family}/{variant}/record.json")
    try:
        record: Record | None = read_json(files[0], "record") if len(files) == 1 else None
    except WarplogError:
        return None  # reported as a damaged record
    return record
