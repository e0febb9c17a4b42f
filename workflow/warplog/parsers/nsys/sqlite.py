"""Reads the SQLite export of Nsight Systems: kernels, copies and the NVTX ranges that launched them.

Columns are selected by name, because later versions added columns (supported: exports of 2021 to 2026). The exporter
omits tables without rows. For the tables see the Nsight Systems documentation, "SQLite schema reference".
"""

import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.parsers.nsys.nvtx import NvtxRange, enclosing, end_of
from warplog.parsers.nsys.tables import opened, select

_PROCESS_SHIFT = 24
_PUSH_POP = 59
_WARNING = 2
_ERROR = 3
_ABOUT_GPU = re.compile("CUDA|CUPTI|GPU", re.IGNORECASE)
_API_VERSION = re.compile(r"_v\d+$")
_KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
# ENUM_CUDA_MEMCPY_OPER of the export; a kind that is not listed is called "Copy".
_COPY_KINDS = {
    1: "Host-to-Device",
    2: "Device-to-Host",
    3: "Host-to-Array",
    4: "Array-to-Host",
    5: "Array-to-Array",
    6: "Array-to-Device",
    7: "Device-to-Array",
    8: "Device-to-Device",
    9: "Host-to-Host",
    10: "Peer-to-Peer",
    11: "Unified Host-to-Device",
    12: "Unified Device-to-Host",
    13: "Unified Device-to-Device",
}


@dataclass(frozen=True)
class NsysEvent:
    """An event of the trace; `ranges` are the NVTX ranges of the launching call, outermost first.

    `device` is the number of the GPU as CUDA counts them, `moved_bytes` the size of a copy or memset.
    """

    name: str
    start_ns: int
    duration_ns: int
    stream: int
    ranges: tuple[str, ...]
    device: int = field(default=0, kw_only=True)
    moved_bytes: int = field(default=0, kw_only=True)


@dataclass(frozen=True)
class NsysKernel(NsysEvent):
    """A kernel; `name` is demangled. Dynamic shared memory excludes the part that the driver reserves."""

    short_name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    static_shared_bytes: int
    dynamic_shared_bytes: int


@dataclass(frozen=True)
class Gpu:
    """Name and compute capability ("9.0") of a GPU; "" if the file does not contain them."""

    name: str = ""
    cc: str = ""


@dataclass(frozen=True)
class NsysReport:
    """One capture. `calls` are the API calls that launched the kernels, copies and memsets (their stream is -1).

    The name of a copy is its direction ("Host-to-Device"), the name of a memset is "Memset". `gpus` are the GPUs by
    their number in CUDA.
    """

    tool_version: str
    gpus: Mapping[int, Gpu]
    kernels: tuple[NsysKernel, ...]
    memcpys: tuple[NsysEvent, ...]
    memsets: tuple[NsysEvent, ...]
    calls: tuple[NsysEvent, ...]

    @property
    def gpu_name(self) -> str:
        """The names of the GPUs that ran something, separated by commas; "" if the file does not contain them."""
        used = sorted({event.device for event in (*self.kernels, *self.memcpys, *self.memsets)})
        return ", ".join(dict.fromkeys(name for device in used if (name := self.gpu(device).name)))

    def gpu(self, device: int) -> Gpu:
        """Returns the GPU with this number; if it is not listed, the only model of GPU in the machine, if any."""
        models = set(self.gpus.values())
        return self.gpus.get(device) or (models.pop() if len(models) == 1 else Gpu())


@dataclass(frozen=True)
class _Calls:
    """Name, start and end of each API call, and the ranges that enclose it, by (process, correlation id)."""

    by_key: Mapping[tuple[int, int], tuple[str, int, int]]
    ranges: Mapping[tuple[int, int], tuple[str, ...]]


def read(path: Path, needs_kernels: bool = True) -> NsysReport:
    """Reads the whole report; unless `needs_kernels`, a report with only copies or memsets is accepted, too.

    Raises:
        WarplogError: if the file is missing, empty, not SQLite, truncated, damaged, or contains no kernel; in the
            last case the message quotes the diagnostics of nsys.
    """
    with opened(path) as connection:
        rows = select(connection, "DIAGNOSTIC_EVENT", ("severity", "text"))
        diagnostics = [(int(severity or 0), " ".join(str(text).split())) for severity, text in rows]
        strings = dict(select(connection, "StringIds", ("id", "value")))
        ranges = _nvtx(connection, strings)
        calls = _calls(connection, strings, ranges)
        kernels = tuple(_kernels(connection, strings, calls))
        memcpys = tuple(_transfers(connection, "MEMCPY", calls))
        memsets = tuple(_transfers(connection, "MEMSET", calls))
        enough = memcpys or memsets if not needs_kernels else ()
        if not kernels and (not enough or any(severity == _ERROR for severity, _ in diagnostics)):
            what = "kernel" if needs_kernels else "kernel, copy or memset"
            raise WarplogError(f"{path}: contains no CUDA {what}{_because(diagnostics)}")
        used = _launching_calls(connection, calls)
        meta = dict(select(connection, "META_DATA_EXPORT", ("name", "value")))
        return NsysReport(
            tool_version=str(meta.get("EXPORT_PRODUCT_VERSION", "")),
            gpus=_gpus(connection),
            kernels=kernels,
            memcpys=memcpys,
            memsets=memsets,
            calls=used,
        )


def _because(diagnostics: list[tuple[int, str]]) -> str:
    errors = [text for severity, text in diagnostics if severity == _ERROR]
    texts = errors or [
        text for severity, text in diagnostics if severity == _WARNING and _ABOUT_GPU.search(text)
    ]
    return f" (nsys reported: {texts[0]})" if texts else "; none was launched, or CUDA was not traced"


def _nvtx(connection: sqlite3.Connection, strings: Mapping[int, str]) -> tuple[NvtxRange, ...]:
    rows = select(connection, "NVTX_EVENTS", ("text", "textId", "start", "end", "globalTid", "eventType"))
    return tuple(
        NvtxRange(str(text if text is not None else strings.get(text_id, "")), start, end_of(end), thread)
        for text, text_id, start, end, thread, kind in rows
        if kind == _PUSH_POP and start is not None and thread is not None
    )


def _calls(
    connection: sqlite3.Connection, strings: Mapping[int, str], ranges: tuple[NvtxRange, ...]
) -> _Calls:
    columns = ("globalTid", "correlationId", "start", "end", "nameId")
    by_key: dict[tuple[int, int], tuple[str, int, int]] = {}
    timed = []
    for thread, correlation, start, end, name in select(connection, "CUPTI_ACTIVITY_KIND_RUNTIME", columns):
        key = (thread >> _PROCESS_SHIFT, correlation)
        if key not in by_key:
            by_key[key] = (_API_VERSION.sub("", strings.get(name, "")), start, end)
            timed.append((key, thread, start, end))
    numbered = enclosing([(i, thread, start, end) for i, (_, thread, start, end) in enumerate(timed)], ranges)
    return _Calls(by_key, {timed[i][0]: names for i, names in numbered.items()})


def _kernels(connection: sqlite3.Connection, strings: Mapping[int, str], calls: _Calls) -> list[NsysKernel]:
    columns = (
        "demangledName",
        "shortName",
        "mangledName",
        "start",
        "end",
        "streamId",
        "globalPid",
        "correlationId",
        "deviceId",
    )
    shape = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
    memory = ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory")
    kernels = []
    for row in select(connection, _KERNELS, (*columns, *shape, *memory)):
        demangled, short, mangled, start, end, stream, process, correlation, device, *numbers = row
        gx, gy, gz, bx, by, bz, registers, static, dynamic = map(_count, numbers)
        if not min(gx, gy, gz, bx, by, bz):
            raise ValueError("a kernel without threads")
        name = next(strings[i] for i in (demangled, mangled, short) if i in strings)
        kernels.append(
            NsysKernel(
                name=name,
                start_ns=start,
                duration_ns=_duration(start, end),
                stream=_count(stream),
                ranges=calls.ranges.get(_key(process, correlation), ()),
                device=_count(device),
                short_name=strings.get(short, name),
                grid=(gx, gy, gz),
                block=(bx, by, bz),
                registers=registers,
                static_shared_bytes=static,
                dynamic_shared_bytes=dynamic,
            )
        )
    return sorted(kernels, key=lambda kernel: kernel.start_ns)


def _transfers(connection: sqlite3.Connection, what: str, calls: _Calls) -> list[NsysEvent]:
    columns = ("start", "end", "streamId", "globalPid", "correlationId", "copyKind", "deviceId", "bytes")
    transfers = []
    for start, end, stream, process, correlation, kind, device, moved in _activity(connection, what, columns):
        name = "Memset" if what == "MEMSET" else _COPY_KINDS.get(kind, "Copy")
        ranges = calls.ranges.get(_key(process, correlation), ())
        times = (start, _duration(start, end))
        where = {"device": _count(device or 0), "moved_bytes": _count(moved)}
        transfers.append(NsysEvent(name, *times, _count(stream), ranges, **where))
    return sorted(transfers, key=lambda transfer: transfer.start_ns)


def _launching_calls(connection: sqlite3.Connection, calls: _Calls) -> tuple[NsysEvent, ...]:
    keys = {
        _key(process, correlation)
        for what in ("KERNEL", "MEMCPY", "MEMSET")
        for process, correlation in _activity(connection, what, ("globalPid", "correlationId"))
    }
    launching = [(calls.by_key[key], calls.ranges.get(key, ())) for key in keys if key in calls.by_key]
    events = [
        NsysEvent(name, start, _duration(start, end), -1, ranges) for (name, start, end), ranges in launching
    ]
    return tuple(sorted(events, key=lambda event: event.start_ns))


def _activity(connection: sqlite3.Connection, what: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return select(connection, f"CUPTI_ACTIVITY_KIND_{what}", columns)


def _count(value: object) -> int:
    """Returns a stored whole number that is not negative; SQLite holds values of any type in any column."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r:.40} in place of a number from 0")
    return value


def _duration(start: object, end: object) -> int:
    if _count(end) < _count(start):
        raise ValueError(f"an event that starts at {start} ns ends at {end} ns")
    return _count(end) - _count(start)


def _key(process: int | None, correlation: int | None) -> tuple[int, int]:
    return (int(process or 0) >> _PROCESS_SHIFT, int(correlation or 0))


def _gpus(connection: sqlite3.Connection) -> dict[int, Gpu]:
    """Returns the GPUs by their number in CUDA, which differs from that in the table if some are hidden."""
    columns = ("id", "cuDevice", "name", "computeMajor", "computeMinor")
    rows = select(connection, "TARGET_INFO_GPU", columns)
    numbers = dict(select(connection, "TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId")))
    gpus: dict[int, Gpu] = {}
    for ident, device, name, major, minor in rows:
        cc = "" if major is None or minor is None else f"{int(major)}.{int(minor)}"
        number = numbers.get(ident) if numbers else (ident if device is None else device)
        if number is not None:
            gpus.setdefault(int(number), Gpu(str(name or ""), cc))
    return gpus
