"""`warplog init` and `warplog run` in a repository of kernels, and the repositories in examples/."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import snakemake_runs
from sass_builds import built
from warplog.catalog.family import load_family
from warplog.cli import main, running, starting
from warplog.machine import device
from warplog.measure.trial import try_reference
from warplog.records import door
from warplog.records.build import Build

PROJECT = Path(__file__).parents[3]
EXAMPLES = PROJECT / "examples"
PAGE = PROJECT / "workflow" / "docs" / "own-kernels.md"


def written(folder, *options):
    """Runs `warplog init` and returns the folder of the families."""
    assert main.main(["init", str(folder), *options]) == 0
    return folder / "warplog" / "kernels"


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def without_gpu(monkeypatch):
    monkeypatch.setattr(device, "boards", list)
    monkeypatch.setattr(sys, "executable", snakemake_runs.interpreter())


@pytest.mark.parametrize("dtype", starting._TYPES)
@pytest.mark.parametrize("operation", starting.OPERATIONS)
def test_the_family_fits_its_schema_and_its_reference_its_arguments(tmp_path, operation, dtype):
    folder = written(tmp_path, "--op", operation, "--dtype", dtype, "--name", "mine") / "mine"
    family = load_family(folder / "family.yaml")
    assert family.name == "mine"
    assert try_reference(family) == ""


@pytest.mark.nvcc
@pytest.mark.parametrize(
    ("operation", "dtype"), [("elementwise", "float16"), ("rows", "float64"), ("matmul", "bfloat16")]
)
def test_the_first_kernel_compiles(tmp_path, kept_builds, operation, dtype):
    family = load_family(written(tmp_path, "--op", operation, "--dtype", dtype) / operation / "family.yaml")
    _, made = built(family, family.variant("naive"), "sm_90", kept_builds)
    assert made.status == "ok", made.reason


def test_without_a_terminal_nothing_is_asked(tmp_path, capsys):
    assert [path.name for path in written(tmp_path).iterdir()] == ["elementwise"]
    assert "dtype: float32" in (tmp_path / "warplog/kernels/elementwise/family.yaml").read_text()
    assert f"warplog run {tmp_path}" in capsys.readouterr().out


def test_on_a_terminal_it_asks_for_what_is_not_given(tmp_path, monkeypatch):
    asked = []
    answers = iter(["", "mine"])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or next(answers))
    family = load_family(written(tmp_path, "--op", "rows") / "mine" / "family.yaml")
    assert [text.split()[0] for text in asked] == ["dtype", "name"]
    assert family.arguments[0].dtype == "float32"


def test_no_file_is_overwritten(tmp_path, capsys):
    kernels = written(tmp_path)
    for name in ("family.yaml", "reference.py"):
        (kernels / "elementwise" / name).unlink()
    before = files(tmp_path)
    assert main.main(["init", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "elementwise/naive.cu: exists and is not overwritten; choose another --name" in said
    assert files(tmp_path) == before


def test_a_second_family_leaves_the_shared_files_as_they_are(tmp_path):
    kernels = written(tmp_path)
    (tmp_path / "warplog/config/config.yaml").write_text("families: all  # mine\n")
    before = files(tmp_path)
    written(tmp_path, "--name", "second")
    after = files(tmp_path)
    assert {path.parent for path in after.keys() - before} == {kernels / "second"}
    assert before.items() <= after.items()


def test_inside_the_folder_of_the_families_nothing_is_written_and_the_command_is_named(
    tmp_path, monkeypatch, capsys
):
    written(tmp_path)
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path / "warplog")
    assert main.main(["init"]) == 1
    assert (
        f"{tmp_path}/warplog: has families already; `warplog init .. --name NAME` adds"
        in capsys.readouterr().err
    )
    assert files(tmp_path) == before
    assert main.main(["init", "..", "--name", "second"]) == 0
    assert (tmp_path / "warplog" / "kernels" / "second").is_dir()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--name", "../x"], "--name '../x': expected small letters"),
        (["--op", "fft"], "--op 'fft': expected one of elementwise, rows, matmul"),
        (["--dtype", "float"], "--dtype 'float': expected one of float32"),
    ],
)
def test_a_wrong_option_is_named(tmp_path, capsys, options, words):
    assert main.main(["init", str(tmp_path), *options]) == 1
    assert words in capsys.readouterr().err
    assert not files(tmp_path)


def test_a_folder_without_a_family_is_named_with_the_remedy(tmp_path, capsys):
    assert main.main(["run", str(tmp_path)]) == 1
    assert (
        f"{tmp_path}/warplog/kernels: no family (<family>/family.yaml); `warplog init"
        in capsys.readouterr().err
    )


def test_a_target_in_place_of_the_folder_is_explained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main.main(["run", "tables"]) == 1
    assert (
        "tables: no such folder; if it is a target, write `warplog run -- tables`" in capsys.readouterr().err
    )


def test_without_snakemake_the_extra_is_named(tmp_path, capsys, monkeypatch):
    written(tmp_path)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "snakemake" else find(name))
    assert main.main(["run", str(tmp_path)]) == 1
    assert 'pip install "warplog[workflow]"' in capsys.readouterr().err


@pytest.mark.nvcc
def test_a_repository_with_headers_apart_is_built_without_a_gpu(tmp_path, capfd, without_gpu):
    root = shutil.copytree(
        EXAMPLES / "cmake-style", tmp_path / "mine", ignore=shutil.ignore_patterns("results", ".snakemake")
    )
    (root / ".git").mkdir()
    before = files(root)
    assert main.main(["run", str(root), "--config", "variants=library"]) == 0
    assert (
        "nothing was checked or timed; run the same command on a machine with a GPU" in capfd.readouterr().err
    )
    records = {
        name: root / f"warplog/results/build/sm_90/row_sum/{name}/record.json"
        for name in ("naive", "library")
    }
    builds = {name: door.read(path, Build) for name, path in records.items()}
    assert {name: record.status for name, record in builds.items()} == {"naive": "ok", "library": "ok"}
    kernels = {name: record.kernels[0].kernel.split("(")[0] for name, record in builds.items()}
    assert kernels == {"naive": "row_sum_thread", "library": "row_sum_warp"}
    new = {path.relative_to(root).parts[:2] for path in files(root).keys() - before}
    assert new == {("warplog", "results"), ("warplog", ".snakemake")}


def test_a_wrong_reference_fails_a_run_without_a_gpu_and_is_named(tmp_path, capfd, without_gpu):
    kernels = written(tmp_path, "--name", "right").parent / "kernels"
    written(tmp_path, "--name", "wrong")
    reference = kernels / "wrong" / "reference.py"
    reference.write_text(reference.read_text().replace('"y": (y', '"z": (y'))
    before = files(kernels)
    assert main.main(["run", str(tmp_path), "--", "--until", "try_reference"]) == 1
    said = capfd.readouterr().err
    assert "try     reference.py of right  ok" in said
    assert "error: kernels/wrong/reference.py: reference (case '1'): expected the key 'y'" in said
    assert "got 'z'" in said
    assert files(kernels) == before
    reference.write_bytes(before[reference].replace(b'"z": (y', b'"y": (y'))
    assert main.main(["run", str(tmp_path), "--", "--until", "try_reference"]) == 0
    assert "reference.py of right and wrong  ok" in capfd.readouterr().err


def test_a_key_with_a_dot_is_refused_with_the_way_to_write_it(tmp_path, capsys):
    written(tmp_path)
    assert main.main(["run", str(tmp_path), "--", "--config", "time.processes=5"]) == 1
    assert "time.processes=5" in (said := capsys.readouterr().err)
    assert "'time={processes: 5}'" in said


def test_a_repository_of_python_kernels_is_planned(tmp_path, capfd, without_gpu):
    root = shutil.copytree(
        EXAMPLES / "python-kernels", tmp_path / "mine", ignore=shutil.ignore_patterns("results", ".snakemake")
    )
    (root / ".git").mkdir()
    family = load_family(root / "warplog" / "kernels" / "scale" / "family.yaml")
    assert {v.name: v.language for v in family.variants} == {"in_cupy": "cupy", "in_triton": "triton"}
    assert main.main(["run", str(root / "warplog"), "-n"]) == 0
    said = capfd.readouterr()
    assert "build_variant        2" in said.out + said.err


@pytest.mark.nvcc
def test_a_run_that_only_compiles_ends_with_what_does_not_compile_each_time(tmp_path, capfd, without_gpu):
    written(tmp_path)
    (source,) = (tmp_path / "warplog" / "kernels").glob("*/naive.cu")
    source.write_text(source.read_text().replace("__global__", "__global__ oops"))
    for options, status in (([], 0), (["--strict"], 1)):
        assert main.main(["run", str(tmp_path), *options]) == status
        said = " ".join(capfd.readouterr().err.rpartition("\n\n")[2].split())
        assert said.startswith("of 1 variant: none compiled compile error "), said
        assert f"{os.path.relpath(tmp_path)}/warplog/results/build/sm_90/" in said


def test_settings_are_added_to_those_of_the_user():
    added = ["strict=true"]
    assert running._configured(["-n"], added) == ["-n", "--config", "strict=true"]
    assert running._configured(["--config", "gpu=l4", "-n"], added) == [
        *("--config", "strict=true", "gpu=l4", "-n")
    ]
    assert running._configured(["-n", "--", "time"], added) == ["-n", "--config", "strict=true", "--", "time"]


def block(language, holds):
    """Returns the first code block of the page in `language` that contains `holds`."""
    blocks = re.findall(rf"```{re.escape(language)}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return next(text for text in blocks if holds in text)


@pytest.mark.nvcc
def test_the_kernel_of_the_page_compiles(tmp_path, kept_builds):
    folder = written(tmp_path, "--op", "matmul", "--name", "gemm") / "gemm"
    (folder / "tiled.cu").write_text(block("c++", "launch("))
    with (folder / "family.yaml").open("a") as file:
        file.write(block("yaml", "tiled"))
    family = load_family(folder / "family.yaml")
    _, made = built(family, family.variant("tiled"), "sm_90", kept_builds)
    assert made.status == "ok", made.reason


def test_the_files_that_the_page_shows_are_written(tmp_path):
    written(tmp_path, "--op", "matmul", "--name", "gemm")
    shown = [line for line in block("console", "warplog init").splitlines() if line.startswith("warplog/")]
    assert {str(path.relative_to(tmp_path)) for path in files(tmp_path)} == set(shown)


def test_the_snakefile_of_the_page_plans_the_campaign_of_that_folder(tmp_path):
    place = written(tmp_path, "--op", "rows").parent
    (place / "config" / "config.yaml").write_text("mode: live\ngpu: h200\n")
    (place / "Snakefile").write_text(block("python", "module warplog"))
    done = snakemake_runs.run(place, "--cores", "1", "-n", "build", environment=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "results/build/sm_90/rows/naive/record.json" in done.stdout + done.stderr


def test_signals_reach_snakemake_and_its_end_is_the_status(tmp_path):
    """A stand-in for Snakemake, which Ctrl-C does not end either: it reports what it gets."""
    written(tmp_path)
    package = tmp_path / "stand-in" / "snakemake"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").write_text(
        "import os, signal, time\n"
        "got = []\n"
        "for number in (signal.SIGINT, signal.SIGTERM):\n"
        "    signal.signal(number, lambda number, _: got.append(print(number, flush=True)))\n"
        "def main():\n    print('on', flush=True)\n"
        "    while len(got) < 2: time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = f"{package.parent}:{Path(main.__file__).parents[2]}"
    command = [sys.executable, "-m", "warplog", "run", str(tmp_path), "--", "--config", "mode=live"]
    environment = {**os.environ, "PYTHONPATH": path}
    started = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert started.stdout.readline() == "on\n"
    os.killpg(started.pid, signal.SIGINT)
    assert started.stdout.readline() == "2\n"
    started.send_signal(signal.SIGTERM)
    assert started.communicate(timeout=60)[0] == "15\n"
    assert started.returncode == 128 + signal.SIGKILL
