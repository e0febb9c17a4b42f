"""The bytes of a campaign's records, wherever they are: files of a results folder, or packed in a recorded campaign.

A recorded campaign keeps the records of a stage in one archive, `<root>/records/<stage>.tar.xz`, whose members have the
paths that the files have in a results folder. In both, a record is named by that path: `<root>/time/h200/sgemm.json`.

An archive is read in place, once per process, and nothing of it is written to disk. It is not trusted: only regular
files of the archive's own stage are accepted, with plain names, and their number and size are bounded.
"""

import lzma
import re
import tarfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes, state_of

FOLDER, SUFFIX = "records", ".tar.xz"
MOST_PACKED = 32 << 20
_MOST_BYTES = 256 << 20  # of all members; the largest archive that was recorded holds 19 MB
_MOST_MEMORY = 128 << 20  # of the decompressor; the highest preset of xz takes 65 MiB
_MOST_MEMBERS = 20_000
_BLOCK = 512
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+")
_REMEDY = "restore it (git checkout) or record the campaign again (warplog record)"
_DEEPEST = 7  # parts of a record's path below its campaign


def is_file(path: Path) -> bool:
    """Returns whether a record is there: as a file, or packed.

    Raises:
        WarplogError: The archive of its stage is damaged or not accepted.
    """
    return path.is_file() or _member(path) is not None


def read(path: Path, most: int, remedy: str) -> bytes:
    """Returns the content of a record; see `files.read_bytes`.

    Raises:
        WarplogError: As for `files.read_bytes`, or the archive of its stage is damaged or not accepted.
    """
    data = None if path.is_file() else _member(path)
    return read_bytes(path, most, remedy) if data is None else data


def holder(path: Path) -> Path:
    """Returns the file that holds a record, or would hold it: the archive of its stage, if there is one."""
    packed = None if path.is_file() else _archive(path)
    return packed[0] if packed else path


def glob(root: Path, pattern: str) -> list[Path]:
    """Returns the records below `root` whose relative path matches a pattern that begins with a stage, sorted.

    Raises:
        WarplogError: The archive of the stage is damaged or not accepted.
    """
    files = {path for path in root.glob(pattern) if path.is_file()}
    if packed := _archive(root / pattern):
        archive, inside = packed
        files |= {
            root.joinpath(*name.split("/")[inside.count("/") - pattern.count("/") :])
            for name in members(archive)
            if name.count("/") == inside.count("/") and Path(name).match(inside)
        }
    return sorted(files)


def packs(root: Path, stage: str) -> bool:
    """Returns whether a campaign keeps the records of a stage in an archive."""
    return (root / FOLDER / f"{stage}{SUFFIX}").is_file()


def pack(files: Mapping[str, bytes]) -> bytes:
    """Returns an archive of files, given by path; the same files give the same bytes."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)  # without time and owner
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
    return lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def unpack(data: bytes, folder: str, what: str) -> Mapping[str, bytes]:
    """Returns the files of an archive that `pack` has made, by path.

    Args:
        folder: in which all files must be.
        what: what they are, for the error.

    Raises:
        ValueError: It is damaged or not accepted.
    """
    contents: dict[str, bytes] = {}
    try:
        for name, content in _files(_decompressed(data)):
            if not _NAME.fullmatch(name) or not name.startswith(f"{folder}/"):
                raise ValueError(f"{name[:100]!r} is no name of {what}")
            if name in contents or len(contents) == _MOST_MEMBERS:
                raise ValueError(f"{name!r} occurs twice, or there are more than {_MOST_MEMBERS} members")
            contents[name] = content
    except (lzma.LZMAError, tarfile.TarError) as error:
        raise ValueError(str(error)) from None
    return contents


def members(archive: Path) -> Mapping[str, bytes]:
    """Returns the members of an archive by name.

    Raises:
        WarplogError: It is damaged or not accepted.
    """
    return _unpacked(archive.absolute(), state_of(archive))


def _archive(path: Path) -> tuple[Path, str] | None:
    """Returns the archive that a record is in, if there is one, and its name in it."""
    for root in path.parents[:_DEEPEST]:
        inside = path.relative_to(root)
        archive = root / FOLDER / f"{inside.parts[0]}{SUFFIX}"
        if archive.is_file():
            return archive, inside.as_posix()
    return None


def _member(path: Path) -> bytes | None:
    packed = _archive(path)
    return members(packed[0]).get(packed[1]) if packed else None


@lru_cache(maxsize=16)  # the stages of two campaigns
def _unpacked(archive: Path, _state: tuple[int, int]) -> Mapping[str, bytes]:
    try:
        return unpack(
            read_bytes(archive, MOST_PACKED, _REMEDY),
            archive.name.removesuffix(SUFFIX),
            "a record of this stage",
        )
    except ValueError as error:
        raise WarplogError(f"{archive}: is no archive of records ({error}); {_REMEDY}") from None


def _decompressed(data: bytes) -> bytes:
    xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_MEMORY)
    unpacked = xz.decompress(data, _MOST_BYTES + 1)
    if len(unpacked) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    if not xz.eof or xz.unused_data:
        raise ValueError("it is cut short, or something follows it")
    return unpacked


def _files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields name and content of the members of a tar archive, all of which must be regular files."""
    place = 0
    while any(head := data[place : place + _BLOCK]):
        member = tarfile.TarInfo.frombuf(head, "ascii", "strict")  # verifies the checksum
        start = place + _BLOCK
        if member.type != tarfile.REGTYPE:
            raise ValueError(f"{member.name[:100]!r} is not a regular file")
        if not 0 <= member.size <= len(data) - start:
            raise ValueError(f"{member.name[:100]!r} has a wrong size")
        yield member.name, data[start : start + member.size]
        place = start + -(-member.size // _BLOCK) * _BLOCK
