"""What reruns when something changes, seen in the list of jobs of a dry run of the live workflow."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

LIVE = ("--config", "mode=live", "gpu=h200")
SNAKEMAKE = (sys.executable, "-m", "snakemake", "--cores", "2", "--nocolor")


def snakemake(place: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(place / "workflow")}  # the copy's package, not ours
    command = [*SNAKEMAKE, *arguments]
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, check=False, timeout=200, env=environment
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def jobs(place: Path, *config: str) -> Counter[tuple[str, str]]:
    """(rule, variant) of every job of a dry run; variant is '' where the job has none."""
    text = snakemake(place, "-n", *LIVE, *config)
    found: Counter[tuple[str, str]] = Counter()
    for block in re.split(r"\n(?=(?:local)?rule )", text):
        rule = re.match(r"(?:local)?rule (\w+):", block)
        if rule:
            variant = re.search(r"wildcards:.*variant=(\w+)", block)
            found[rule[1], variant[1] if variant else ""] += 1
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which every output of the live workflow exists and is up to date."""
    project = Path(__file__).parents[2]
    place = tmp_path_factory.mktemp("live")
    for name in ("Snakefile", "workflow", "kernels", "config", "profiles"):
        source = project / name
        ignore = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=ignore)
        else:
            shutil.copy(source, place)
    past = time.time() - 1000
    for path in place.rglob("*"):
        if path.is_file():
            os.utime(path, (past, past))
    summary = snakemake(place, "--summary", *LIVE)
    rows = [line.split("\t") for line in summary.splitlines() if line.count("\t") >= 5]
    outputs = [row[0] for row in rows if row[0].startswith("results/")]
    assert len(outputs) > 50
    for output in outputs:
        (place / output).parent.mkdir(parents=True, exist_ok=True)
        (place / output).touch()
    snakemake(place, "--touch", *LIVE)
    return place


@pytest.fixture
def place(finished: Path, tmp_path: Path) -> Path:
    """A fresh copy of the finished project, times kept."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy, copy_function=shutil.copy2)
    return copy


def test_finished_workflow_has_nothing_to_do(place: Path) -> None:
    assert "Nothing to be done" in snakemake(place, "-n", *LIVE)


def test_edited_kernel_reruns_its_own_chain_and_nothing_else(place: Path) -> None:
    path = place / "kernels" / "sgemm" / "naive.cu"
    path.write_text(path.read_text() + "\n// edited\n")
    found = jobs(place)
    variants = {variant for _, variant in found if variant}
    assert variants == {"naive"}
    chain = {rule for rule, variant in found if variant == "naive"}
    assert chain == {
        "build_variant", "check_variant", "time_variant", "profile_ncu", "profile_nsys", "extract_variant"
    }  # fmt: skip
    assert all(count == 1 for (_, variant), count in found.items() if variant)
    assert {rule for rule, variant in found if not variant} == {
        "make_tables",
        "plot_figure",
        "log_mlflow",
        "all",
    }


def test_new_variant_adds_its_own_jobs(place: Path) -> None:
    folder = place / "kernels" / "sgemm"
    shutil.copy(folder / "naive.cu", folder / "mine.cu")
    path = folder / "family.yaml"
    entry = "  - {name: mine, parent: naive, idea: a copy, parameters: {BLOCK: 32}}\n"
    path.write_text(path.read_text() + entry)
    assert {variant for _, variant in jobs(place) if variant} == {"mine"}


def test_edited_timing_core_times_again_and_builds_no_kernel(place: Path) -> None:
    path = place / "workflow" / "warplog" / "gpu" / "timer.cu"
    path.write_text(path.read_text() + "\n// edited\n")
    rules = {rule for rule, _ in jobs(place)}
    assert {"build_timer", "time_variant"} <= rules
    assert not {"build_variant", "check_variant", "profile_ncu", "profile_nsys", "extract_variant"} & rules


def test_edited_figure_redraws_that_figure_only(place: Path) -> None:
    path = place / "workflow" / "scripts" / "figures" / "ladder.py"
    path.write_text(path.read_text() + "\n# edited\n")
    found = jobs(place)
    assert found["plot_figure", ""] == 1
    assert {rule for rule, _ in found} == {"plot_figure", "log_mlflow", "all"}


def test_misspelt_key_is_refused_by_name(place: Path) -> None:
    done = subprocess.run(
        [*SNAKEMAKE, "-n", "--config", "varaints=naive"],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "unknown key 'varaints'; did you mean 'variants'?" in done.stdout + done.stderr
