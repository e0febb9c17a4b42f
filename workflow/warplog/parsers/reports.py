"""`warplog extract`: reads any report of a profiler or compiler, identified by its content, into rows of metrics."""

import json
import math
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes, write_bytes
from warplog.core.paths import PACKAGE
from warplog.core.process import die_with_parent, explain_exit, run
from warplog.metrics import METRICS, Evaluated, evaluate
from warplog.parsers import ptxas, sass
from warplog.parsers.ncu import blocks, csv, printed
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.ncu import text as ncu_text
from warplog.parsers.ncu.printed import PrintedLaunch
from warplog.parsers.ncu.report import NcuLaunch
from warplog.parsers.nsys import report as nsys_rep
from warplog.parsers.nsys import sqlite, stats, tables
from warplog.parsers.nsys.sqlite import NsysKernel
from warplog.parsers.nsys.stats import NsysSummary

if TYPE_CHECKING:
    import pandas as pd

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
    """Returns the rows of a report, one per kernel and metric.

    Supported are ncu reports and pages that ncu prints (raw or details page as CSV, or text), nsys reports (if
    nsys is installed), their SQLite exports and the output of `nsys stats` (CSV or text), logs of
    `nvcc -Xptxas -v`, and SASS dumps.

    Raises:
        WarplogError: if the file is missing, damaged, truncated, or none of these; the message is one line with
            the file and the remedy.
    """
    start = _start(path)
    if blocks.is_report(start):
        rows = list(_ncu(path))
    elif tables.is_sqlite(start):
        rows = list(_nsys(path))
    elif nsys_rep.is_report(path, start):
        with nsys_rep.exported(path) as database:
            rows = list(_nsys(database))
    else:
        rows = list(_text(path))
    if not rows:
        raise WarplogError(f"{path}: contains no kernel")
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
        yield from _counted(launch, launch.capability, index, "", printed.rows(launch))


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
    """Yields rows per kernel and launch configuration; times are medians over its launches."""
    report = sqlite.read(path)
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
    raw = read_bytes(path, _MOST_TEXT_BYTES, "split it; is it a report at all?").decode(errors="replace")
    text = re.sub("\r\n?", "\n", raw)
    if text.count("\n") > _MOST_LINES:
        raise WarplogError(f"{path}: over {_MOST_LINES} lines of text; split it; is it a report at all?")
    try:
        if csv.is_page(text):
            yield from _printed(csv.parse(text))
            return
        if ncu_text.is_page(text):
            yield from _printed(ncu_text.parse(text))
            return
        if stats.is_stats(text):
            yield from _stats(stats.parse(text))
            return
        yield from _compiled(text)
    except WarplogError as error:
        raise WarplogError(f"{path}: {error}") from None


def _stats(summaries: Sequence[NsysSummary]) -> Iterator[Row]:
    """Yields the same rows as for an nsys export; for a memory operation, `kernel` is the operation's name."""
    for number, summary in enumerate(summaries):
        duration = "nsys_kernel_duration_us" if summary.is_kernel else "nsys_duration_us"
        values: dict[str, float | None] = {duration: summary.median_us, "nsys_launches": summary.launches}
        if summary.is_kernel:
            values |= dict.fromkeys(("registers_per_thread", "static_shared_bytes"))
            values |= {"grid_blocks": summary.grid_blocks, "block_threads": summary.block_threads}
        for metric, value in values.items():
            yield _row("nsys", "", "", "", summary.name, number, metric, value, "not in this summary")


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
            "is not a report of ncu or nsys, nor a page that they print, a `nvcc -Xptxas -v` log or a SASS dump"
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
    status, reason = ("ok", "") if value is not None else ("missing", absent or f"{tool} does not report it")
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
    """Returns `9.0` for `sm_90a`; "" if `arch` is empty."""
    digits = "".join(letter for letter in arch if letter.isdigit())
    return f"{digits[:-1]}.{digits[-1]}" if len(digits) > 1 else ""


# NVIDIA's reader starts with 120 MB of memory and does not free 4 to 13 MB per report of 1 MB.
FILES_A_PROCESS = 10
_PROCESS_S = 600.0
Found = list[dict[str, Any]] | WarplogError
COLUMNS = (
    "source",
    "tool",
    "tool_version",
    "gpu",
    "cc",
    "kernel",
    "launch",
    "metric",
    "value",
    "unit",
    "status",
    "reason",
)


def read_all(files: Sequence[Path], on_error: Callable[[WarplogError], None]) -> "pd.DataFrame":
    """Returns the rows of all files, in the given order, with COLUMNS.

    A file that cannot be read contributes no rows, and its error is passed to `on_error`.
    """
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for found in _here(files) if len(files) <= FILES_A_PROCESS else _apart(files):
        if isinstance(found, WarplogError):
            on_error(found)
            continue
        for name, column in columns.items():  # names and reasons repeat: intern stores each once
            column += (sys.intern(v) if isinstance(v := row[name], str) else v for row in found)
    return pd.DataFrame(columns).astype({"value": "float64"})


def _here(files: Sequence[Path]) -> Iterator[Found]:
    for file in files:
        try:
            yield list(read_any(file))
        except WarplogError as error:
            yield error


def _apart(files: Sequence[Path]) -> Iterator[Found]:
    """Reads the files in several processes, so that memory stays bounded and a crash costs only one file."""
    left = list(files)
    while left:
        chunk = left[:FILES_A_PROCESS]
        with tempfile.TemporaryDirectory(prefix="warplog-") as folder:
            output = Path(folder) / "rows.jsonl"
            command = [sys.executable, "-m", "warplog.parsers.reports", str(output), *map(str, chunk)]
            ended = run(command, timeout_s=_PROCESS_S, env=_environment())
            done = 0
            for result in _results(output):
                done += 1
                yield WarplogError(result["error"]) if "error" in result else result["rows"]
        if done < len(chunk):
            tail = " ".join(ended.output_tail.split())[-200:]
            yield WarplogError(f"{chunk[done]}: the reader failed ({explain_exit(ended)}) {tail}".rstrip())
        left = left[min(done + 1, len(chunk)) :]


def _results(output: Path) -> Iterator[dict[str, Any]]:
    """Yields the results of a reader process; a last line without line end, of an unfinished file, is skipped."""
    if output.is_file():
        with output.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.endswith("\n"))


def _environment() -> dict[str, str]:
    package = str(PACKAGE.parent)
    return {**os.environ, "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")}


def write(table: "pd.DataFrame", style: str, output: Path | None) -> None:
    """Writes the table as "csv", "json" or "parquet"; to standard output if `output` is None (not for parquet).

    The file is written atomically. A value that is missing or not finite is empty in CSV and null in JSON.

    Raises:
        WarplogError: if the file cannot be written.
    """
    if output is None:
        sys.stdout.write(_as_text(table, style).encode(errors="replace").decode())
        return
    if not output.parent.is_dir():
        raise WarplogError(f"{output}: cannot be written (its folder does not exist)")
    if style == "parquet":
        write_bytes(output, table.to_parquet(index=False))
    else:
        write_bytes(output, _as_text(table, style).encode(errors="replace"))


def _as_text(table: "pd.DataFrame", style: str) -> str:
    if style == "csv":
        finite = table.assign(value=table["value"].where(table["value"].abs() < math.inf))
        return finite.to_csv(index=False, lineterminator="\n")
    return "[\n" + ",\n".join(_json_lines(table)) + "\n]\n"


def _json_lines(table: "pd.DataFrame") -> Iterator[str]:
    """Yields each row as a JSON object on one line, because the output can have many rows."""
    for cells in table.itertuples(index=False, name=None):
        row = dict(zip(table.columns, cells, strict=True))
        row["value"] = row["value"] if math.isfinite(row["value"]) else None
        yield json.dumps(row, ensure_ascii=False, allow_nan=False)


def read_into(output: Path, files: list[Path]) -> None:
    """Reads the files and writes one JSON line per file, with its rows or its error, to `output`."""
    die_with_parent(signal.SIGKILL)
    with output.open("w", encoding="utf-8") as lines:
        for file in files:
            try:
                result: dict[str, object] = {"rows": list(read_any(file))}
            except WarplogError as error:
                result = {"error": str(error)}
            lines.write(json.dumps(result) + "\n")
            lines.flush()


if __name__ == "__main__":
    read_into(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
