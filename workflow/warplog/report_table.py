"""`warplog extract`: reports of NVIDIA's profilers and compilers, from any source, as one plain table."""

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog import report_reader
from warplog.errors import WarplogError
from warplog.process import explain_exit, run
from warplog.records import write_bytes

if TYPE_CHECKING:
    import pandas as pd

# NVIDIA's reader starts with 120 MB and keeps 4 to 13 MB of every report of 1 MB.
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


def read_all(files: Sequence[Path], told: Callable[[WarplogError], None]) -> "pd.DataFrame":
    """The rows of all files, in the given order, with COLUMNS; a file that fails is told, and has none."""
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for found in _here(files) if len(files) <= FILES_A_PROCESS else _apart(files):
        if isinstance(found, WarplogError):
            told(found)
            continue
        for name, column in columns.items():  # names and reasons repeat: each is kept once
            column += (sys.intern(v) if isinstance(v := row[name], str) else v for row in found)
    return pd.DataFrame(columns).astype({"value": "float64"})


def _here(files: Sequence[Path]) -> Iterator[Found]:
    for file in files:
        try:
            yield list(report_reader.read_any(file))
        except WarplogError as error:
            yield error


def _apart(files: Sequence[Path]) -> Iterator[Found]:
    """Many files in processes of some each, so that memory stays bounded and a crash costs one file."""
    left = list(files)
    while left:
        chunk = left[:FILES_A_PROCESS]
        with tempfile.TemporaryDirectory(prefix="warplog-") as folder:
            output = Path(folder) / "rows.jsonl"
            command = [sys.executable, "-m", "warplog.report_worker", str(output), *map(str, chunk)]
            ended = run(command, timeout_s=_PROCESS_S, env=_environment())
            done = 0
            for told in _told(output):
                done += 1
                yield WarplogError(told["error"]) if "error" in told else told["rows"]
        if done < len(chunk):
            words = " ".join(ended.output_tail.split())[-200:]
            yield WarplogError(f"{chunk[done]}: the reader failed ({explain_exit(ended)}) {words}".rstrip())
        left = left[min(done + 1, len(chunk)) :]


def _told(output: Path) -> Iterator[dict[str, Any]]:
    """What the process wrote; a last line without an end is of a file that it did not finish."""
    if output.is_file():
        with output.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.endswith("\n"))


def _environment() -> dict[str, str]:
    package = str(Path(__file__).parents[1])
    return {**os.environ, "PYTHONPATH": f"{package}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")}


def write(table: "pd.DataFrame", style: str, output: Path | None) -> None:
    """Writes the table as "csv", "json" or "parquet"; `output` None is standard output, not for parquet.

    A file is complete or not there. A value that is missing or not finite is empty in CSV and null in JSON.

    Raises:
        WarplogError: the file cannot be written.
    """
    if output is None:
        sys.stdout.write(_text(table, style).encode(errors="replace").decode())
        return
    if not output.parent.is_dir():
        raise WarplogError(f"{output}: cannot be written (there is no such folder)")
    if style == "parquet":
        write_bytes(output, table.to_parquet(index=False))
    else:
        write_bytes(output, _text(table, style).encode(errors="replace"))


def _text(table: "pd.DataFrame", style: str) -> str:
    if style == "csv":
        finite = table.assign(value=table["value"].where(table["value"].abs() < math.inf))
        return finite.to_csv(index=False, lineterminator="\n")
    return "[\n" + ",\n".join(_json_lines(table)) + "\n]\n"


def _json_lines(table: "pd.DataFrame") -> Iterator[str]:
    """Each row as an object on a line of its own: the rows of a hundred reports are many."""
    for cells in table.itertuples(index=False, name=None):
        row = dict(zip(table.columns, cells, strict=True))
        row["value"] = row["value"] if math.isfinite(row["value"]) else None
        yield json.dumps(row, ensure_ascii=False, allow_nan=False)
