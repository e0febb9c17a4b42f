"""`warplog extract`: reads any report of a profiler or compiler, identified by its content, into rows of metrics."""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import json

from warplog.core.errors import WarplogError
from warplog.core.files import read_bytes, temporary_folder
from warplog.core.paths import PACKAGE
from warplog.core.process import die_with_parent, explain_exit, run
from warplog.metrics import Evaluated, evaluate_any
from warplog.parsers import inputs, ptxas, sass
from warplog.parsers.inputs import Input, valid_unicode
from warplog.parsers.ncu import blocks, pages, printed
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.ncu.printed import PrintedLaunch
from warplog.parsers.ncu.report import NcuLaunch
from warplog.parsers.nsys import report as nsys_rep
from warplog.parsers.nsys import rows as nsys_rows
from warplog.parsers.nsys import sqlite, stats, tables
from warplog.parsers.rows import COLUMNS, Row, capability_of, row

if TYPE_CHECKING:
    import pandas as pd

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
    """Returns the rows of a report, one per kernel and metric; `source` is the path as given, `-` for standard input.

    Supported are ncu reports and pages that ncu prints (raw, details or summary page as CSV, details or summary page
    as text), nsys reports (if nsys is installed), their SQLite exports and the output of `nsys stats` (CSV or text),
    logs of `nvcc -Xptxas -v`, and SASS dumps; all of them also compressed with zstd, as a .ncu-repz is.

    Raises:
        WarplogError: if the file is missing, damaged, truncated, or none of these; the message is one line with
            the file and the remedy.
    """
    with inputs.opened(str(path)) as opened:
        return _read(opened)


def _read(opened: Input) -> list[Row]:
    path, start = opened.path, _start(opened.path)
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
    source = valid_unicode(opened.name)
    return [each._replace(source=source) for each in rows]


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
    report = ncu_rep.read(path, only=printed.KNOWN)
    for launch in report.launches:
        values = evaluate_any(launch.counters, launch.compute_capability)
        yield from _counted(launch, launch.compute_capability, launch.index, report.tool_version, values)


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
    cc = ".".join(map(str, capability or ()))
    for value in values:
        yield Row("", "ncu", version, launch.gpu_name, cc, launch.kernel, number, *value)


def _nsys(path: Path) -> Iterator[Row]:
    return nsys_rows.of_report(sqlite.read(path, needs_kernels=False))


def _text(path: Path) -> Iterator[Row]:
    raw = inputs.decoded(read_bytes(path, _MOST_TEXT_BYTES, "split it; is it a report at all?"))
    if "\0" in raw:
        raise WarplogError(f"{path}: is damaged: it contains zero bytes; print it again")
    text = re.sub("\r\n?", "\n", raw.replace("\ufeff", ""))  # joined files have several byte order marks
    if text.count("\n") > _MOST_LINES:
        raise WarplogError(f"{path}: over {_MOST_LINES} lines of text; split it; is it a report at all?")
    try:
        if pages.is_page(text):
            yield from _printed(pages.parse(text))
        elif stats.is_stats(text):
            yield from stats.rows(text)
        else:
            yield from _compiled(text)
    except WarplogError as error:
        raise WarplogError(f"{path}: {error}") from None


def _compiled(text: str) -> Iterator[Row]:
    if "ptxas info" in text:
        ptxas.check_whole(text)
        for number, kernel in enumerate(ptxas.parse(text)):
            for metric in _PTXAS_FACTS:
                value = getattr(kernel, metric)
                yield row("ptxas", kernel.kernel, number, metric, value, cc=capability_of(kernel.arch))
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
                yield row("cuobjdump", mangled, number, metric, count, cc=capability_of(arch))


# NVIDIA's reader starts with 120 MB of memory and does not free 4 to 13 MB per report of 1 MB.
FILES_A_PROCESS = 10
_PROCESS_S = 600.0
Result = list[Row] | WarplogError


def read_all(
    files: Sequence[Path],
    on_error: Callable[[WarplogError], None],
    wanted: Callable[[Row], bool] = lambda _: True,
) -> "pd.DataFrame":
    """Returns the `wanted` rows of all files, in the given order, with COLUMNS.

    A file that cannot be read contributes no rows, and its error is passed to `on_error`.
    """
    import pandas as pd

    columns: dict[str, list[str | float | None]] = {name: [] for name in COLUMNS}
    for result in _here(files) if len(files) <= FILES_A_PROCESS else _apart(files):
        if isinstance(result, WarplogError):
            on_error(result)
            continue
        for each in filter(wanted, result):
            for column, cell in zip(columns.values(), each, strict=True):  # names repeat: each is stored once
                column.append(sys.intern(cell) if isinstance(cell, str) else cell)
    return pd.DataFrame(columns).astype({"value": "float64"})


def _here(files: Sequence[Path]) -> Iterator[Result]:
    for file in files:
        try:
            yield read_any(file)
        except WarplogError as error:
            yield error


def _apart(files: Sequence[Path]) -> Iterator[Result]:
    """Reads the files in several processes, so that memory stays bounded and a crash costs only one file.

    Pipes are read in this process, because they belong to it.
    """
    left = list(files)
    while left:
        chunk = list(takewhile(lambda file: not inputs.is_pipe(str(file)), left[:FILES_A_PROCESS]))
        if not chunk:
            yield from _here(left[:1])
            left = left[1:]
            continue
        with temporary_folder() as folder:
            output = folder / "rows.jsonl"
            command = [sys.executable, "-m", "warplog.parsers.reports", str(output), *map(str, chunk)]
            ended = run(command, timeout_s=_PROCESS_S, env=_environment())
            done = 0
            for result in _results(output):
                done += 1
                yield WarplogError(result) if isinstance(result, str) else result
        if done < len(chunk):
            tail = " ".join(ended.output_tail.split())[-200:]
            yield WarplogError(f"{chunk[done]}: the reader failed ({explain_exit(ended)}) {tail}".rstrip())
        left = left[min(done + 1, len(chunk)) :]


def _results(output: Path) -> Iterator[list[Row] | str]:
    """Yields the results of a reader process; a last line without line end, of an unfinished file, is skipped."""
    if output.is_file():
        with output.open("rb") as lines:
            yield from (json.decode(line, type=list[Row] | str) for line in lines if line.endswith(b"\n"))


def _environment() -> dict[str, str]:
    package = str(PACKAGE.parent)
    return {**os.environ, "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")}


def read_into(output: Path, files: list[Path]) -> None:
    """Reads the files and writes one JSON line per file, with its rows or the text of its error, to `output`."""
    die_with_parent(signal.SIGKILL)
    with output.open("wb", buffering=0) as lines:
        for result in _here(files):
            error = valid_unicode(str(result)) if isinstance(result, WarplogError) else None
            lines.write(json.encode(result if error is None else error) + b"\n")


if __name__ == "__main__":
    read_into(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
