"""Any report that a profiler or compiler wrote, recognised by its content, as rows of metrics.

For reports that warplog did not capture itself: there are no cases, so kernels are told apart by name and
launch. A row has the keys source, tool, tool_version, gpu, cc, kernel, launch, metric, value, unit, status
and reason; what a report does not say is "". What ncu printed gives the values that its .ncu-rep gives, to
the digits that were printed.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from warplog.bounded import read_bytes
from warplog.errors import WarplogError
from warplog.metrics import METRICS, Evaluated, evaluate
from warplog.parsers import (
    ncu_blocks,
    ncu_csv,
    ncu_printed,
    ncu_rep,
    ncu_text,
    nsys_rep,
    nsys_sqlite,
    nsys_stats,
    ptxas,
    sass,
    sqlite_tables,
)
from warplog.parsers.ncu_printed import PrintedLaunch
from warplog.parsers.ncu_rep import NcuLaunch
from warplog.parsers.nsys_sqlite import NsysKernel
from warplog.parsers.nsys_stats import NsysSummary

Row = dict[str, Any]
_MOST_TEXT_BYTES = 64 * 1024**2
_MOST_LINES = 2_000_000
_PTXAS_FACTS = (
    "registers_per_thread",
    "static_shared_bytes",
    "constant_bytes",
    "stack_bytes",
    "spill_store_bytes",
    "spill_load_bytes",
    "barriers",
)


def read_any(path: Path) -> list[Row]:
    """The rows of any report.

    An ncu report, or what ncu printed from it as CSV (raw or details page) or as text; an nsys report (where
    nsys is installed), its SQLite export, or what `nsys stats` printed as CSV or as text; a log of
    `nvcc -Xptxas -v`; a SASS dump.

    Raises:
        WarplogError: the file is missing, damaged, cut, or none of these; one line names it and the remedy.
    """
    start = _start(path)
    if ncu_blocks.is_report(start):
        rows = list(_ncu(path))
    elif sqlite_tables.is_sqlite(start):
        rows = list(_nsys(path))
    elif nsys_rep.is_report(path, start):
        with nsys_rep.exported(path) as database:
            rows = list(_nsys(database))
    else:
        rows = list(_text(path))
    if not rows:
        raise WarplogError(f"{path}: holds no kernel")
    return [{"source": path.name, **row} for row in rows]


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None
    if not start:
        raise WarplogError(f"{path}: is empty")
    return start


def _ncu(path: Path) -> Iterator[Row]:
    report = ncu_rep.read(path)
    for launch in report.launches:
        found = evaluate(launch.counters, launch.compute_capability)
        yield from _counted(launch, launch.compute_capability, launch.index, report.tool_version, found)


def _printed(launches: Sequence[PrintedLaunch]) -> Iterator[Row]:
    for index, launch in enumerate(launches):
        yield from _counted(launch, launch.capability, index, "", ncu_printed.rows(launch))


def _counted(
    launch: NcuLaunch | PrintedLaunch,
    capability: tuple[int, int] | None,
    number: int,
    version: str,
    values: Iterable[Evaluated],
) -> Iterator[Row]:
    common = {
        "tool": "ncu",
        "tool_version": version,
        "gpu": launch.gpu_name,
        "cc": ".".join(map(str, capability or ())),
        "kernel": launch.kernel,
        "launch": number,
    }
    yield from ({**common, **found._asdict()} for found in values)


def _nsys(path: Path) -> Iterator[Row]:
    """One group of rows for each kernel and launch shape; times are medians over its launches."""
    report = nsys_sqlite.read(path)
    groups: dict[tuple[object, ...], list[NsysKernel]] = {}
    for kernel in report.kernels:
        groups.setdefault((kernel.name, kernel.grid, kernel.block), []).append(kernel)
    for number, kernels in enumerate(groups.values()):
        first = kernels[0]
        values = {
            "nsys_kernel_duration_us": median(k.duration_ns for k in kernels) * 1e-3,
            "nsys_launches": len(kernels),
            "registers_per_thread": first.registers,
            "static_shared_bytes": first.static_shared_bytes,
            "grid_blocks": prod(first.grid),
            "block_threads": prod(first.block),
        }
        for metric, value in values.items():
            yield _row("nsys", report.tool_version, report.gpu_name, "", first.name, number, metric, value)


def _text(path: Path) -> Iterator[Row]:
    told = read_bytes(path, _MOST_TEXT_BYTES, "split it, or is it no report?").decode(errors="replace")
    text = re.sub("\r\n?", "\n", told)
    if text.count("\n") > _MOST_LINES:
        raise WarplogError(f"{path}: over {_MOST_LINES} lines of text; split it, or is it no report?")
    try:
        if ncu_csv.is_page(text):
            yield from _printed(ncu_csv.parse(text))
            return
        if ncu_text.is_page(text):
            yield from _printed(ncu_text.parse(text))
            return
        if nsys_stats.is_stats(text):
            yield from _stats(nsys_stats.parse(text))
            return
        yield from _compiled(text)
    except WarplogError as error:
        raise WarplogError(f"{path}: {error}") from None


def _stats(summaries: Sequence[NsysSummary]) -> Iterator[Row]:
    """Rows as of an nsys export; for a memory operation its name stands in for the kernel's."""
    for number, summary in enumerate(summaries):
        duration = "nsys_kernel_duration_us" if summary.is_kernel else "nsys_duration_us"
        values: dict[str, float | None] = {duration: summary.median_us, "nsys_launches": summary.launches}
        if summary.is_kernel:
            values |= dict.fromkeys(("registers_per_thread", "static_shared_bytes"))
            values |= {"grid_blocks": summary.grid_blocks, "block_threads": summary.block_threads}
        for metric, value in values.items():
            yield _row("nsys", "", "", "", summary.name, number, metric, value, "this summary does not say")


def _compiled(text: str) -> Iterator[Row]:
    if "ptxas info" in text:
        ptxas.check_whole(text)
        for number, kernel in enumerate(ptxas.parse(text)):
            for metric in _PTXAS_FACTS:
                value = getattr(kernel, metric)
                yield _row("ptxas", "", "", kernel.arch, kernel.kernel, number, metric, value)
    elif "code for sm_" in text and "Function :" in text:
        sass.check_whole(text)
        yield from _sass(text)
    else:
        raise WarplogError(
            "is no report of ncu or nsys, no page that they print, no `nvcc -Xptxas -v` log, no SASS"
        )


def _sass(text: str) -> Iterator[Row]:
    for arch in sass.targets(text):
        for number, (mangled, opcodes) in enumerate(sass.parse(text, arch).items()):
            counts = {"sass_instructions": sum(opcodes.values())}
            counts |= {f"sass_{opcode}": count for opcode, count in sorted(opcodes.items())}
            for metric, count in counts.items():
                yield _row("cuobjdump", "", "", arch, mangled, number, metric, count)


def _row(
    tool: str,
    version: str,
    gpu: str,
    arch: str,
    kernel: str,
    launch: int,
    metric: str,
    value: float | None,
    absent: str = "",
) -> Row:
    unit = METRICS[metric].unit if metric in METRICS else "inst"
    status, reason = ("ok", "") if value is not None else ("missing", absent or f"{tool} does not say")
    return {
        "tool": tool,
        "tool_version": version,
        "gpu": gpu,
        "cc": _capability(arch),
        "kernel": kernel,
        "launch": launch,
        "metric": metric,
        "value": value,
        "unit": unit,
        "status": status,
        "reason": reason,
    }


def _capability(arch: str) -> str:
    """`9.0` of `sm_90a`; empty where the architecture is."""
    digits = "".join(letter for letter in arch if letter.isdigit())
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) > 1 else ""
