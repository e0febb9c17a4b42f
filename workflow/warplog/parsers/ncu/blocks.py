"""The block structure of a .ncu-rep file: checks that the file is complete, which NVIDIA's reader does not.

A report consists of the magic `NVR\\0`, a file header, and blocks up to the end of the file; ncu appends a block for
each piece of session information, each program and each profiled launch. Lengths are little-endian 32-bit
words, headers are protobuf messages (`ProfilerReport.proto`, shipped with ncu under extras/FileFormat).
Truncation inside a block is always detected. Truncation exactly between two blocks is detected if the session
information (written after the first launch) is incomplete, or if a program has no launch. A file that ends after a
later complete launch looks like a session with fewer launches: callers must compare the number of launches.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes

MAGIC = b"NVR\0"
MAX_BYTES = 512 * 1024**2
_VERSION = re.compile(r"(20\d\d\.\d+\.\d+(?:\.\d+)?)")
# Field numbers of BlockHeader, then of the ReportSessionDetails that it contains.
_SOURCES, _RESULTS, _SESSION, _PAYLOAD = 1, (2, 7, 8, 9), 3, 5
_TARGET_SYSTEM, _DEVICES, _VERSIONS, _COMMAND_LINE = 4, 6, 8, 11
_INTERACTIVE = {9, 10}  # a session without a command line, as Nsight Compute's user interface writes it
_COMMAND_LINE_SINCE = (2022, 3)
_MOST_BLOCKS = 100_000
_MOST_PARTS = 100_000


@dataclass
class Contents:
    """The contents of the block headers: number of launches, version of ncu, and which session fields are present.

    `open_source` is set if the last block with programs or launches contains a program, whose launch is then
    still to follow.
    """

    launches: int = 0
    tool_version: str = ""
    session_fields: set[int] = field(default_factory=set)
    open_source: bool = False


class _Truncated(Exception):
    """The data ends before the structure is complete, or is invalid."""


def read_contents(path: Path) -> Contents:
    """Reads the headers of all blocks of the report.

    Raises:
        WarplogError: if the file is not a report, empty, larger than MAX_BYTES, truncated, or has no launch.
    """
    data = _load(path)
    try:
        contents = _walk(data)
    except _Truncated as error:
        raise WarplogError(f"{path}: is truncated or damaged ({error}); profile again") from None
    missing = _missing(contents)
    if missing:
        raise WarplogError(f"{path}: is truncated ({missing}); profile again")
    if contents.launches == 0:
        raise WarplogError(f"{path}: contains no profiled kernel; was one launched in the profiled range?")
    return contents


def is_report(start: bytes) -> bool:
    """Returns whether a file that starts with these bytes is an ncu report."""
    return start.startswith(MAGIC)


def _load(path: Path) -> bytes:
    data = read_bytes(path, MAX_BYTES, "profile fewer launches")
    if not data:
        raise WarplogError(f"{path}: is empty; the profiler wrote no report")
    if not is_report(data):
        raise WarplogError(f"{path}: is not an ncu report (its first bytes are not NVR)")
    return data


def _walk(data: bytes) -> Contents:
    contents = Contents()
    _, position = _take(data, len(MAGIC), "file header")
    blocks = 0
    while position < len(data):
        blocks += 1
        header, position = _take(data, position, "block header")
        if not header or blocks > _MOST_BLOCKS:
            raise _Truncated("a block is empty" if not header else f"over {_MOST_BLOCKS} blocks")
        fields = list(_fields(header))
        counts = [(number, value) for number, value in fields if isinstance(value, int)]
        payload = sum(value for number, value in counts if number == _PAYLOAD)
        sources = sum(value for number, value in counts if number == _SOURCES)
        results = sum(value for number, value in counts if number in _RESULTS)
        end = position + payload
        if end > len(data):
            raise _Truncated(f"a block is {end - len(data)} bytes short")
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
        if parts > least + _MOST_PARTS:
            raise _Truncated(f"a block has over {parts} messages")
    if position != end or parts < least:
        raise _Truncated(f"a block does not contain its {least} messages")


def _read_session(message: bytes, contents: Contents) -> None:
    for number, value in _fields(message):
        contents.session_fields.add(number)
        if number == _VERSIONS and isinstance(value, bytes) and b"Nsight Compute" in value:
            found = _VERSION.search(value.decode("utf-8", "replace"))
            contents.tool_version = found[1] if found else contents.tool_version


def _missing(contents: Contents) -> str:
    needed = {_TARGET_SYSTEM: "system", _DEVICES: "device", _VERSIONS: "version"}
    version = tuple(int(part) for part in contents.tool_version.split(".")[:2] if part)
    if version >= _COMMAND_LINE_SINCE and not contents.session_fields >= _INTERACTIVE:
        needed[_COMMAND_LINE] = "command line"
    absent = [name for number, name in needed.items() if number not in contents.session_fields]
    if absent:
        return f"the session's {', '.join(absent)} information is missing"
    return "its last program has no launch" if contents.open_source else ""


def _take(data: bytes, position: int, what: str) -> tuple[bytes, int]:
    """Returns the length-prefixed message at `position`, and the position of its end."""
    if position + 4 > len(data):
        raise _Truncated(f"the length of a {what} is missing")
    (length,) = struct.unpack_from("<I", data, position)
    end = position + 4 + length
    if end > len(data):
        raise _Truncated(f"a {what} is {end - len(data)} bytes short")
    return data[position + 4 : end], end


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the fields of a protobuf message as (number, value); nested messages and strings are bytes."""
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
            raise _Truncated(f"a header field has the unknown type {wire}")
        if position + length > len(message):
            raise _Truncated("a header field is longer than its header")
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
    raise _Truncated("a number in a header has no end")
