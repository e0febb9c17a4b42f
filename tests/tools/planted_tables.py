"""Cuts the tables of a campaign to what the model of mechanisms reads of the planted pairs, as data for a test.

    python tests/tools/planted_tables.py results/tables tests/data/mechanisms/h200

The campaign has the family `causes`, with its traced accesses, and those that measure ceilings. Accesses of the same
kernels and grids do not depend on the GPU: those in the data of the H100 were traced on the H200.
"""

import sys
from pathlib import Path

from warplog.analysis.mechanisms.work import COUNTERS
from warplog.tables.files import NEEDED, as_parquet, read_table

FAMILY = "causes"
_KEY = ("family", "variant", "case")
COLUMNS = {
    "accesses": (*_KEY, "launch", "space", "kind", "status", "requests", "source_sha256"),
    "ceilings": (*_KEY, "ceiling", "value", "value_low", "value_high", "word", "campaign"),
    "floors": (*_KEY, "regime", "processes", "floor", "deviation", "freedom", "groups"),
    "gpus": ("gpu", "gpu_name", "sms", "dram_gbytes_per_s_peak"),
    "instructions": (
        *(*_KEY, "kernel", "launch", "loop", "iterates", "iterations", "place", "offset", "text", "executed"),
        *("file", "line", "samples"),
    ),
    "measurements": (*_KEY, "status", "median_us", "sm_mhz"),
    "metrics": (*_KEY, "kernel", "launch", "metric", "value", "status", "tool"),
    "traced_kernels": (*_KEY, "launch", "kernel", "same_address"),
    "variants": ("family", "variant", "parent", "source_sha256", "campaign"),
}


def main(tables: Path, folder: Path) -> None:
    """Writes the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, columns in COLUMNS.items():
        table = read_table(tables, name)
        if name == "metrics":
            table = table[table["metric"].isin(COUNTERS) | table["metric"].str.startswith("sass_")]
        if name not in ("ceilings", "gpus"):
            table = table[table["family"] == FAMILY]
        # What it does not read, but a table must have, is left empty.
        kept = table[list(columns)].reindex(columns=list(dict.fromkeys((*columns, *NEEDED.get(name, ())))))
        (folder / f"{name}.parquet").write_bytes(as_parquet(kept))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
