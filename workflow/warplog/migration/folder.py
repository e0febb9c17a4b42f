"""Carries a results folder or a recorded campaign of the release before to the present format."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from warplog.core import paths
from warplog.core.csv_text import csv_of_table
from warplog.core.errors import WarplogError
from warplog.core.files import write_bytes
from warplog.core.parsing import parse_json
from warplog.migration.records import migrated_file
from warplog.migration.words import of_table
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.fields import VERSION
from warplog.records.verification import manifest, recorded
from warplog.tables.files import as_parquet, columns, read_file

_STAGES = tuple(dict.fromkeys(f"{pattern.partition('/')[0]}/" for pattern in recorded.RECORDS))


def is_recorded(folder: Path) -> bool:
    """Returns whether the folder is a recorded campaign, not a results folder."""
    return (folder / manifest.NAME).is_file() or folder.absolute().parent.match(str(paths.RECORDED))


def migrate(folder: Path, say: Callable[[str], None]) -> None:
    """Carries a folder over; `say` is given one line per stage.

    Nothing in the folder changes before all of it was read and written anew; after a kill, the same call goes on.

    Raises:
        WarplogError: A file of a recorded campaign is not as its manifest says, a record or table (which the text
            names) cannot be carried over, or the disk is full.
    """
    if is_recorded(folder):
        recorded.restore(folder)
        _recorded_campaign(folder, say)
    else:
        _results_folder(folder, say)


def _recorded_campaign(folder: Path, say: Callable[[str], None]) -> None:
    path = folder / manifest.NAME
    about = door.read_json(path)
    version = about.get("schema") if isinstance(about, dict) else None
    old = {**about, "schema": VERSION} if version == VERSION - 1 else about
    if changed := manifest.differences(folder, door.decode(old, manifest.Manifest, str(path)).files):
        raise WarplogError(changed[0])
    files = recorded.kept(folder, recorded.shown(paths.nearest_project(folder), folder.name))
    if version == VERSION and not any(name.startswith(_STAGES) for name in files):
        say(f"{folder}: is in the present format")
        return
    new = dict(_carried_over(folder, [folder / name for name in files], say))
    files |= {name: data for name, data in new.items() if name in files}
    files["tables/columns.csv"] = columns().encode()
    (campaign,) = (name for name in files if name.startswith("campaign/"))
    typed = door.decode(parse_json(files[campaign]), Campaign, str(folder / campaign))
    size = recorded.write(folder, files, typed)
    say(f"{folder}: packed, {size / 1e6:.1f} MB")


def _results_folder(folder: Path, say: Callable[[str], None]) -> None:
    fresh = folder / ".migrated"
    shutil.rmtree(fresh, ignore_errors=True)
    records = (path for stage in ("campaign/", *_STAGES) for path in sorted((folder / stage).rglob("*.json")))
    tables = sorted((folder / "tables").glob("*.parquet"))
    new = dict(_carried_over(folder, [*records, *tables], say))
    for name, data in new.items():
        write_bytes(fresh / name, data)
        shutil.copystat(folder / name, fresh / name)  # Snakemake runs what is older than its inputs
    for name in new:
        (fresh / name).replace(folder / name)
    shutil.rmtree(fresh, ignore_errors=True)
    if not new:
        say(f"{folder}: is in the present format")


def _carried_over(folder: Path, files: list[Path], say: Callable[[str], None]) -> Iterator[tuple[str, bytes]]:
    """Yields relative path and content of what changes, and says how much that is, by stage."""
    changed: Counter[str] = Counter()
    for path in files:
        name = str(path.relative_to(folder))
        for changed_name, data in _new(path, name):
            yield changed_name, data
            changed[name.partition("/")[0]] += 1
    for stage, count in changed.items():
        say(f"  {stage:9} {count} {'file' if count == 1 else 'files'} carried over")


def _new(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """Yields relative path and content of the files that take the place of one of version 1; none for other files."""
    if path.suffix == ".json":
        data: Any = door.read_json(path)
        if isinstance(data, dict) and data.get("schema") == VERSION - 1 and "stage" in data:
            yield name, migrated_file(data, path).encode()
    elif path.suffix == ".parquet":
        table = read_file(path)
        try:
            new = of_table(table, path.stem)
        except ValueError as error:
            raise WarplogError(f"{path}: the remark {str(error)!r} is not known to this release") from None
        if new is not table:
            yield name, as_parquet(new)
            if path.with_suffix(".csv").is_file():
                yield str(Path(name).with_suffix(".csv")), csv_of_table(new).encode()
