"""The printed report of the oracle: summary, exit status, and the recorded verdicts on a machine without a GPU."""

import io
from pathlib import Path

import pandas as pd
import pytest

import made_up_records
from warplog.cli import main
from warplog.core.columns import ORACLE
from warplog.core.errors import WarplogError
from warplog.judge import oracle
from warplog.judge import oracle as oracle_report
from warplog.plan.evaluate import labels_of
from warplog.records.verification import manifest
from warplog.tables import files
from warplog.tables.verified_records import Source


def rows_of(*verdicts):
    where = {"gpu": "h200", "origin": "live", "campaign": "c"}
    columns = ("probe", "case", "quantity", "expected", "measured", "tolerance", "unit", "reason")
    return [{**dict.fromkeys(columns, f"x{i}"), "verdict": v, **where} for i, v in enumerate(verdicts)]


def test_summary_and_exit_status():
    rows = rows_of("wrong", "right", "not_measured", "right")
    out = io.StringIO()
    oracle_report.show_verdicts(rows, out)
    lines = out.getvalue().splitlines()
    assert lines[-1] == "oracle: 2 right, 1 wrong, 1 not measured (h200, live, campaign c)"
    assert "wrong" in lines[-2], "what is wrong stands where it is read"
    assert oracle_report.exit_status(rows) == 1
    assert oracle_report.exit_status(rows_of("right", "not_measured")) == 0
    assert oracle.counts([]) == {"right": 0, "wrong": 0, "not_measured": 0}


def test_an_oracle_that_measured_nothing_is_one_line():
    rows = [row | {"measured": "", "reason": "spin was not measured"} for row in rows_of("not_measured") * 2]
    out = io.StringIO()
    oracle_report.show_verdicts(rows, out)
    said = out.getvalue()
    assert said.startswith("oracle: 0 right, 0 wrong, 2 not measured (h200, live, campaign c): spin was not")
    assert "needs a GPU" in said
    assert said.count("\n") == 1


def test_doctor_without_a_gpu_shows_the_recorded_verdicts_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("warplog.machine.device.detect", lambda: None)
    (tmp_path / "Snakefile").touch()
    assert main.main(["doctor", "--oracle", str(tmp_path)]) == 1
    assert "no campaign in results/recorded holds the oracle" in capsys.readouterr().err
    folder = tmp_path / "results" / "recorded" / "h200" / "tables"
    folder.mkdir(parents=True)
    files.write_table(rows_of("right", "wrong"), ORACLE, folder / "oracle")
    assert main.main(["doctor", "--oracle", str(tmp_path)]) == 1
    assert "--write-manifest` writes one" in capsys.readouterr().err
    manifest.write(folder.parent, "made-up", "")
    assert main.main(["doctor", "--oracle", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "recorded in results/recorded/h200/tables" in said
    assert "1 right, 1 wrong" in said
    files.write_table(rows_of("right"), ORACLE, folder / "oracle")
    manifest.write(folder.parent, "made-up", "")
    assert main.main(["doctor", "--oracle", str(tmp_path)]) == 0


def test_the_table_is_read_as_it_was_written(tmp_path):
    rows = [
        row | {"deviation": 0.5, "gpu_name": "g", "variant": "v", "family": "f"} for row in rows_of("right")
    ]
    files.write_table(rows, ORACLE, tmp_path / "oracle")
    assert oracle_report.read_verdicts(tmp_path)[0]["verdict"] == "right"
    assert list(pd.read_parquet(tmp_path / "oracle.parquet")["deviation"]) == [0.5]
    (tmp_path / "oracle.csv").write_text("a,b\n1,2\n")
    with pytest.raises(WarplogError, match="has no column 'probe'"):
        oracle_report.read_verdicts(tmp_path)


def test_an_oracle_of_another_commit_does_not_pass_for_the_campaigns():
    source = Source(Path("results"), "live", made_up_records.campaign(commit="a" * 40))

    assert labels_of(source, {"a" * 40, ""})["campaign"] == "test"
    assert labels_of(source, {"b" * 40})["campaign"] == "commit bbbbbbb, not of the campaign"
