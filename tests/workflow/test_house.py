"""One command, green or red: style, types, workflow lint, and who may know whom."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from warplog.core import paths

LONGEST_FUNCTION = 40
LONGEST_MODULE = 250
WORKFLOW = ["Snakefile", "workflow"]


def run(project: Path, *command: str) -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
        ("mypy",),
        ("snakefmt", "--check", *WORKFLOW),
        ("snakemake", "--lint", "--config", "mode=live", "gpu=h200"),
    ],
    ids=lambda c: " ".join(c[:2]),
)
def test_tool_is_content(project: Path, command: tuple[str, ...]) -> None:
    run(project, *command)


def sources(project: Path) -> list[Path]:
    return sorted((project / "workflow").rglob("*.py"))


def test_functions_fit_the_screen_and_modules_stay_small(project: Path) -> None:
    too_long = []
    for path in sources(project):
        text = path.read_text()
        if text.count("\n") > LONGEST_MODULE:
            too_long.append(f"{path.relative_to(project)}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.FunctionDef)
                and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
            ):
                too_long.append(f"{path.relative_to(project)}:{node.name}")
    assert not too_long


def test_package_never_imports_snakemake(project: Path) -> None:
    for path in (project / "workflow" / "warplog").rglob("*.py"):
        assert not re.search(r"^\s*(import|from) snakemake", path.read_text(), re.MULTILINE), path


def test_dry_run_needs_none_of_the_heavy_libraries(project: Path) -> None:
    code = (
        "import sys; from warplog.plan import make_plan; make_plan({'mode': 'live', 'gpu': 'h200'});"
        "heavy = {'cupy', 'mlflow', 'matplotlib', 'seaborn', 'pandas', 'ncu_report', 'scipy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    run(project, sys.executable, "-c", code)


def test_rules_compute_nothing(project: Path) -> None:
    for path in (project / "workflow" / "rules").glob("*.smk"):
        text = path.read_text()
        assert "lambda" not in text, path
        assert not re.search(r"^\s*(run:|def )", text, re.MULTILINE), path
        for rule in re.findall(r"^rule \w+:\n(?:[ \n].*\n)*", text, re.MULTILINE):
            assert "log:" in rule or "output:" not in rule, rule


def test_snakefile_is_short_and_defines_nothing(project: Path) -> None:
    text = (project / "Snakefile").read_text()
    assert text.count("\n") < 60
    assert "\ndef " not in text


def test_scripts_agree_with_their_rules(project: Path) -> None:
    rules = "".join(p.read_text() for p in (project / "workflow" / "rules").glob("*.smk"))
    named = set(re.findall(r"scripts/(\w+)\.py", rules)) - {"figures"}
    assert named == {p.stem for p in (project / "workflow" / "scripts").glob("*.py")}
    for name in named:
        of_family = f'f"{name.removesuffix("_family")}_{{family.name}}"'
        of_figure = f'f"{name}_{{figure}}"'
        assert f"rule {name}:" in rules or of_family in rules or of_figure in rules


@pytest.mark.parametrize("stage", ["check", "time"])
def test_what_a_measuring_stage_imports_on_the_gpu_is_its_code(stage: str) -> None:
    """An edit of a module that makes inputs or judges answers measures again: no record outlives it."""
    gpu = Path(paths.__file__).parent / "gpu"
    found, left = set(), [gpu / f"{stage}_case.py"]
    while left:
        module = left.pop()
        found.add(module)
        for name in re.findall(r"^from warplog\.gpu\.(\w+) import", module.read_text(), re.MULTILINE):
            left += {gpu / f"{name}.py"} - found
    assert found <= {Path(module).resolve() for module in paths.code(stage)}
