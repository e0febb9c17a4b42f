"""`snakemake oracle` runs only the kernels whose results are known; its exit status reports a wrong verdict."""

import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

import snakemake_runs
from warplog.core.columns import ORACLE
from warplog.judge import oracle
from warplog.tables import files


@pytest.mark.parametrize("config", [[], ["families=sgemm", "variants=naive", "cases=4096"]])
def test_it_runs_the_same_jobs_whatever_the_configuration_selects(project: Path, config: list[str]) -> None:
    settings = ["--config", "mode=live", "gpu=h200", "campaign=none-such", *config]
    options = ("-n", "--forceall", "--cores", "2", "--quiet", "host", "--nocolor")
    done = snakemake_runs.run(project, *options, "oracle", *settings, environment=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout + done.stderr
    found = Counter(re.findall(r"^(?:local)?rule (\w+):", text, re.MULTILINE))
    measured = {"check_family", "time_family", "profile_ncu", "profile_nsys", "extract_family"}
    assert {rule: found[rule] for rule in measured} == dict.fromkeys(measured, 2)
    assert found["build_variant"] == 2
    assert set(found) - measured == {
        "build_variant",
        "build_timer",
        "start_campaign",
        "judge_oracle",
        "oracle",
    }
    assert set(re.findall(r"family=(\w+)", text)) == {"oracle", "oracle_sm90"}


@pytest.mark.parametrize(("verdict", "status"), [("right", 0), ("not_measured", 0), ("wrong", 1)])
def test_the_exit_status_reports_a_wrong_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: str, status: int
) -> None:
    rows = [{"probe": "spin", "case": "spin_1ms", "verdict": verdict}]
    files.write_table(rows, ORACLE, tmp_path / "oracle")
    rows = oracle.read_verdicts(tmp_path)
    oracle.show_verdicts(rows, sys.stderr)
    assert oracle.exit_status(rows) == status
    assert f"1 {verdict.replace('_', ' ')}" in capsys.readouterr().err
