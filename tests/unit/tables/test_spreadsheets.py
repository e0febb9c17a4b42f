"""Tables on disk: CSV holds nothing that a spreadsheet executes, Parquet the text itself, and both read the same."""

import csv
import io
import json
import math
from pathlib import Path

import pandas as pd
import pytest

from made_up_tables import MadeUpTables
from warplog.core.columns import CLAIMS, ORIGIN
from warplog.core.errors import WarplogError
from warplog.parsers import output
from warplog.tables.files import read_table, write_table, write_tables

FORMULA = "=cmd|' /C calc'!A0"
HIDDEN = "fast\u202ewols\x1b[2J"
EXECUTED = ("=", "+", "-", "@", "\t", "\r", "\n")


def harmless(path: Path) -> list[list[str]]:
    """Reads a CSV file as a spreadsheet does; no cell is executed, none hides a character."""
    text = path.read_bytes().decode()
    assert "\u202e" not in text
    assert "\x1b" not in text
    cells = list(csv.reader(io.StringIO(text)))
    executed = [cell for row in cells for cell in row if cell.startswith(EXECUTED)]
    assert all(math.isfinite(float(number)) for number in executed)
    return cells


def test_variants_and_measurements_are_harmless_as_csv_and_the_same_as_parquet(tmp_path):
    made = MadeUpTables()
    made.variant("sgemm", "naive", 0, 1, "64", idea=FORMULA, credit="@SUM(1)", parent="-x")
    made.measured("sgemm", "naive", "64", 64, 1.5, 10.0, 20.0, reason=HIDDEN, status="wrong")
    write_tables(made.rows, tmp_path)
    for name in ("variants", "measurements", "columns"):
        harmless(tmp_path / f"{name}.csv")
    plain = pd.read_parquet(tmp_path / "variants.parquet").iloc[0]
    assert (plain["idea"], plain["credit"], plain["parent"]) == (FORMULA, "@SUM(1)", "-x")
    whole = {name: read_table(tmp_path, name) for name in ("variants", "measurements")}
    for name, table in whole.items():
        (tmp_path / f"{name}.parquet").unlink()
        again = read_table(tmp_path, name)
        for column in ("idea", "parent", "credit", "reason", "status"):
            if column in table:
                assert list(again[column].fillna("")) == list(table[column]), (name, column)


def test_claims_are_harmless(tmp_path):
    row = dict.fromkeys([*CLAIMS, *ORIGIN], "")
    row |= {"id": "C1", "claim": FORMULA, "published": "+1 % (H100)", "condition": "== 0", "measured": 1.0}
    write_table([{k: row[k] for k in CLAIMS}], CLAIMS, tmp_path / "claims")
    cells = harmless(tmp_path / "claims.csv")
    assert f"'{FORMULA}" in cells[1]
    assert pd.read_parquet(tmp_path / "claims.parquet").iloc[0]["condition"] == "== 0"


@pytest.mark.parametrize("style", ["csv", "json"])
def test_extracted_tables_are_harmless_as_csv_and_plain_as_json(tmp_path, style):
    table = pd.DataFrame({"source": ["a.csv"], "kernel": [FORMULA], "value": [-1.5]})
    output.write(table, style, tmp_path / f"out.{style}")
    if style == "csv":
        assert harmless(tmp_path / "out.csv")[1] == ["a.csv", f"'{FORMULA}", "-1.5"]
    else:
        assert json.loads((tmp_path / "out.json").read_text())[0]["kernel"] == FORMULA


def test_a_changed_page_of_a_table_is_refused_and_a_table_without_checksums_is_read(tmp_path):
    made = MadeUpTables()
    made.variant("sgemm", "naive", 0, 1, "64")
    made.measured("sgemm", "naive", "64", 64, 1.5, 10.0, 20.0)
    write_tables(made.rows, tmp_path)
    path = tmp_path / "measurements.parquet"
    data, table = path.read_bytes(), read_table(tmp_path, "measurements")
    path.write_bytes(data.replace(b"naive", b"n4ive", 1))
    with pytest.raises(WarplogError, match=r"measurements\.parquet: not a readable table \(.*CRC"):
        read_table(tmp_path, "measurements")
    table.to_parquet(path, index=False)  # as earlier versions wrote it
    pd.testing.assert_frame_equal(read_table(tmp_path, "measurements"), table)
