"""Tables as files: Parquet or CSV, bounded in size, with the columns that readers need."""

from pathlib import Path

import pandas as pd

from warplog.errors import WarplogError
from warplog.table_column import ORIGIN

_MOST_BYTES = 512 * 1024**2
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
    "claims": ["family", "id", "claim", "verdict", "measured", "unit", "condition", "reason"],
}


def read_table(folder: Path, name: str) -> pd.DataFrame:
    """One of the tables in NEEDED, from `folder`/<name>.parquet or else .csv.

    Whole numbers are float64 where one is missing, else int64.

    Raises:
        WarplogError: it is missing, larger than 512 MiB, not readable, or lacks a column.
    """
    parquet, csv = folder / f"{name}.parquet", folder / f"{name}.csv"
    path = parquet if parquet.is_file() else csv
    if not path.is_file():
        raise WarplogError(f"{parquet}: no such table; run `uv run snakemake tables`")
    if path.stat().st_size > _MOST_BYTES:
        raise WarplogError(f"{path}: {path.stat().st_size} bytes; a table may have {_MOST_BYTES} at most")
    try:
        table = pd.read_parquet(path) if path is parquet else _read_csv(path)
    except (ValueError, OSError) as error:
        why = str(error).splitlines()[0]
        raise WarplogError(
            f"{path}: not a readable table ({why}); delete it and run `uv run snakemake tables`"
        ) from error
    for column in table.select_dtypes("Int64"):
        table[column] = table[column].astype("float64" if table[column].isna().any() else "int64")
    missing = [column for column in NEEDED[name] if column not in table]
    if missing:
        why = f"lacks the column {missing[0]!r}"
        raise WarplogError(f"{path}: not a readable table ({why}); run `uv run snakemake tables`")
    return table


def _read_csv(path: Path) -> pd.DataFrame:
    """A CSV table: `case` and the other texts stay text ("" when empty), numbers are NaN when empty."""
    texts = ["family", "variant", "case", "kernel", "metric", "parent", "headline_case", "profile_cases"]
    texts += ["status", "reason", "name", "kind", "tool", "unit", "baseline", "source", *ORIGIN_COLUMNS]
    texts += ["id", "claim", "published", "verdict", "condition", "measure", "evidence"]
    table = pd.read_csv(path, dtype=dict.fromkeys(texts, str), keep_default_na=False, na_values=[""])
    for column in set(texts) & set(table.columns):
        table[column] = table[column].fillna("")
    return table
