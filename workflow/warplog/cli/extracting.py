"""The command `warplog extract`: its options, and the choice of files and rows."""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.errors import WarplogError

if TYPE_CHECKING:
    import pandas as pd

    from warplog.parsers.rows import Row

FORMATS = ("csv", "json", "parquet")
_ABOUT = """\
Reads reports, whether made by warplog or not: Nsight Compute's .ncu-rep, CSV (raw, details and --print-summary pages)
and text output, Nsight Systems' SQLite exports, .nsys-rep (requires nsys) and `nsys stats` output (kernel and memory
summaries, cuda_gpu_trace), logs of `nvcc -Xptxas -v`, and SASS dumps of cuobjdump. Text may be UTF-8 or UTF-16, and
each file may be compressed with zstd, as .ncu-repz is.
Writes one row per metric and kernel launch, with the columns
source, tool, tool_version, gpu, cc, kernel, launch, metric, value, unit, status, reason.
`source` is the path as given. If a report lacks a metric, its value is empty and `reason` states why. A row of a trace
stands for all launches of a kernel on one GPU; copies and memsets are rows, too. Requires neither a GPU nor ncu.

Exit status 1: a file could not be read (the others are still written), or there is nothing to write; OUT is then left
as it is. An existing OUT is replaced only if it is empty or an earlier output of this command.
"""
_EXAMPLES = """\
examples:
  warplog extract run.ncu-rep --summary             one line per launch: what bounds it, stall, limiter, conflicts
  warplog extract run.ncu-rep --kernel 'gemm|gemv' --metric duration_us --metric dram_bytes
  warplog extract run.ncu-rep --ok-only -o run.csv  only the metrics that the report has
  ncu --csv --page raw ./app | warplog extract -    a page from a pipe
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command to the parser of `warplog`."""
    extract = commands.add_parser(
        "extract",
        help="turn profiler reports into a table",
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    extract.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a report in one of these formats; - is standard input",
    )
    extract.add_argument("--format", choices=FORMATS, help="default: the extension of OUT, else csv")
    extract.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write to OUT instead of standard output"
    )
    extract.add_argument(
        "--summary",
        action="store_true",
        help="one row per launch: duration, bound, dominant stall, occupancy and its limiter, bank conflicts",
    )
    extract.add_argument(
        "--kernel", type=_pattern, metavar="REGEX", help="only kernels in whose name REGEX is found"
    )
    extract.add_argument(
        "--metric",
        action="append",
        default=[],
        metavar="NAME",
        help="only this metric, such as duration_us (repeatable)",
    )
    extract.add_argument("--ok-only", action="store_true", help="leave out metrics without a value")
    extract.set_defaults(command="extract", parser=extract)


def guarded(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments of `extract` with `./` before existing files whose names start with a dash."""
    options = list(arguments)
    end = options.index("--") if "--" in options else len(options)
    for place in range(1, end):
        name = options[place]
        if name.startswith("-") and name not in {"-", "-o"} and Path(name).is_file():
            options[place] = f"./{name}"
    return options


def run(options: argparse.Namespace, note: Callable[[str], None]) -> int:
    """Reads the files, writes the table and returns the exit status; `note` prints a line to standard error.

    Raises:
        WarplogError: a metric is unknown, OUT must not be replaced, or no row is left to write.
    """
    suffix = options.output.suffix.lstrip(".").lower() if options.output else ""
    style = options.format or (suffix if suffix in FORMATS else "csv")
    if style == "parquet" and options.output is None:
        options.parser.error("parquet requires an output file: -o OUT")
    if options.summary and (options.metric or options.ok_only):
        options.parser.error("--summary shows the same columns of every launch; omit --metric and --ok-only")
    from warplog.parsers import output, reports

    _check_metrics(options.metric)
    output.check(options.output, options.files)
    failures: list[WarplogError] = []

    def on_error(error: WarplogError) -> None:
        failures.append(error)
        note(f"error: {error}")

    table = reports.read_all(_once(options.files, note), on_error, _filter(options))
    if table.empty:
        if not failures:
            raise WarplogError("no row matches --kernel, --metric and --ok-only; nothing was written")
        return 1
    if options.summary:
        table = _summary(table, exact=options.output is not None or not options.terminal)
    output.write(table, style, options.output)
    return 1 if failures else 0


def _summary(table: "pd.DataFrame", exact: bool) -> "pd.DataFrame":
    """Returns the summary of the launches; unless `exact`, with five digits of each number, for reading."""
    from warplog.worklog import launches

    rows = launches.summary(table)
    numbers = rows.select_dtypes("float64").map(lambda value: float(f"{value:.5g}"))
    return rows if exact else rows.assign(**numbers)


def _once(files: Sequence[Path], note: Callable[[str], None]) -> list[Path]:
    """Returns the files without those that are named a second time, even under another name."""
    seen: dict[str, Path] = {}
    for file in files:
        first = seen.setdefault("-" if str(file) == "-" else os.path.realpath(file), file)
        if first is not file:
            note(f"note: {file}: is the same file as {first}; it is read once")
    return list(seen.values())


def _filter(options: argparse.Namespace) -> "Callable[[Row], bool]":
    metrics, kernel = frozenset(options.metric), options.kernel

    def wanted(row: "Row") -> bool:
        return (
            (not metrics or row.metric in metrics)
            and (kernel is None or kernel.search(row.kernel) is not None)
            and not (options.ok_only and row.status != "ok")
        )

    return wanted


def _check_metrics(names: Sequence[str]) -> None:
    from warplog.core.schema import suggest
    from warplog.metrics import METRICS

    for name in names:
        if name not in METRICS and not name.startswith("sass_"):
            raise WarplogError(f"--metric {name}: no such metric; {suggest(name, METRICS)}")


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text}: not a regular expression ({error})") from None
