"""The pack of a gate: sources and builds of both sides, for a machine with a GPU and without the repository."""

import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from warplog.core import store
from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes, write_bytes
from warplog.duel import making
from warplog.duel.changes.gate import Found, chosen, differences
from warplog.duel.making import Target
from warplog.duel.match import TIMER
from warplog.duel.sides import CACHE, WORKING_TREE, families_at, families_of
from warplog.duel.sources import repository_of
from warplog.measure.building.launcher import PREBUILT
from warplog.records import door
from warplog.records.campaign import Gpu
from warplog.records.config import configured
from warplog.records.requested.gate import Pack

_TOP, _RECORD = "pack", "pack/pack.json"
_WHAT, _REMEDY = "a file of a pack", "make it again (warplog gate BASE HEAD --pack FILE)"
_BUILD = ("record.json", "kernel.so", "kernel.sass", PREBUILT)


def pack(found: Found, families: tuple[str, ...], target: Gpu | Target, project: Path) -> bytes:
    """Builds both sides of what may differ, and of the controls, and returns the archive.

    Raises:
        WarplogError: A tool is missing, or a file's name or the size of all files is not accepted.
    """
    _, controls = chosen(found, target, project)
    files = {f"{_TOP}/builds/{TIMER}": making.make_timer(target, project).read_bytes()}
    for corner in (one for pair in (*found.pairs, *((a, b) for a, b, _ in controls)) for one in pair):
        if not corner.variant.is_python:
            built = making.make(corner, target, project).file.parent
            here = [built / name for name in _BUILD if (built / name).is_file()]
            files |= {f"{_TOP}/builds/{corner.folder_name}/{file.name}": file.read_bytes() for file in here}
    top = repository_of(project)
    for ref, commit in zip((found.base, found.head), found.commits, strict=True):
        root = families_at(ref, project)[0].top / project.resolve().relative_to(top) if ref else project
        prefix = f"{_TOP}/sources/{commit or WORKING_TREE}"
        files |= {
            f"{prefix}/{file.relative_to(root).as_posix()}": file.read_bytes() for file in _sources(root)
        }
    record = Pack(
        base=found.base,
        head=found.head,
        base_commit=found.commits[0],
        head_commit=found.commits[1],
        families=families,
        sha256={name: sha256(data).hexdigest() for name, data in files.items()},
    )
    try:
        data = store.pack({**files, _RECORD: door.as_json(record).encode()})
        store.unpack(data, _TOP, _WHAT)
    except ValueError as error:
        raise WarplogError(f"cannot be packed: {error}") from None
    return data


def unpacked(file: Path, project: Path) -> Found:
    """Returns the variants of both sides; the files of the pack are written below `results/.duel`.

    Raises:
        WarplogError: It is no pack, is damaged, or a family in it is invalid.
    """
    data = read_bytes(file, store.MOST_PACKED, _REMEDY)
    try:
        files = store.unpack(data, _TOP, _WHAT)
    except ValueError as error:
        raise WarplogError(f"{file}: is no pack of a gate ({error}); {_REMEDY}") from None
    place = project / CACHE / "packs" / sha256(data).hexdigest()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=place.parent) as name:
        for path, content in files.items():
            (Path(name) / path).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(Path(name) / path, content)
        record = door.read(Path(name) / _RECORD, Pack)
        if record.sha256 != {path: sha256(files[path]).hexdigest() for path in files if path != _RECORD}:
            raise WarplogError(
                f"{file}: is no pack of a gate (its files differ from their digests); {_REMEDY}"
            )
        if not place.is_dir():
            (Path(name) / _TOP).replace(place)
    commits = record.base_commit, record.head_commit
    base, head = (families_of(place / "sources" / (commit or WORKING_TREE)) for commit in commits)
    return differences((record.base, record.head), commits, (base, head), record.families, place / "builds")


def _sources(project: Path) -> Iterator[Path]:
    """Yields the files of a project that define its families."""
    for folder in ("config", "kernels", *configured(project).kernel_folders):
        for file in sorted((project / folder).rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                yield file
