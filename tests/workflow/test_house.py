"""Style, layers, workflow lint and the layout of the repository."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import warplog

MOST_MODULES = 16  # in one folder; with more, it covers several subjects
WORKFLOW = ["Snakefile", "workflow"]


def run(project: Path, *command: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "."),  # its cache does not know when a module moves
        ("ruff", "format", "--check", "."),
        ("lint-imports",),
        ("snakefmt", "--check", *WORKFLOW),
        ("snakemake", "--lint", "--config", "mode=live", "gpu=h200"),
    ],
    ids=lambda c: " ".join(c[:2]),
)
def test_tool_finds_no_problem(project: Path, command: tuple[str, ...]) -> None:
    run(project, *command)


PLANTED = {  # module: an import that breaks a rule, and how lint-imports reports it
    "core/text.py": ("import warplog.machine.device", "core.text -> warplog.machine.device"),
    "metrics/metric.py": ("from warplog.plan import plan", "metrics.metric -> warplog.plan.plan"),
    "analysis/verdicts.py": ("from warplog.worklog import page", "analysis.verdicts -> warplog.worklog.page"),
    "track/runs.py": (
        "from warplog.measure.building import build",
        "track.runs -> warplog.measure.building.build",
    ),
    "machine/nvml.py": ("from warplog.machine import device", ".nvml -> .device"),
    "core/files.py": ("import snakemake", "core.files -> snakemake"),
}


def test_each_planted_import_violates_the_layers(project: Path, tmp_path: Path) -> None:
    """Every other one stands where only types need it."""
    shutil.copytree(
        project / "workflow" / "warplog", tmp_path / "warplog", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(project / "pyproject.toml", tmp_path)
    for number, (module, (line, _)) in enumerate(PLANTED.items()):
        path = tmp_path / "warplog" / module
        planted = (
            f"\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {line}\n"
            if number % 2
            else f"\n{line}\n"
        )
        path.write_text(path.read_text() + planted)
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.returncode == 1
    assert [report for _, report in PLANTED.values() if report not in done.stdout] == []


def test_folders_stay_small(project: Path) -> None:
    for top in (project / "workflow", project / "tests"):
        for folder in {path.parent for path in top.rglob("*.py")}:
            modules = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]
            assert len(modules) <= MOST_MODULES, folder


def test_the_version_is_defined_once(project: Path) -> None:
    settings = tomllib.loads((project / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    assert yaml.safe_load((project / "CITATION.cff").read_text())["version"] == warplog.__version__


def test_planning_imports_no_heavy_library(project: Path) -> None:
    code = (
        "import sys; from warplog.plan.making import make_plan; make_plan({'mode': 'live', 'gpu': 'h200'});"
        "heavy = {'cupy', 'mlflow', 'matplotlib', 'seaborn', 'pandas', 'ncu_report', 'scipy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    run(project, sys.executable, "-c", code)


def test_rules_compute_nothing(project: Path) -> None:
    for path in (project / "workflow" / "rules").glob("*.smk"):
        text = path.read_text()
        assert "lambda" not in text, path
        assert not re.search(r"^\s*(run:|def |for )", text, re.MULTILINE), path
        for rule in re.findall(r"^rule \w+:\n(?:[ \n].*\n)*", text, re.MULTILINE):
            assert "log:" in rule or "script:" not in rule, rule


def test_no_rule_needs_a_number_of_cores_which_a_run_on_a_cluster_does_not_have(project: Path) -> None:
    """Snakemake refuses `workflow.cores` without --cores, even if the rule is not used."""
    rules = {path.name: path.read_text() for path in (project / "workflow" / "rules").glob("*.smk")}
    assert len(rules) > 5
    assert not [name for name, text in rules.items() if "workflow.cores" in text]


def test_the_root_snakefile_only_includes_the_workflow(project: Path) -> None:
    text = re.sub(r'^""".*?"""', "", (project / "Snakefile").read_text(), flags=re.DOTALL)
    statements = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert statements[0] == 'include: "workflow/Snakefile"'
    assert len(statements) == 2


def test_scripts_are_named_after_their_rules(project: Path) -> None:
    """A script has the name of its rule, and its folder has the name of the file of rules."""
    scripts = project / "workflow" / "scripts"
    found = set()
    for path in (project / "workflow" / "rules").glob("*.smk"):
        for name, rule in re.findall(r"^rule (\w+):\n((?:[ \n].*\n)*)", path.read_text(), re.MULTILINE):
            script = re.search(r"scripts/([\w/]+)\.py", rule)
            if script:
                found.add(script[1])
                folder, stem = script[1].split("/")
                assert folder == path.stem
                assert stem == name
    assert found == {path.relative_to(scripts).with_suffix("").as_posix() for path in scripts.rglob("*.py")}


def test_every_mutation_fits_the_code_and_names_tests_that_exist(project: Path) -> None:
    """tests/benchmarks/mutations.py applies them and fails if no test notices."""
    package, tests = project / "workflow" / "warplog", project / "tests" / "unit"
    mutations = yaml.safe_load((project / "tests" / "benchmarks" / "mutations.yaml").read_text())
    assert len(mutations) > 200
    unfit = [m["old"] for m in mutations if (package / m["file"]).read_text().count(m["old"]) != 1]
    assert unfit == []
    assert [name for m in mutations for name in m["tests"] if not (tests / name).is_file()] == []
