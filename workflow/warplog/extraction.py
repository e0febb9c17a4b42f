"""Reports of NVIDIA's profilers, from any source, as one plain table."""

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog import report_reader
from warplog.errors import WarplogError

if TYPE_CHECKING:
    import pandas as pd

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

    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            rows += report_reader.read_any(file)
        except WarplogError as error:
            told(error)
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"value": "float64"})


def write(table: "pd.DataFrame", style: str, output: Path | None) -> None:
    """Writes the table as "csv", "json" or "parquet"; `output` None is standard output, not for parquet.

    A file is complete or not there. A value that is missing or not finite is empty in CSV and null in JSON.

    Raises:
        WarplogError: the file cannot be written.
    """
    if output is None:
        sys.stdout.write(_text(table, style).encode(errors="replace").decode())
        return
    try:
        handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.")
    except OSError as error:
        raise WarplogError(f"{output}: cannot be written ({error.strerror})") from None
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            if style == "parquet":
                table.to_parquet(file, index=False)
            else:
                file.write(_text(table, style).encode(errors="replace"))
        part.chmod(0o644)
        part.replace(output)
    except OSError as error:
        raise WarplogError(f"{output}: cannot be written ({error.strerror or error})") from None
    finally:
        part.unlink(missing_ok=True)


def _text(table: "pd.DataFrame", style: str) -> str:
    if style == "csv":
        finite = table.assign(value=table["value"].where(table["value"].abs() < math.inf))
        return finite.to_csv(index=False, lineterminator="\n")
    rows = table.to_dict("records")
    for row in rows:
        row["value"] = row["value"] if math.isfinite(row["value"]) else None
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
