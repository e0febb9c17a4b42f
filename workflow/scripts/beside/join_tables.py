"""Writes the tables of all campaigns of the run as one, with the key `gpu`."""

from pathlib import Path

import pandas as pd

from warplog.core.csv_text import csv_of_table
from warplog.core.files import write_bytes, write_text
from warplog.plan.script import job
from warplog.tables.files import as_parquet, read_file


def main(tables: list[Path], folder: Path) -> None:
    for name in sorted({path.stem for path in tables}):
        whole = pd.concat([read_file(path) for path in tables if path.stem == name], ignore_index=True)
        write_bytes(folder / f"{name}.parquet", as_parquet(whole))
        write_text(folder / f"{name}.csv", csv_of_table(whole))


if "snakemake" in globals():
    with job(snakemake.log[0]):
        main([Path(path) for path in snakemake.input.tables], Path(snakemake.output[0]).parent)
