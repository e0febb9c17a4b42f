"""The framing of a .ncu-rep file: proves that it is whole before NVIDIA's reader, which does not, opens it.

A report is the magic `NVR\\0`, a file header, then blocks up to the end of the file; ncu appends a block for
each piece of session information, each program and each profiled launch. Lengths are little-endian 32-bit
words, headers are protobuf messages (`ProfilerReport.proto`, shipped with ncu under extras/FileFormat).
A cut inside a block always shows. A cut exactly between two blocks shows where the session information
(written after the first launch) is not complete or where a program has no launch; a file that ends after a
whole later launch cannot be told from a session of fewer launches: compare the number of launches.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.records import read_bytes

MAGIC = b"NVR\0"
MAX_BYTES = 512 * 1024**2
_VERSION = re.compile(r"(20\d\d\.\d+\.\d+(?:\.\d+)?)")
# Fields of BlockHeader and of ReportSessionDetails within it.
_SOURCES, _RESULTS, _SESSION, _PAYLOAD = 1, (2, 7, 8, 9), 3, 5
_TARGET_SYSTEM, _DEVICES, _VERSIONS, _COMMAND_LINE = 4, 6, 8, 11
_COMMAND_LINE_SINCE = (2022, 3)


@dataclass
class Contents:
    """What the block headers tell: number of launches, version of ncu, and which parts of the session are there."""

    launches: int = 0
    tool_version: str = ""
    session_fields: set[int] = field(default_factory=set)
    open_source: bool = False


class _Cut(Exception):
    """The bytes end, or make no sense, before the structure does."""


def read_contents(path: Path) -> Contents:
    """Walks over all blocks of the report.

    Raises:
        WarplogError: not a report, empty, larger than MAX_BYTES, cut, or without any launch.
    """
    data = _load(path)
    try:
        contents = _walk(data)
    except _Cut as cut:
        raise WarplogError(f"{path}: is cut or damaged ({cut}); profile again") from None
    missing = _missing(contents)
    if missing:
        raise WarplogError(f"{path}: is cut ({missing}); profile again")
    if contents.launches == 0:
        raise WarplogError(f"{path}: holds no profiled kernel; was anything launched in the profiled range?")
    return contents


def is_report(start: bytes) -> bool:
    """Whether a file that starts with these bytes is an ncu report."""
    return start.startswith(MAGIC)


def _load(path: Path) -> bytes:
    data = read_bytes(path, MAX_BYTES, "profile fewer launches")
    if not data:
        raise WarplogError(f"{path}: is empty; the profiler wrote no report")
    if not is_report(data):
        raise WarplogError(f"{path}: is no ncu report (its first bytes are not NVR)")
    return data


def _walk(data: bytes) -> Contents:
    contents = Contents()
    _, position = _take(data, len(MAGIC), "file header")
    while position < len(data):
        header, position = _take(data, position, "block header")
        fields = list(_fields(header))
        counts = [(number, value) for number, value in fields if isinstance(value, int)]
        payload = sum(value for number, value in counts if number == _PAYLOAD)
        sources = sum(value for number, value in counts if number == _SOURCES)
        results = sum(value for number, value in counts if number in _RESULTS)
        end = position + payload
        if end > len(data):
            raise _Cut(f"a block lacks {end - len(data)} bytes")
        _check_payload(data, position, end, sources + results)
        position = end
        contents.launches += results
        contents.open_source = sources > 0 if sources or results else contents.open_source
        for number, value in fields:
            if number == _SESSION and isinstance(value, bytes):
                _read_session(value, contents)
    return contents


def _check_payload(data: bytes, position: int, end: int, least: int) -> None:
    parts = 0
    while position < end:
        _, position = _take(data, position, "payload")
        parts += 1
    if position != end or parts < least:
        raise _Cut(f"a block of {least} messages does not hold them")


def _read_session(message: bytes, contents: Contents) -> None:
    for number, value in _fields(message):
        contents.session_fields.add(number)
        if number == _VERSIONS and isinstance(value, bytes) and b"Nsight Compute" in value:
            found = _VERSION.search(value.decode("utf-8", "replace"))
            contents.tool_version = found[1] if found else contents.tool_version


def _missing(contents: Contents) -> str:
    needed = {_TARGET_SYSTEM: "system", _DEVICES: "device", _VERSIONS: "version"}
    version = tuple(int(part) for part in contents.tool_version.split(".")[:2] if part)
    if version >= _COMMAND_LINE_SINCE:
        needed[_COMMAND_LINE] = "command line"
    absent = [name for number, name in needed.items() if number not in contents.session_fields]
    if absent:
        return f"the session's {', '.join(absent)} information is missing"
    return "a program stands at its end without the launch that follows" if contents.open_source else ""


def _take(data: bytes, position: int, what: str) -> tuple[bytes, int]:
    """The length-prefixed message at `position`, and where it ends."""
    if position + 4 > len(data):
        raise _Cut(f"the length of a {what} is missing")
    (length,) = struct.unpack_from("<I", data, position)
    end = position + 4 + length
    if end > len(data):
        raise _Cut(f"a {what} lacks {end - len(data)} bytes")
    return data[position + 4 : end], end


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message as (number, value); nested messages and strings as bytes."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(message, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(message, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise _Cut(f"a header field of unknown type {wire}")
        if position + length > len(message):
            raise _Cut("a header field is longer than its header")
        yield number, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message) and shift < 70:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise _Cut("a number in a header does not end")
