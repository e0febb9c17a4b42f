"""Stage tables: tidy tables as Parquet and CSV, with documented columns."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog.errors import WarplogError
from warplog.records import write_bytes, write_text
from warplog.table_column import Column
from warplog.table_columns import TABLES, TUNE
from warplog.table_judged import CLAIMS, ORACLE
from warplog.table_rows import Row

if TYPE_CHECKING:
    import pandas as pd


def write_tables(rows: Mapping[str, list[Row]], folder: Path) -> None:
    """Writes <table>.parquet, <table>.csv and columns.csv; the same rows give the same bytes.

    Raises:
        WarplogError: a row has a column that is not documented, or the disk is full.
    """
    for name, columns in TABLES.items():
        write_table(rows[name], columns, folder / name)
    lines = [("table", "column", "type", "unit", "meaning")]
    described = {**TABLES, "claims": CLAIMS, "tune": TUNE, "oracle": ORACLE}
    lines += [
        (t, c, d.kind, d.unit, d.meaning) for t, columns in described.items() for c, d in columns.items()
    ]
    import pandas as pd

    write_text(folder / "columns.csv", pd.DataFrame(lines[1:], columns=list(lines[0])).to_csv(index=False))


def write_table(rows: list[Row], columns: Mapping[str, Column], path: Path) -> None:
    """Writes <path>.parquet and <path>.csv with exactly the documented columns.

    Raises:
        WarplogError: a row has a column that is not documented, or the disk is full.
    """
    table = as_frame(rows, columns, path.name)
    write_text(path.with_name(f"{path.name}.csv"), table.to_csv(index=False))
    write_bytes(path.with_name(f"{path.name}.parquet"), table.to_parquet(index=False))


def as_frame(rows: list[Row], columns: Mapping[str, Column], name: str) -> "pd.DataFrame":
    """A frame with exactly the documented columns and types; what a row lacks is "" or NA.

    Raises:
        WarplogError: a row has a column that is not documented.
    """
    import pandas as pd

    unknown = {key for row in rows for key in row} - set(columns)
    if unknown:
        raise WarplogError(f"table {name}: column {min(unknown)!r} has no entry in table_columns.py")
    frame = pd.DataFrame(rows, columns=list(columns))
    types: Mapping[str, Any] = {"str": "str", "int": "Int64", "float": "float64", "bool": "bool"}
    for column, description in columns.items():
        if description.kind == "str":
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "")
        frame[column] = frame[column].astype(types[description.kind])
    return frame
