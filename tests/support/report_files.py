"""Writes small profiler reports for tests: an .ncu-rep in ncu's own file format, an nsys SQLite export."""

import sqlite3
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HOPPER = {
    "device__attribute_compute_capability_major": 9,
    "device__attribute_compute_capability_minor": 0,
    "device__attribute_display_name": "NVIDIA H200",
}
SHAPE = {f"launch__{what}_dim_{axis}": 1.0 for what in ("grid", "block") for axis in "xyz"}
PROCESS = 0x1000000 * 77
THREAD = PROCESS + 5


@dataclass
class Launch:
    """One profiled launch; a counter is a number, a text, None, or a mapping of named entries."""

    function: str
    counters: Mapping[str, object] = field(default_factory=dict)
    ranges: Sequence[str] = ()


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def message(*fields: tuple[int, object]) -> bytes:
    """A protobuf message: ints as varints, floats as doubles, text and nested messages with their length."""
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        elif isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def ncu_blocks(launches: Sequence[Launch], version: str = "2025.3.1.0") -> list[bytes]:
    """The header and the blocks of a report, in ncu's order: session information follows the first launch."""
    names: dict[str, int] = {}
    results = [_result(launch, names) for launch in launches]
    table = message(*((1, name) for name in names))
    blocks = [b"NVR\0" + _sized(message((1, 7))), _block(session=message((2, 1795154142)))]
    blocks.append(_block(sources=[message((1, 1), (6, 90))]))
    blocks += [
        _block(results=[result], strings=table if i == 0 else b"") for i, result in enumerate(results[:1])
    ]
    for piece in (
        (6, message((1, 0), (2, "GPU"))),
        (8, message((1, "Nsight Compute Target"), (2, f"{version} (build 1) (public-release)"))),
        (4, message((1, "Linux"))),
        (11, "/opt/ncu --metrics a,b python3 app.py"),
    ):
        blocks.append(_block(session=message(piece)))
    return blocks + [_block(results=[result]) for result in results[1:]]


def write_ncu(path: Path, launches: Sequence[Launch]) -> Path:
    path.write_bytes(b"".join(ncu_blocks(launches)))
    return path


def session_block(*fields: tuple[int, object], payload: int = 0) -> bytes:
    """A block with these fields of the session, which announces a payload of this many bytes."""
    return _sized(message((3, message(*fields)), (5, payload)))


def _sized(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def _block(
    session: bytes = b"", sources: Sequence[bytes] = (), results: Sequence[bytes] = (), strings: bytes = b""
) -> bytes:
    payload = b"".join(_sized(part) for part in (*sources, *results))
    fields = [(1, len(sources)), (2, len(results)), (3, session), (4, strings), (5, len(payload))]
    return _sized(message(*(f for f in fields if f[0] != 3 or session))) + payload


def _result(launch: Launch, names: dict[str, int]) -> bytes:
    size = message((1, 1), (2, 1), (3, 1))
    fields: list[tuple[int, object]] = [
        *((1, 7), (2, 1), (3, 1), (4, 1)),
        *(
            (5, f"_Z{len(launch.function)}{launch.function}v"),
            (6, launch.function),
            (7, f"{launch.function}()"),
        ),
        *((8, 3), (9, size), (10, size), (11, size)),
    ]
    counters = {**HOPPER, **SHAPE, **launch.counters}
    fields += [(13, _metric(names.setdefault(name, len(names)), value)) for name, value in counters.items()]
    fields += [(15, message((1, 1), (6, 90))), (16, 0)]
    if launch.ranges:
        stack = message((1, 0), *((3, message((1, name))) for name in launch.ranges))
        domain = message((1, 0), (2, "<default domain>"))
        fields.append((21, message((1, domain), (2, message((1, 7), (2, stack))), (4, 0))))
    return message(*fields)


def _metric(name: int, value: object) -> bytes:
    if isinstance(value, Mapping):
        entries = [(3, message((1, message((1, key))), (2, _value(count)))) for key, count in value.items()]
        return message((1, name), (2, _value(float(sum(value.values())))), *entries)
    return message((1, name)) if value is None else message((1, name), (2, _value(value)))


def _value(value: object) -> bytes:
    kind = 1 if isinstance(value, str) else 3 if isinstance(value, float) else 5
    return message((kind, value))


KERNEL_2021 = [
    *("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"),
    *("demangledName", "shortName", "launchType", "cacheConfig", "registersPerThread"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"),
]
KERNEL_2026 = [
    *KERNEL_2021,
    "mangledName",
    "greenContextId",
    "clusterX",
    "qmdLastCtaDone",
    "tensorSizeMinusOneElements",
]
RUNTIME = ["start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId"]
NVTX = ["start", "end", "eventType", "text", "globalTid", "textId", "domainId"]
COPY = ["start", "end", "streamId", "correlationId", "globalPid", "deviceId", "bytes", "copyKind"]


@dataclass
class Nsys:
    """Fills an nsys export: ranges and launches in the order of calls, times in ns."""

    path: Path
    kernel_columns: Sequence[str] = tuple(KERNEL_2026)
    strings: dict[str, int] = field(default_factory=dict)
    kernels: list[dict[str, object]] = field(default_factory=list)
    runtime: list[dict[str, object]] = field(default_factory=list)
    nvtx: list[dict[str, object]] = field(default_factory=list)
    copies: list[dict[str, object]] = field(default_factory=list)
    memsets: list[dict[str, object]] = field(default_factory=list)
    diagnostics: list[tuple[int, str]] = field(default_factory=list)
    gpus: Sequence[tuple[str, int, int]] = (("NVIDIA H200", 9, 0),)
    visible: Sequence[int] = ()  # the GPUs by their number in CUDA, if some are hidden

    def text(self, value: str) -> int:
        return self.strings.setdefault(value, len(self.strings) + 1)

    def range(self, name: str, start: int, end: int | None, as_id: bool = False) -> None:
        text = {"textId": self.text(name)} if as_id else {"text": name}
        self.nvtx.append({"start": start, "end": end, "eventType": 59, "globalTid": THREAD, **text})

    def call(self, name: str, start: int, thread: int = THREAD) -> dict[str, object]:
        number = len(self.runtime) + 1
        row = {
            "start": start,
            "end": start + 5,
            "globalTid": thread,
            "correlationId": number,
            "nameId": self.text(name),
        }
        self.runtime.append(row)
        return {"correlationId": number, "globalPid": thread >> 24 << 24}

    def kernel(
        self, name: str, called: int, start: int, duration: int, thread: int = THREAD, device: int = 0
    ) -> None:
        shape = {
            "gridX": 4,
            "gridY": 2,
            "gridZ": 1,
            "blockX": 128,
            "blockY": 1,
            "blockZ": 1,
            "registersPerThread": 32,
        }
        names = {"demangledName": self.text(f"{name}(float*)"), "shortName": self.text(name)}
        memory = {"staticSharedMemory": 1024, "dynamicSharedMemory": 0}
        times = {"start": start, "end": start + duration, "streamId": 7, "deviceId": device}
        self.kernels.append(
            {**self.call("cudaLaunchKernel_v7000", called, thread), **shape, **names, **memory, **times}
        )

    def copy(self, called: int, start: int, duration: int, kind: int, moved: int) -> None:
        row = {"start": start, "end": start + duration, "streamId": 8, "bytes": moved, "copyKind": kind}
        self.copies.append({**self.call("cudaMemcpyAsync_v3020", called), **row})

    def memset(self, called: int, start: int, duration: int, moved: int) -> None:
        row = {"start": start, "end": start + duration, "streamId": 8, "bytes": moved}
        self.memsets.append({**self.call("cudaMemsetAsync_v3020", called), **row})

    def write(self, meta: bool = True) -> Path:
        self.path.unlink(missing_ok=True)
        with sqlite3.connect(self.path) as database:
            self._table(database, "CUPTI_ACTIVITY_KIND_KERNEL", self.kernel_columns, self.kernels)
            self._table(database, "CUPTI_ACTIVITY_KIND_RUNTIME", RUNTIME, self.runtime)
            self._table(database, "CUPTI_ACTIVITY_KIND_MEMCPY", COPY, self.copies)
            self._table(database, "CUPTI_ACTIVITY_KIND_MEMSET", COPY[:-1], self.memsets)
            self._table(database, "NVTX_EVENTS", NVTX, self.nvtx)
            self._table(
                database, "DIAGNOSTIC_EVENT", ["severity", "text"],
                [{"severity": severity, "text": text} for severity, text in self.diagnostics],
            )  # fmt: skip
            named = [{"id": number, "value": value} for value, number in self.strings.items()]
            self._table(database, "StringIds", ["id", "value"], named)
            if meta:
                facts = {"EXPORT_PRODUCT_VERSION": "2025.3.2.0", "EXPORT_SCHEMA_VERSION": "3.20.3"}
                rows = [{"name": name, "value": value} for name, value in facts.items()]
                self._table(database, "META_DATA_EXPORT", ["name", "value"], rows)
                columns = ["id", "name", "computeMajor", "computeMinor"]
                rows = [dict(zip(columns, (i, *gpu), strict=True)) for i, gpu in enumerate(self.gpus)]
                self._table(database, "TARGET_INFO_GPU", columns, rows)
                seen = [{"gpuId": gpu, "cudaId": number} for number, gpu in enumerate(self.visible)]
                self._table(database, "TARGET_INFO_CUDA_DEVICE", ["gpuId", "cudaId"], seen)
        database.close()
        return self.path

    def _table(self, database: sqlite3.Connection, name: str, columns: Sequence[str], rows: list) -> None:
        """As the exporter does: a table without rows does not exist."""
        if rows:
            database.execute(f"create table {name} ({', '.join(map(_quoted, columns))})")
            marks = ", ".join("?" * len(columns))
            database.executemany(
                f"insert into {name} values ({marks})", [[r.get(c) for c in columns] for r in rows]
            )


def _quoted(name: str) -> str:
    return f'"{name}"'
