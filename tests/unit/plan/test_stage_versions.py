"""A stage's version stands for its code; every rule has its stage; a failed build runs again."""

import re
from pathlib import Path

import pytest
from tools import stage_versions

import made_up_records
from warplog.plan.parameters import attempt
from warplog.records import door, stages

# Rules that print, judge or bundle what others made.
_OF_OTHERS = {"strict", "strict_build", "compare", "oracle", "audit"}


def test_the_code_of_each_stage_is_that_of_its_version() -> None:
    assert stage_versions.differing() == [], (
        "if results are as before: python tests/tools/stage_versions.py same STAGE; if not: bump STAGE"
    )


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("measure.worker.sampling", {"time", "tune"}),
        ("measure.pooling", {"time"}),
        ("machine.clocks", {"time", "ncu", "nsys", "tune"}),
        ("metrics.registry", {"ncu", "nsys", "extract", "tables"}),
        ("analysis.verdicts", {"floors", "claims", "analysis", "compare"}),
        ("parsers.ncu.report", {"extract"}),
        ("figures.ladder", {"figures"}),
    ],
)
def test_a_module_is_code_of_the_stages_whose_results_it_decides(module: str, words: set[str]) -> None:
    assert {s.word for s in stages.STAGES if f"warplog.{module}" in stage_versions.modules(s)} >= words


def test_every_rule_with_a_script_is_a_stage_with_its_version_and_outputs(project: Path) -> None:
    text = "".join(path.read_text() for path in sorted((project / "workflow" / "rules").glob("*.smk")))
    rules = dict(re.findall(r"^rule (\w+):\n((?:[ \n].*\n)*)", text, re.MULTILINE))
    scripted = {name for name, rule in rules.items() if "script:" in rule}
    assert scripted == set(stages.BY_RULE) | _OF_OTHERS
    constants = {stage.rule: name for name, stage in vars(stages).items() if isinstance(stage, stages.Stage)}
    for rule, stage in stages.BY_RULE.items():
        assert (f"version=stages.{constants[rule]}.version" in rules[rule]) == bool(stage.version), rule
        if "files." not in rules[rule].partition("output:")[2].partition("log:")[0]:
            assert f'"results/{stage.file}"' in rules[rule], rule


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"status": "ok"}, 3),
        ({"status": "unsupported"}, 3),
        ({"status": "compile_error"}, 4),
        ({"status": "timeout"}, 4),
        ({"status": "compile_error", "origin": "recorded"}, 3),
    ],
)
def test_a_failed_build_runs_again_and_another_does_not(
    tmp_path: Path, changes: dict[str, str], number: int
) -> None:
    """Snakemake runs a job again if a parameter changes: here the number of the build."""
    path = tmp_path / "record.json"
    assert attempt(path) == 1
    door.write(path, made_up_records.build(attempt=3, **changes))
    assert attempt(path) == number


def test_the_documentation_lists_the_stages() -> None:
    """`python tests/tools/stage_versions.py table` writes it."""
    assert stage_versions.table() in stage_versions.DOCUMENT.read_text(encoding="utf-8")
