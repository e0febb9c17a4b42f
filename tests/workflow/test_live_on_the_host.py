"""The complete live workflow with its real scripts and workers, on a machine whose CPU stands in for the GPU."""

import os
import subprocess
from pathlib import Path

import pandas as pd
import pytest

import snakemake_runs
from copied_project import copy_project
from host_family import DRIVER, REFERENCE, YAML
from warplog.core.records import FamilyRecord

PROJECT = Path(__file__).parents[2]
CONFIG = (
    *("kernel_folders=[host]", "families=scale", "campaign=host"),
    'profile={"ncu": false, "nsys": false}',
    'sanitize={"tools": ["racecheck"]}',
    'time={"processes": 2, "most_processes": 1, "max_samples": 10, "max_seconds": 0.2, "hot_seconds": 0.001}',
)
BODY = 'FILE* f = fopen("{log}", "a"); fputs("{name}\\n", f); fclose(f); {work}'
RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
PYTHON = """
def launch(arrays, scalars, stream):
    with open("{log}", "a") as file:
        file.write("module\\n")
    arrays["y"][:] = arrays["x"] * scalars["factor"]
"""
VARIANTS = {"right": RIGHT, "slow": RIGHT * 3, "bad": RIGHT + "a->y[0] += 1;", "deadly": "abort();"}


def snakemake(place: Path, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "MLFLOW_TRACKING_URI"}
    environment["PYTHONPATH"] = f"{place / 'workflow'}:{place / 'site'}:{PROJECT / 'tests' / 'support'}"
    environment["PATH"] = f"{place / 'site'}:{environment['PATH']}"
    environment["LD_LIBRARY_PATH"] = str(place / "site")
    options = ("--cores", "2", "--nocolor")
    done = snakemake_runs.run(place, *options, *arguments, "--config", *CONFIG, environment=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
    return done.stdout + done.stderr


SANITIZER = """#!/bin/sh
[ "$1" = --version ] && { echo "Version 2025.3.1"; exit; }
while [ "${1#--}" != "$1" ]; do shift 2; done
echo "========= COMPUTE-SANITIZER"
"$@"; status=$?
echo "========= ERROR SUMMARY: 0 errors"
exit $status
"""


def write(place: Path, name: str, work: str) -> None:
    text = BODY.format(log=place / "launched", name=name, work=work)
    (place / "host" / "scale" / f"{name}.cu").write_text(text)


def launched(place: Path) -> set[str]:
    """Returns the variants that were launched since the last call."""
    log = place / "launched"
    names = set(log.read_text().split()) if log.is_file() else set()
    log.unlink(missing_ok=True)
    return names


def measured(place: Path) -> pd.DataFrame:
    return pd.read_parquet(place / "results" / "tables" / "measurements.parquet")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a project with one family of C functions, after a run of the main command."""
    place = tmp_path_factory.mktemp("host")
    copy_project(place, families=())
    (place / "site").mkdir()
    pretended = (PROJECT / "tests" / "workflow" / "pretended_gpu.py").read_text()
    (place / "site" / "sitecustomize.py").write_text(f"{pretended}os.umask(0o077)\n")
    family = place / "host" / "scale"
    family.mkdir(parents=True)
    entries = "".join(f"  - {{name: {name}, parent: right, idea: an idea}}\n" for name in list(VARIANTS)[1:])
    entries += "  - {name: module, language: cupy, parent: right, idea: in Python}\n"
    (family / "family.yaml").write_text(YAML.rstrip() + "\n" + entries)
    (family / "module.py").write_text(PYTHON.format(log=place / "launched"))
    (family / "module.py").chmod(0o600)
    (family / "reference.py").write_text(REFERENCE)
    for name, work in VARIANTS.items():
        write(place, name, work)
        (family / f"{name}.cu").chmod(0o600)  # as whoever has this umask has it; MLflow copies permissions
    (place / "output").write_text(snakemake(place))
    return place


def test_correct_kernels_have_times_and_others_a_status(place: Path) -> None:
    table = measured(place).set_index(["variant", "case"])
    assert set(table["origin"]) == {"live"}
    for name, status in (
        ("right", "ok"),
        ("slow", "ok"),
        ("bad", "wrong"),
        ("deadly", "crashed"),
        ("module", "ok"),
    ):
        assert set(table.loc[name, "status"]) == {status}, name
    assert (table.loc[["right", "slow", "module"], "median_us"] > 0).all()
    assert (table.loc[["right", "slow", "module"], "launch_host_us"] > 0).all()
    assert table.loc[["bad", "deadly"], "median_us"].isna().all()
    output = (place / "output").read_text()
    assert "live on pretended GPU" in output
    assert "check   scale/right  odd  ok" in output


def test_page_figures_and_runs_are_written(place: Path) -> None:
    results = place / "results"
    for name in ("worklog/scale.html", "figures/scale/ladder.png", "tables/claims.csv", "mlflow.db"):
        assert (results / name).stat().st_size > 0
    languages = pd.read_parquet(results / "tables" / "variants.parquet").set_index("variant")["language"]
    assert dict(languages) == {**dict.fromkeys(VARIANTS, "cuda"), "module": "cupy"}
    page = (results / "worklog" / "scale.md").read_text()
    assert "module (cupy)" in page
    assert "```python\ndef launch(arrays, scalars, stream):" in page
    record = FamilyRecord.read(results / "profile" / "host" / "scale.ncu.json").variants["right"]
    assert (record["status"], record["reason"]) == ("skipped", "config: profile.ncu is off")


def test_with_a_strict_umask_no_result_can_be_read_by_others(place: Path) -> None:
    files = [path for path in (place / "results").rglob("*") if path.is_file()]
    assert len(files) > 50
    assert [path for path in files if path.stat().st_mode & 0o077] == []


def test_second_run_does_nothing(place: Path) -> None:
    assert "Nothing to be done" in snakemake(place)


def test_only_an_edited_kernel_is_measured_again(place: Path) -> None:
    launched(place)
    checks = place / "results" / "check" / "host" / "scale.json"
    kept = FamilyRecord.read(checks).variants["slow"]
    write(place, "bad", RIGHT)
    snakemake(place, "tables")
    assert launched(place) == {"bad"}
    assert FamilyRecord.read(checks).variants["slow"] == kept
    assert set(measured(place).set_index("variant").loc["bad", "status"]) == {"ok"}
    assert "Nothing to be done" in snakemake(place, "tables")


def test_only_an_edited_module_is_measured_again(place: Path) -> None:
    launched(place)
    module = place / "host" / "scale" / "module.py"
    module.write_text(module.read_text() + "\n# another comment\n")
    snakemake(place, "time")
    assert launched(place) == {"module"}
    assert "Nothing to be done" in snakemake(place, "time")


def test_only_a_lost_record_is_made_again(place: Path) -> None:
    launched(place)
    path = place / "results" / "time" / "host" / "scale.json"
    record = FamilyRecord.read(path)
    del record.variants["right"]
    record.write()
    snakemake(place, str(path.relative_to(place)), "--forcerun", "time_family")
    assert launched(place) == {"right"}
    assert set(FamilyRecord.read(path).variants) == {*VARIANTS, "module"}


def test_every_variant_is_sanitized_and_a_crash_affects_no_other(place: Path) -> None:
    site = place / "site"
    (site / "driver.c").write_text(DRIVER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", site / "libcuda.so.1", site / "driver.c"], check=True)
    tool = site / "compute-sanitizer"
    tool.write_text(SANITIZER)
    tool.chmod(0o755)
    output = snakemake(place, "sanitize")
    assert "compute-sanitizer over 5 variants: 4 ok, 1 crashed" in output
    table = pd.read_csv(place / "results" / "tables" / "sanitize.csv").set_index("variant")
    assert set(table.loc[["deadly"], "status"]) == {"crashed"}
    assert set(table.loc[["right", "slow", "bad", "module"], "status"]) == {"ok"}


def test_the_same_code_is_compared_with_itself(place: Path) -> None:
    launched(place)
    assert "floor to use:" in snakemake(place, "aa")
    assert launched(place) >= {"right", "slow"}
    rounds = sorted((place / "results" / "aa").glob("round*/time/host/scale.json"))
    assert [FamilyRecord.read(path).variants["right"]["status"] for path in rounds] == ["ok"] * 3
    assert "Nothing to be done" in snakemake(place, "aa")
