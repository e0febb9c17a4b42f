"""Reads and writes the JSON records of the stages: atomic writes, bounded reads, validated against schemas."""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from warplog.core import schema as schemas
from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.parsing import parse_json

Status = Literal[
    "ok",
    "compile_error",
    "wrong",
    "finding",
    "crashed",
    "timeout",
    "out_of_memory",
    "skipped",
    "unsupported",
    "denied",
    "missing",
    "error",
]
Record = dict[str, Any]
SCHEMA_VERSION = 1
_MOST_BYTES = 64 << 20
_FAMILY_STAGES = ("check", "sanitize", "time", "profile", "timeline", "extract")


def sustained_runs(case: Mapping[str, Any]) -> list[Record]:
    """Returns the sustained runs of a case of stage `time`, one per process; [] if it was not measured sustained."""
    own = [one["sustained"] for one in case.get("processes", ()) if one.get("sustained")]
    return [*own, *case.get("further_sustained", ())]


def write_json(path: Path, data: Mapping[str, Any], schema: str | None = None) -> None:
    """Writes `data` as JSON atomically: `path` holds either the old or the complete new content.

    Raises:
        WarplogError: The data does not fit the schema, the disk is full or the folder is not writable.
    """
    if schema is not None:
        schemas.check(data, schema, str(path))
    text = json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    write_text(path, text)


def read_json(path: Path, schema: str | None = None) -> Any:
    """Returns the JSON content of `path`.

    Raises:
        WarplogError: The file is missing, larger than 64 MiB, not strict JSON (see `parse_json`), or does not fit
            the schema.
    """
    try:
        data = parse_json(store.read(path, _MOST_BYTES, "is it the right file?"))
    except (ValueError, RecursionError) as error:
        raise WarplogError(f"{path}: is not a JSON record ({error}); delete it and run again") from None
    if schema is not None:
        schemas.check(data, schema, str(path))
    return data


def worst(statuses: Iterable[str]) -> str:
    """Returns the first status that is neither 'ok' nor 'skipped', else 'skipped' if there is one, else 'ok'."""
    others = [s for s in statuses if s != "ok"]
    return next((s for s in others if s != "skipped"), others[0] if others else "ok")


def misplaced(record: Record, place: Mapping[str, str]) -> str:
    """Returns why a record is not the one that belongs in its place, given as the keys to expect; "" if it is."""
    for key, expected in place.items():
        if record[key] != expected:
            return f"{key} is {record[key]!r}, but its place is that of {expected!r}"
    return ""


def _place(path: Path) -> dict[str, str]:
    """Returns stage, GPU and family of <stage>/<gpu>/<family>.json; {} if the file is not in a campaign's folder."""
    stage, gpu = ("", "", *path.absolute().parts)[-3:-1]
    family = path.name.partition(".")[0]
    return {"stage": stage, "gpu": gpu, "family": family} if stage in _FAMILY_STAGES else {}


def _fault(record: Record, place: Mapping[str, str], where: str) -> str:
    try:
        schemas.check(record, "record", where)
    except WarplogError as error:
        return str(error)
    wrong = misplaced(record, place)
    return f"{where}: {wrong}" if wrong else ""


class FamilyRecord:
    """The records of one stage for all variants of a family, in one file.

    The file has one line per variant, so that a change in one variant changes one line.

    Attributes:
        path: the file, results/<stage>/<gpu>/<family>.json.
        variants: the record of each variant, by name.
        faults: why the record of a variant was left out of `variants`, by name; empty unless `inspect` read the file.
    """

    def __init__(self, path: Path, variants: Mapping[str, Record]) -> None:
        self.path, self.variants = path, dict(variants)
        self.faults: dict[str, str] = {}

    @classmethod
    def read(cls, path: Path) -> "FamilyRecord":
        """Reads the records in `path`.

        Raises:
            WarplogError: The file is missing, too large, not JSON or does not fit the schema, or a record has another
                stage, GPU, family or variant than its place.
        """
        found = cls.inspect(path)
        for fault in found.faults.values():
            raise WarplogError(f"{path}: {fault}; delete the file and run again")
        return found

    @classmethod
    def inspect(cls, path: Path) -> "FamilyRecord":
        """Reads the records in `path`; those that do not fit the schema or their place are named in `faults`.

        Raises:
            WarplogError: The file is missing, too large, not JSON, or not a list of records by variant.
        """
        data = read_json(path, "family_record")
        place = _place(path) or {key: data[key] for key in ("stage", "gpu", "family")}
        wrong = misplaced(data, place)
        found = cls(path, {})
        for name, record in data["variants"].items():
            if fault := wrong or _fault(record, {**place, "variant": name}, f"variants.{name}"):
                found.faults[name] = fault
            else:
                found.variants[name] = record
        return found

    @classmethod
    def inspect_if_there(cls, path: Path) -> "FamilyRecord":
        """Inspects the records in `path`; if the file is missing, there are no variants."""
        return cls.inspect(path) if store.is_file(path) else cls(path, {})

    @classmethod
    def read_if_there(cls, path: Path) -> "FamilyRecord":
        """Reads the records in `path`; if the file is missing, there are no variants."""
        return cls.read(path) if store.is_file(path) else cls(path, {})

    def put(self, record: Record) -> None:
        """Adds the record of a variant, or replaces its existing one.

        Raises:
            WarplogError: The record does not fit its schema.
        """
        schemas.check(record, "record", f"{self.path}: variants.{record['variant']}")
        self.variants[record["variant"]] = record

    def keep_only(self, variants: Collection[str]) -> None:
        """Removes the records of all variants that are not in `variants`."""
        self.variants = {name: record for name, record in self.variants.items() if name in variants}

    def write(self) -> None:
        """Writes the file atomically; writes nothing if no variant has a record.

        Raises:
            WarplogError: The disk is full or the folder is not writable.
        """
        if not self.variants:
            return
        first = next(iter(self.variants.values()))
        head = {"schema": SCHEMA_VERSION, **{key: first[key] for key in ("stage", "gpu", "family")}}
        lines = (f"{json.dumps(name)}: {_compact(record)}" for name, record in self.variants.items())
        write_text(self.path, _compact(head)[:-1] + ', "variants": {\n' + ",\n".join(lines) + "\n}}\n")


def _compact(data: Mapping[str, Any]) -> str:
    return json.dumps(data, allow_nan=False, ensure_ascii=False)
