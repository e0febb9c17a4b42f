"""Says which stages have other code than their version had, and notes what that means for their results.

    python tests/tools/stage_versions.py             which stages those are
    python tests/tools/stage_versions.py same time   the results of `time` are as before: nobody measures anew
    python tests/tools/stage_versions.py bump time   they differ: its version in records/stages.py goes up
    python tests/tools/stage_versions.py table       writes the list of stages into workflow/docs/architecture.md

Stages are named by their rule or word; `all` are all that differ. The code of a stage is that of the modules in its
entry and of all that they import, without comments and docstrings, and the templates, styles and CUDA sources beside
these.
"""

import ast
import hashlib
import json
import re
import sys
from functools import cache
from pathlib import Path

import grimp

from warplog.core.paths import PACKAGE
from warplog.records import stages

PINS = Path(__file__).parents[1] / "data" / "stage_versions.json"
LIST = PACKAGE / "records" / "stages.py"
DOCUMENT = Path(__file__).parents[2] / "workflow" / "docs" / "architecture.md"
_DATA = (".j2", ".css", ".js", ".cu", ".cuh", ".yaml")


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("warplog", cache_dir=None, exclude_type_checking_imports=True)


@cache
def _code(module: str) -> str:
    """Returns a hash of a module: of its statements, and of the files beside it that are no modules."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    data = [file.read_bytes() for file in sorted(path.parent.iterdir()) if file.suffix in _DATA]
    return hashlib.sha256(b"".join([ast.dump(tree).encode(), *data])).hexdigest()


def modules(stage: stages.Stage) -> set[str]:
    """Returns the modules whose code decides the results of a stage."""
    roots = {f"warplog.{name}" for name in stage.code}
    roots |= {below for root in roots for below in _graph().find_descendants(root)}
    found = roots | {upstream for root in roots for upstream in _graph().find_upstream_modules(root)}
    return found - {"warplog.records.stages"}  # the versions themselves


def code(stage: stages.Stage) -> str:
    """Returns a hash of the code of a stage."""
    return hashlib.sha256("".join(map(_code, sorted(modules(stage)))).encode()).hexdigest()[:16]


def pins() -> dict[str, list[object]]:
    """Returns version and hash of the code of each stage, by rule, as noted."""
    noted: dict[str, list[object]] = json.loads(PINS.read_text()) if PINS.is_file() else {}
    return noted


def present() -> dict[str, list[object]]:
    """Returns version and hash of the code of each stage, by rule, as they are."""
    return {stage.rule: [stage.version, code(stage)] for stage in stages.STAGES if stage.version}


def differing() -> list[str]:
    """Returns the rules of the stages whose version or code is not the noted one."""
    noted = pins()
    return [rule for rule, now in present().items() if noted.get(rule) != now]


def table() -> str:
    """Returns the list of stages as a table in Markdown."""
    head = "| what | rule | module of `warplog` | result in `results/` |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {stage.about} | `{stage.rule}` | {''.join(f'`{name}`' for name in stage.code[:1])} | `{stage.file}` |\n"
        for stage in stages.STAGES
    )


def main(verb: str = "", *names: str) -> int:
    """Does what the command line says; returns 1 if stages differ that were not named."""
    if verb == "table":
        text = DOCUMENT.read_text(encoding="utf-8")
        DOCUMENT.write_text(
            re.sub(r"(?s)\| what \| rule .*?\n(?=\n)", lambda _: table(), text), encoding="utf-8"
        )
    left = differing()
    named = {stage.rule for stage in stages.STAGES if "all" in names or {stage.rule, stage.word} & set(names)}
    now = {rule: found for rule, found in present().items() if rule in named and rule in left}
    if verb == "bump":
        text = LIST.read_text(encoding="utf-8")
        for rule, found in now.items():
            found[0] = stages.BY_RULE[rule].version + 1
            entry = re.compile(rf'(rule="{rule}",.*?version=)\d+', re.DOTALL)
            text = entry.sub(lambda begin, to=found[0]: f"{begin[1]}{to}", text, count=1)
        LIST.write_text(text, encoding="utf-8")
    if verb in ("same", "bump"):
        noted = {rule: found for rule, found in pins().items() if rule in stages.BY_RULE}
        PINS.write_text(json.dumps(dict(sorted((noted | now).items())), indent=0) + "\n")
        left = [rule for rule in left if rule not in now]
    print(
        "\n".join(f"{rule}: its code is not that of version {stages.BY_RULE[rule].version}" for rule in left)
    )
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
