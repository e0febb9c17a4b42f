"""A recorded campaign from another folder, another repository and an installed wheel gives the same tables."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import snakemake_runs
from small_campaign import FOLDER as SMALL

PROJECT = Path(__file__).parents[2]
CAMPAIGN = PROJECT / "results" / "recorded" / "h200"
CONFIG = ("mode=recorded", "families=transpose")


def run(folder: Path, *command: object, **environment: str) -> str:
    """Returns what the command prints; it is run in `folder`."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder, capture_output=True, text=True, check=False, timeout=200, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def snakemake(folder: Path, *arguments: object, package: Path = PROJECT / "workflow") -> str:
    options = ("--cores", "1", "--nocolor", *map(str, arguments))
    environment = {**os.environ, "PYTHONPATH": str(package)}
    done = snakemake_runs.run(folder, *options, environment=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def medians(folder: Path) -> pd.Series:
    table = pd.read_parquet(folder / "results" / "tables" / "measurements.parquet")
    return table.set_index(["family", "variant", "case"])["median_us"].dropna()


@pytest.fixture(scope="module")
def recorded() -> pd.Series:
    """Returns the times of the recorded campaign."""
    table = pd.read_parquet(CAMPAIGN / "tables" / "measurements.parquet")
    table = table[table["family"] == "transpose"]
    return table.set_index(["family", "variant", "case"])["median_us"].dropna()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the wheel of this checkout."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    run(PROJECT, uv, "build", "--wheel", "-q", "-o", folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path) -> Path:
    """Returns a folder in which the wheel is installed without what it requires."""
    folder = wheel.parent / "site"
    run(wheel.parent, "uv", "pip", "install", "-q", "--no-deps", "--target", folder, wheel)
    return folder


def test_an_installed_package_has_the_ceilings_of_every_recorded_campaign(site: Path) -> None:
    """A project in a folder of its own then has predictions on these GPUs without further files."""
    recorded = PROJECT / "results" / "recorded"
    wanted = {
        path.relative_to(recorded)
        for pattern in ("*/tables/ceilings.parquet", "*/campaign/*.json")
        for path in recorded.glob(pattern)
    }
    shipped = site / "warplog" / "workflow" / "results" / "recorded"
    assert {path.relative_to(shipped) for path in shipped.rglob("*") if path.is_file()} == wanted


def test_snakefile_and_working_directory_may_be_apart(tmp_path: Path, recorded: pd.Series) -> None:
    there = tmp_path / "there"
    there.mkdir()
    snakefile = PROJECT / "workflow" / "Snakefile"
    snakemake(tmp_path, "-s", snakefile, "-d", there, "tables", "--config", *CONFIG)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    pd.testing.assert_series_equal(medians(there), recorded, check_exact=True)


def test_another_repository_uses_it_as_a_module(tmp_path: Path, recorded: pd.Series) -> None:
    (tmp_path / "Snakefile").write_text(
        f"""
module warplog:
    snakefile:
        "{PROJECT}/workflow/Snakefile"
    config:
        {dict(item.split("=") for item in CONFIG)}


use rule * from warplog as warplog_*


rule slowest:
    input:
        rules.warplog_make_tables.output.csv,
    output:
        "slowest.txt",
    shell:
        "sort -t, -k1,1 {{input[0]}} > {{output}}"
"""
    )
    snakemake(tmp_path, "slowest")
    assert (tmp_path / "slowest.txt").stat().st_size
    pd.testing.assert_series_equal(medians(tmp_path), recorded, check_exact=True)


def test_a_module_with_a_prefix_is_refused_in_one_line(tmp_path: Path) -> None:
    module = f"""
module warplog:
    snakefile:
        "{PROJECT}/workflow/Snakefile"
    prefix:
        "gpu"


use rule * from warplog
"""
    (tmp_path / "Snakefile").write_text(module)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "workflow")}
    done = snakemake_runs.run(tmp_path, "--cores", "1", "tables", environment=environment)
    assert done.returncode == 1
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if "error" in line] == [lines[-1]]
    assert "error: module: a prefix is not supported" in lines[-1]
    assert "--directory FOLDER" in lines[-1]


def test_an_installed_wheel_runs_a_campaign(tmp_path: Path, site: Path, recorded: pd.Series) -> None:
    project = tmp_path / "project"
    shutil.copytree(PROJECT / "kernels" / "transpose", project / "kernels" / "transpose")
    shutil.copytree(PROJECT / "kernels" / "include", project / "kernels" / "include")
    shutil.copytree(CAMPAIGN, project / "results" / "recorded" / CAMPAIGN.name)
    snakefile = site / "warplog" / "workflow" / "Snakefile"
    snakemake(project, "-s", snakefile, "tables", "--config", *CONFIG, package=site)
    pd.testing.assert_series_equal(medians(project), recorded, check_exact=True)


def test_an_installed_wheel_starts_and_plans_a_campaign_elsewhere(tmp_path: Path, site: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    warplog, inherited = (sys.executable, "-m", "warplog"), {"PYTHONPATH": str(site)}
    run(place, *warplog, "init", "--op", "rows", **inherited)
    said = run(place, *warplog, "run", "--", "-n", "build", "--config", "mode=live", "gpu=h200", **inherited)
    assert f"profile {site}/warplog/workflow/profiles/default" in said
    assert "build_variant        1" in said


def test_an_installed_wheel_reads_reports_and_campaigns_in_any_folder(tmp_path: Path, wheel: Path) -> None:
    run(tmp_path, "uv", "venv", "-q", "--python", sys.executable, "reader")
    run(tmp_path, "uv", "pip", "install", "-q", "--python", "reader/bin/python", wheel)
    packages = {path.name for path in tmp_path.glob("reader/lib/python*/site-packages/*")}
    assert not {"snakemake", "mlflow", "matplotlib", "seaborn", "grimp"} & packages, "the reader is light"
    warplog = (tmp_path / "reader" / "bin" / "warplog",)
    inherited = {"PYTHONPATH": "", "VIRTUAL_ENV": ""}

    def says(*arguments: object) -> str:
        return run(tmp_path, *warplog, *arguments, **inherited)

    data = PROJECT / "tests" / "data" / "parsers"
    read = says("extract", data / "ptxas_sm90.log", data / "transpose_h200.ncu-rep")
    assert "registers_per_thread" in read
    assert "duration_us" in read
    assert "SAME" in says("compare", SMALL, SMALL)
    assert "# sgemm" in says("explain", SMALL / "tables")
    assert "CONFIRMED" in says("claims", CAMPAIGN / "tables")
    assert says("--version").startswith("warplog ")
    doctor = subprocess.run([*warplog, "doctor"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "GPU" in doctor.stdout
    assert "Traceback" not in doctor.stdout + doctor.stderr
