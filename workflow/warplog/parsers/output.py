"""Writes the table of `warplog extract`, without overwriting a report."""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.csv_text import csv_of_table
from warplog.core.errors import WarplogError
from warplog.core.files import write_bytes

if TYPE_CHECKING:
    import pandas as pd

# The starts of the tables that `write` writes: CSV, JSON (with rows and without), Parquet.
_OWN = (b"source,", b'[\n{"source"', b"[\n\n]", b"PAR1")


def check(output: Path | None, inputs: Sequence[Path]) -> None:
    """Checks that `output` is none of the inputs and, if it exists, empty or a table written earlier.

    The second matters for `-o *.ncu-rep`, where the shell makes the first report the output.

    Raises:
        WarplogError: if writing to `output` would replace an input or another file.
    """
    if output is None or not output.exists():
        return
    if any(path.exists() and path.samefile(output) for path in inputs):
        raise WarplogError(f"{output}: is both an input and the output; name another output")
    if not output.is_file():
        return
    with output.open("rb") as file:
        start = file.read(32)
    if start and not start.startswith(_OWN):
        raise WarplogError(
            f"{output}: exists and is not a table of warplog extract; name another output, or delete it"
        )


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
        write_bytes(output, table.to_parquet(index=False, write_page_checksum=True))
    else:
        write_bytes(output, _as_text(table, style).encode(errors="replace"))


def _as_text(table: "pd.DataFrame", style: str) -> str:
    if style == "csv":
        numbers = table.select_dtypes("float64")
        return csv_of_table(table.assign(**numbers.where(numbers.abs() < math.inf)))
    return "[\n" + ",\n".join(_json_lines(table)) + "\n]\n"


def _json_lines(table: "pd.DataFrame") -> Iterator[str]:
    """Yields each row as a JSON object on one line, because the output can have many rows."""
    texts: dict[str, str] = {}  # names, units and reasons repeat
    names = [json.dumps(name) for name in table.columns]
    for cells in table.itertuples(index=False, name=None):
        for cell in cells:
            if isinstance(cell, str) and cell not in texts:
                texts[cell] = json.dumps(cell)
        shown = (texts[cell] if isinstance(cell, str) else _number(cell) for cell in cells)
        yield "{" + ", ".join(f"{name}: {cell}" for name, cell in zip(names, shown, strict=True)) + "}"


def _number(cell: float) -> str:
    return repr(cell) if math.isfinite(cell) else "null"
