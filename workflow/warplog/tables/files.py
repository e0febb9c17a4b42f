"""Writes and reads tables as Parquet and CSV files with documented columns."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from pyarrow import ArrowException
from pyarrow.parquet import read_metadata

from warplog.core import paths
from warplog.core.columns import (
    ACCESS_LANES,
    ACCESS_OWNERS,
    ACCESS_TILES,
    ACCESSES,
    CLAIMS,
    FLOORS,
    ORACLE,
    ORIGIN,
    PARQUET_ONLY,
    TABLES,
    TRACED_KERNELS,
    TUNE,
    Cell,
    Column,
    Row,
)
from warplog.core.csv_text import csv_of_table, restored
from warplog.core.errors import WarplogError
from warplog.core.files import write_bytes, write_text
from warplog.core.text import one_line
from warplog.records.verification import manifest
from warplog.tables import conclusions

_check_once = cache(manifest.check)  # a recorded campaign, when the first of its tables is read

# Pages and figures read text cell by cell, for which Python's strings take a fraction of the time of Arrow's.
pd.set_option("mode.string_storage", "python")


def write_tables(rows: Mapping[str, Sequence[Row]], folder: Path) -> None:
    """Writes every table as Parquet, and as CSV unless it is in PARQUET_ONLY, and columns.csv.

    The same rows give the same bytes.

    Raises:
        WarplogError: if a row has an undocumented column, or a file cannot be written.
    """
    for name, described in TABLES.items():
        write = write_parquet if name in PARQUET_ONLY else write_table
        write(rows[name], described, folder / name)
    write_text(folder / "columns.csv", columns())


def columns() -> str:
    """Returns the columns of all tables as CSV: type, unit and meaning."""
    lines = [("table", "column", "type", "unit", "meaning")]
    described = {
        **TABLES,
        "claims": CLAIMS,
        "floors": FLOORS,
        "tune": TUNE,
        "oracle": ORACLE,
        "accesses": ACCESSES,
        "traced_kernels": TRACED_KERNELS,
        "access_lanes": ACCESS_LANES,
        "access_owners": ACCESS_OWNERS,
        "access_tiles": ACCESS_TILES,
        **{kind.TABLE: conclusions.columns(kind) for kind in conclusions.TABLES},
    }
    lines += [
        (t, c, d.kind, d.unit, d.meaning) for t, columns in described.items() for c, d in columns.items()
    ]
    return csv_of_table(pd.DataFrame(lines[1:], columns=list(lines[0])))


def write_table(rows: Sequence[Row], columns: Mapping[str, Column], path: Path) -> None:
    """Writes <path>.parquet and <path>.csv with exactly the documented columns.

    Raises:
        WarplogError: if a row has an undocumented column, or a file cannot be written.
    """
    table = as_frame(rows, columns, path.name)
    write_text(path.with_name(f"{path.name}.csv"), csv_of_table(table))
    write_bytes(path.with_name(f"{path.name}.parquet"), as_parquet(table))


def write_parquet(rows: Sequence[Row], columns: Mapping[str, Column], path: Path) -> None:
    """Writes <path>.parquet with exactly the documented columns.

    Raises:
        WarplogError: if a row has an undocumented column, or the file cannot be written.
    """
    write_bytes(path.with_name(f"{path.name}.parquet"), as_parquet(as_frame(rows, columns, path.name)))


def as_parquet(table: pd.DataFrame) -> bytes:
    """Returns a table as Parquet, with a checksum of each page."""
    return table.to_parquet(index=False, write_page_checksum=True, compression="zstd")


def as_rows(table: pd.DataFrame) -> list[dict[str, Cell]]:
    """Returns the rows of a table by column name, with Python's numbers."""
    names = [str(name) for name in table]
    columns = [table[name].tolist() for name in table]  # half the time of DataFrame.to_dict
    rows = zip(*columns, strict=True) if columns else iter([()] * len(table))
    return [dict(zip(names, row, strict=True)) for row in rows]


def as_frame(rows: Sequence[Row], columns: Mapping[str, Column], name: str) -> pd.DataFrame:
    """Returns a data frame with exactly the documented columns and types; missing values are "" or NA.

    Raises:
        WarplogError: if a row has an undocumented column, or a value is not of its column's type.
    """
    unknown = {key for row in rows for key in row} - set(columns)
    if unknown:
        raise WarplogError(f"table {name}: column {min(unknown)!r} has no entry in core/columns.py")
    types: Mapping[str, Any] = {"str": "str", "int": "Int64", "float": "float64", "bool": "bool"}
    typed = {}
    for column, description in columns.items():
        values: list[Any] = [row.get(column, math.nan) for row in rows]
        if description.kind == "str":
            values = [
                "" if v is None or v is pd.NA or v != v else v for v in values
            ]  # NaN differs from itself
        try:
            typed[column] = pd.array(values, dtype=types[description.kind])
        except (TypeError, ValueError, OverflowError) as error:
            raise WarplogError(f"table {name}: {column}: {one_line(str(error))}") from None
    return pd.DataFrame(typed, copy=False)


_MOST_BYTES = 512 * 1024**2
_MOST_VALUES = 100_000_000
_MOST_REASON = 300  # characters
ORIGIN_COLUMNS = list(ORIGIN)
NEEDED = {
    "measurements": ["family", "variant", "case", "size", "status", "reason", "median_us", *ORIGIN_COLUMNS],
    "metrics": ["family", "variant", "case", "kernel", "launch", "metric", "value", "status", "tool"],
    "timeline": ["family", "variant", "case", "name", "kind", "stream", "start_us", "duration_us"],
    "variants": [
        "family",
        "variant",
        "order",
        "parent",
        "is_baseline",
        "headline_case",
        "profile_cases",
        *ORIGIN_COLUMNS,
    ],
    "gpus": ["gpu", "fp32_tflops_peak", "dram_gbytes_per_s_peak", "source"],
    "power_trace": ["family", "variant", "case", "time_s", "sm_mhz", "power_w", "gflops"],
    "lines": ["family", "variant", "case", "kernel", "file", "line", "text", "stall"],
    "instructions": [
        *("family", "variant", "case", "kernel", "loop", "iterates", "iterations", "place", "text"),
        *("executed", "samples", "sample_share", "stall", "stall_samples", "file", "line"),
    ],
    "claims": ["family", "id", "claim", "verdict", "measured", "unit", "condition", "reason"],
    "launches": ["family", "variant", "case", "status", "reason", "sm_mhz", "overhead_pct", "noise_pct"],
    "tracks": ["family", "variant", "case", "slot", "warp", "role", "region", "start_us", "duration_us"],
    "access_lanes": [
        *(
            "family",
            "variant",
            "case",
            "launch",
            "offset",
            "opcode",
            "file",
            "line",
            "text",
            "space",
            "kind",
            "array",
        ),
        *("requests", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal", "ways"),
        *("block", "warp", "size_bytes", "lane", "address", *ORIGIN_COLUMNS),
    ],
    "access_owners": [
        *(
            "family",
            "variant",
            "case",
            "array",
            "block",
            "thread",
            "row",
            "column",
            "elements",
            *ORIGIN_COLUMNS,
        ),
    ],
    "access_tiles": [
        *("family", "variant", "case", "array", "rows", "columns", "block"),
        *("first_row", "end_row", "first_column", "end_column", *ORIGIN_COLUMNS),
    ],
    "floors": ["family", "variant", "case", "gpu", "regime", "deviation", "freedom", "groups"],
    "stages": ["family", "variant", "stage", "seconds"],
    "accesses": ["family", "variant", "case", "status", "reason", "source_sha256"],
    "traced_kernels": [
        *("family", "variant", "case", "launch", "kernel", "blocks", "traced_blocks", "untraced"),
        *("block_bytes", "wave_blocks", "wave_bytes", "wave_bytes_of_blocks", "source_sha256"),
    ],
    **{kind.TABLE: list(conclusions.columns(kind)) for kind in conclusions.TABLES},
}


def read_table(folder: Path, name: str) -> pd.DataFrame:
    """Reads a table from `folder`/<name>.parquet, or from .csv if that does not exist.

    Integer columns are float64 if they have missing values, otherwise int64.

    Raises:
        WarplogError: if the table is missing, larger than 512 MiB, not readable, or lacks a column, or if a file of the
            recorded campaign is not as its manifest says.
    """
    _check_once(folder.absolute().parent)
    parquet, csv = folder / f"{name}.parquet", folder / f"{name}.csv"
    path = parquet if parquet.is_file() else csv
    if not path.is_file():
        raise WarplogError(f"{parquet}: no such table; run `{paths.command('tables')}`")
    table = read_file(path)
    for column in table.select_dtypes("Int64"):
        table[column] = table[column].astype("float64" if table[column].isna().any() else "int64")
    missing = [column for column in NEEDED.get(name, ()) if column not in table]
    if missing:
        why = f"lacks the column {missing[0]!r}"
        raise WarplogError(f"{path}: not a readable table ({why}); run `{paths.command('tables')}`")
    return table


def read_file(path: Path) -> pd.DataFrame:
    """Returns the table in a Parquet or CSV file; the checksums of Parquet's pages, if it has any, are verified.

    Raises:
        WarplogError: if the file is larger than 512 MiB, has more than 100 million values, or is not readable.
    """
    if path.stat().st_size > _MOST_BYTES:
        raise WarplogError(f"{path}: {path.stat().st_size} bytes, over the limit of {_MOST_BYTES} for tables")
    try:
        return _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    except (ValueError, TypeError, LookupError, NotImplementedError, OSError, ArrowException) as error:
        why = one_line(str(error))[:_MOST_REASON]
        raise WarplogError(
            f"{path}: not a readable table ({why}); delete it and run `{paths.command('tables')}`"
        ) from error


def _read_parquet(path: Path) -> pd.DataFrame:
    """Reads a table; the names of its columns, which have no checksum, must be the same in all three places."""
    with path.open("rb") as file:
        about = read_metadata(file)
        if about.num_rows * about.num_columns > _MOST_VALUES:
            raise ValueError(f"more than {_MOST_VALUES} values")
        table = pd.read_parquet(file, page_checksum_verification=True)
    if noted := json.loads((about.metadata or {}).get(b"pandas", "{}")):
        names = [column["field_name"] for column in noted["columns"]]
        if names != about.schema.names or list(table) != [
            n for n in names if n not in noted["index_columns"]
        ]:
            raise ValueError("the names of its columns contradict each other")
    return table


def _read_csv(path: Path) -> pd.DataFrame:
    """Reads a CSV table with its original texts; empty cells are "" in text columns such as `case`, NaN in others."""
    texts = ["family", "variant", "case", "kernel", "metric", "parent", "headline_case", "profile_cases"]
    texts += ["status", "reason", "name", "kind", "tool", "unit", "baseline", "source", *ORIGIN_COLUMNS]
    texts += ["remarks", "own_limits", "agreement", "agreement_notes", "about", "cases"]
    texts += [
        "id",
        "claim",
        "published",
        "verdict",
        "condition",
        "measure",
        "evidence",
        "regime",
        "role",
        "region",
    ]
    table = pd.read_csv(path, dtype=dict.fromkeys(texts, str), keep_default_na=False, na_values=[""])
    table = restored(table)
    for column in set(texts) & set(table.columns):
        table[column] = table[column].fillna("")
    return table
