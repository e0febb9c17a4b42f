"""The records of one stage for all variants of a family, in one file: results/<stage>/<gpu>/<family>.json."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from msgspec import Meta

from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.records import door
from warplog.records.fields import VERSION, Frozen, Name, Slug
from warplog.records.measured import OfGpu
from warplog.records.stages import folder_of

Entry = TypeVar("Entry", bound=OfGpu)


class _File(Frozen, frozen=True, kw_only=True):
    """The file as it is read; the entry of each variant is decoded on its own, so that one bad entry costs one."""

    schema: int
    stage: str
    gpu: Slug
    family: Name
    variants: Annotated[dict[Name, dict[str, Any]], Meta(max_length=1000)]


class FamilyRecord(Generic[Entry]):
    """The records of one stage for all variants of a family.

    The file has one line per variant, so that a change in one variant changes one line.

    Attributes:
        path: the file, results/<stage>/<gpu>/<family>.json.
        kind: type of the records, which decides the stage.
        variants: the record of each variant, by name.
        faults: why the record of a variant was left out of `variants`, by name; empty unless `inspect` read the file.
    """

    def __init__(self, path: Path, kind: type[Entry], variants: Mapping[str, Entry]) -> None:
        self.path = path
        self.kind: type[Entry] = kind
        self.variants: dict[str, Entry] = dict(variants)
        self.faults: dict[str, str] = {}

    @classmethod
    def read(cls, path: Path, kind: type[Entry]) -> "FamilyRecord[Entry]":
        """Reads the records in `path`.

        Raises:
            WarplogError: The file is missing, too large, not JSON, of an earlier release or does not fit, or a record
                has another stage, GPU, family or variant than its place.
        """
        file = cls.inspect(path, kind)
        for fault in file.faults.values():
            raise WarplogError(f"{path}: {fault}; delete the file and run again")
        return file

    @classmethod
    def inspect(cls, path: Path, kind: type[Entry]) -> "FamilyRecord[Entry]":
        """Reads the records in `path`; those that do not fit their type or their place are named in `faults`.

        Raises:
            WarplogError: The file is missing, too large, not JSON, of an earlier release, or no list of records by
                variant.
        """
        file = door.decode(door.read_record(path), _File, str(path))
        stage = folder_of(kind)
        place = {"stage": stage, "gpu": file.gpu, "family": file.family}
        if path.absolute().parts[-3] == stage:  # it is in the folder of a campaign
            place |= {"gpu": path.absolute().parts[-2], "family": path.name.partition(".")[0]}
        wrong = misplaced({"stage": file.stage, "gpu": file.gpu, "family": file.family}, place)
        records: FamilyRecord[Entry] = FamilyRecord(path, kind, {})
        for name, data in file.variants.items():
            where = f"variants.{name}"
            try:
                if why := wrong or misplaced(data, {**place, "variant": name}):
                    raise WarplogError(f"{where}: {why}")
                records.variants[name] = door.decode(data, kind, where)
            except WarplogError as error:
                records.faults[name] = str(error)
        return records

    @classmethod
    def inspect_if_there(cls, path: Path, kind: type[Entry]) -> "FamilyRecord[Entry]":
        """Inspects the records in `path`; if the file is missing, there are no variants."""
        return cls.inspect(path, kind) if store.is_file(path) else FamilyRecord(path, kind, {})

    @classmethod
    def read_if_there(cls, path: Path, kind: type[Entry]) -> "FamilyRecord[Entry]":
        """Reads the records in `path`; if the file is missing, there are no variants."""
        return cls.read(path, kind) if store.is_file(path) else FamilyRecord(path, kind, {})

    def put(self, record: Entry) -> None:
        """Adds the record of a variant, or replaces its existing one.

        Raises:
            WarplogError: The record does not fit its type.
        """
        where = f"{self.path}: variants.{record.variant}"
        self.variants[record.variant] = door.decode(door.plain(record), self.kind, where)

    def keep_only(self, variants: Collection[str]) -> None:
        """Removes the records of all variants that are not in `variants`."""
        self.variants = {name: record for name, record in self.variants.items() if name in variants}

    def write(self) -> None:
        """Writes the file atomically; writes nothing if no variant has a record.

        Raises:
            WarplogError: The disk is full or the folder is not writable.
        """
        if self.variants:
            write_text(self.path, self.text())

    def text(self) -> str:
        """Returns the content of the file; there must be a record."""
        first = next(iter(self.variants.values()))
        head = {"schema": VERSION, "stage": folder_of(self.kind), "gpu": first.gpu, "family": first.family}
        lines = (f'"{name}": {door.as_json(record)}' for name, record in self.variants.items())
        return f'{door.as_json(head)[:-1]}, "variants": {{\n' + ",\n".join(lines) + "\n}}\n"


def misplaced(record: Mapping[str, object], place: Mapping[str, str]) -> str:
    """Returns why a record is not the one that belongs in its place, given as the keys to expect; "" if it is."""
    for key, expected in place.items():
        if record.get(key) != expected:
            return f"{key} is {record.get(key)!r}, but its place is that of {expected!r}"
    return ""
