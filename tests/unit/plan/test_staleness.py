"""Which stages an edited module makes stale: those whose results it decides, and no others; which builds run again."""

import re
from pathlib import Path

import pytest

import made_up_records
from warplog.plan import staleness
from warplog.records import door

WORKER = "measure/worker"


def code(stage: str) -> set[str]:
    return {path.partition("warplog/")[2] for path in staleness.code(stage)}


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        (f"{WORKER}/check_case.py", {"check", "tune"}),
        (f"{WORKER}/problem.py", {"check", "sanitize", "time", "profile", "timeline", "tune"}),
        (f"{WORKER}/case_data.py", {"trial", "check", "sanitize", "time", "profile", "timeline", "tune"}),
        (f"{WORKER}/backend.py", {"check", "sanitize", "time", "profile", "timeline", "tune"}),
        (f"{WORKER}/time_case.py", {"time", "tune"}),
        (f"{WORKER}/timer.py", {"time", "timeline", "tune"}),
        (f"{WORKER}/sampling.py", {"time", "tune"}),
        ("measure/pooling.py", {"time"}),
        ("machine/clocks.py", {"time", "tune", "profile"}),
        (
            "core/statistics.py",
            {"time", "timeline", "tune", "tables", "floors", "oracle", "judge", "summary"},
        ),
        ("measure/building/build.py", {"build", "tune"}),
        ("measure/building/dependencies.py", {"build", "tune"}),
        ("measure/building/loading.py", {"build", "tune"}),
        ("measure/stages/capture.py", {"profile"}),
        ("extract/hot_lines.py", {"extract"}),
        ("extract/hot_loops.py", {"extract"}),
        ("parsers/loops.py", {"extract"}),
        ("measure/worker/python_launcher.py", {"check", "sanitize", "time", "profile"}),
        ("measure/building/python_build.py", {"build"}),
        ("extract/timeline.py", {"extract"}),
        (f"{WORKER}/timeline_case.py", {"timeline"}),
        ("extract/perfetto.py", {"timeline"}),
        ("parsers/timeline_buffer.py", {"timeline"}),
        ("figures/swim_lanes.py", {"plot"}),
        ("parsers/sanitizer.py", {"sanitize"}),
        ("parsers/ncu/report.py", {"extract"}),
        (
            "analysis/verdicts.py",
            {
                "analysis",
                "claims",
                "floors",
                "judge",
                "oracle",
                "plot",
                "plot_tuning",
                "summary",
                "track",
                "worklog",
            },
        ),
        ("analysis/roles.py", {"analysis"}),
        ("analysis/noise.py", {"judge", "floors"}),
        ("judge/summary/gather.py", {"summary"}),
        ("judge/floors.py", {"judge", "floors"}),
        ("judge/claims.py", {"claims"}),
        ("analysis/assertions.py", {"claims"}),
        ("judge/oracle.py", {"oracle"}),
        ("figures/ladder.py", {"plot"}),
        ("track/notes.py", {"track"}),
        ("worklog/words.html.j2", {"worklog", "summary"}),
        ("worklog/page.css", {"worklog", "summary"}),
        # They carry data and start processes, but decide no value.
        ("core/files.py", set()),
        ("core/records.py", set()),
        ("core/errors.py", set()),
        ("core/process.py", set()),
        ("measure/job.py", set()),
    ],
)
def test_a_module_is_code_of_the_stages_whose_results_it_decides(module: str, stages: set[str]) -> None:
    assert {stage for stage in staleness.ROOTS if module in code(stage)} == stages


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        ("metrics/tracks.py", {"timeline", "tables", "plot"}),
        ("metrics/registry.py", {"profile", "extract", "tables", "claims", "worklog"}),
        ("machine/device.py", {"tables", "oracle"}),
        ("tables/published.py", {"tables", "worklog"}),
        ("core/columns.py", {"tables", "claims", "oracle"}),
        ("core/text.py", {"trial", "tables", "worklog"}),
        ("parsers/sass.py", {"build", "claims"}),
        ("figures/shared/labels.py", {"plot", "judge", "plot_tuning"}),
    ],
)
def test_a_shared_module_is_code_of_at_least_these_stages(module: str, stages: set[str]) -> None:
    assert {stage for stage in staleness.ROOTS if module in code(stage)} >= stages


@pytest.mark.parametrize("stage", ["build", "check", "time", "profile", "timeline", "sanitize", "tune"])
def test_the_catalogue_is_hashed_by_value_and_makes_no_measurement_stale(stage: str) -> None:
    assert not [path for path in code(stage) if path.startswith("catalog/")]


def test_every_rule_that_makes_results_lists_the_code_of_its_stage(project: Path) -> None:
    """With this, an edited module of a stage reruns the rules of the stage: test_jobs.py shows it for some of them."""
    text = "".join(path.read_text() for path in sorted((project / "workflow" / "rules").glob("*.smk")))
    found = {}
    for name, rule in re.findall(r"^rule (\w+):\n((?:[ \n].*\n)*)", text, re.MULTILINE):
        stages = re.findall(r'code=code\("(\w+)"\)', rule)
        if "script:" in rule:
            found[name] = stages[0] if stages else ""
    assert found == {
        "start_campaign": "",  # of the machine
        **dict.fromkeys(("build_variant", "build_timer", "build_marked"), "build"),
        "try_reference": "trial",
        "check_family": "check",
        **dict.fromkeys(("time_family", "time_round"), "time"),
        **dict.fromkeys(("profile_ncu", "profile_nsys"), "profile"),
        "extract_family": "extract",
        "make_tables": "tables",
        "judge_claims": "claims",
        "analyse": "analysis",
        "judge_floors": "floors",
        "plot_family": "plot",
        **dict.fromkeys(("write_worklog", "write_site"), "worklog"),
        "bundle_charts": "",  # JavaScript of a package, whose version is a parameter
        **dict.fromkeys(("log_mlflow", "log_figures"), "track"),
        **dict.fromkeys(("judge_rounds", "compare_campaigns", "plot_history"), "judge"),
        "summarize": "summary",
        **dict.fromkeys(("strict", "strict_build"), ""),  # they judge what others made
        "judge_oracle": "oracle",
        **dict.fromkeys(("oracle", "compare", "audit"), ""),  # they print what others made, or judge it
        **dict.fromkeys(("sanitize_family", "list_findings"), "sanitize"),
        "capture_timelines": "timeline",
        "tune_variant": "tune",
        "plot_tuning": "plot_tuning",
    }
    assert set(found.values()) - {""} == set(staleness.ROOTS)


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
    assert staleness.attempt(path) == 1
    door.write(path, made_up_records.build(attempt=3, **changes))
    assert staleness.attempt(path) == number
