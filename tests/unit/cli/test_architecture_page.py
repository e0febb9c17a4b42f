"""workflow/docs/architecture.md names the layers, modules, functions and files that there are."""

import pkgutil
import re
import tomllib
from pathlib import Path

import warplog

PROJECT = Path(__file__).parents[3]
PACKAGE = PROJECT / "workflow" / "warplog"
PAGE = (PROJECT / "workflow" / "docs" / "architecture.md").read_text(encoding="utf-8")
STAGES = re.search(r"^\| what \| rule .*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
QUOTED = set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", PAGE, flags=re.DOTALL | re.MULTILINE)))
PACKAGES = {module.name for module in pkgutil.iter_modules(warplog.__path__)}
NAMES = sorted(
    name
    for name in QUOTED
    if re.fullmatch(rf"({'|'.join(PACKAGES)})(\.\w+)+", name) and not name.endswith((".py", ".json"))
)
# The last column of the stages has paths in results/, where some folders are called as packages are.
FILES = set(re.findall(r"`([\w./-]+/[\w./-]*)`", PAGE.replace(STAGES[0], "") if STAGES else PAGE))
PATHS = sorted(
    path for path in FILES if path.partition("/")[0] in {*PACKAGES, "config", "kernels", "tests", "workflow"}
)
MADE_BY_USERS = {"config/gpus.yaml"}


def test_a_module_or_function_that_the_page_names_exists() -> None:
    for name in NAMES:
        assert pkgutil.resolve_name(f"warplog.{name}") is not None, name


def test_a_file_that_the_page_names_exists() -> None:
    paths = sorted(set(PATHS) - MADE_BY_USERS)
    assert [path for path in paths if not ((PACKAGE / path).exists() or (PROJECT / path).exists())] == []


def test_the_page_names_enough_to_be_checked() -> None:
    assert len(NAMES) > 50
    assert len(PATHS) > 30


def test_the_layers_are_those_that_lint_imports_enforces() -> None:
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    written = [(int(number), sorted(re.findall(r"`(\w+)`", names))) for number, names in rows]
    enforced = [sorted(layer.split(" | ")) for layer in layers]
    assert written == list(zip(range(len(layers), 0, -1), enforced, strict=True))
