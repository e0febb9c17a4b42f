"""Which stages an edited module makes stale: those whose results it decides, and no others."""

import pytest

from warplog.plan import staleness

WORKER = "measure/worker"


def code(stage: str) -> set[str]:
    return {path.partition("warplog/")[2] for path in staleness.code(stage)}


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        (f"{WORKER}/check_case.py", {"check", "tune"}),
        (f"{WORKER}/problem.py", {"check", "sanitize", "time", "profile", "tune"}),
        (f"{WORKER}/case_data.py", {"check", "sanitize", "time", "profile", "tune"}),
        (f"{WORKER}/backend.py", {"check", "sanitize", "time", "profile", "tune"}),
        (f"{WORKER}/time_case.py", {"time", "tune"}),
        (f"{WORKER}/timer.py", {"time", "tune"}),
        ("machine/clocks.py", {"time", "tune"}),
        ("core/statistics.py", {"time", "tune", "judge"}),
        ("measure/build.py", {"build", "tune"}),
        ("measure/capture.py", {"profile"}),
        ("extract/hot_lines.py", {"extract"}),
        ("extract/timeline.py", {"extract"}),
        ("parsers/sanitizer.py", {"sanitize"}),
        ("parsers/ncu/report.py", {"extract"}),
        ("judge/verdicts.py", {"judge", "floors"}),
        ("judge/floors.py", {"judge", "floors"}),
        ("judge/claims.py", {"claims"}),
        ("judge/oracle.py", {"oracle"}),
        ("figures/ladder.py", {"plot"}),
        ("track/notes.py", {"track"}),
        ("worklog/sentences.py", {"worklog"}),
        ("worklog/page.css", {"worklog"}),
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
        ("metrics/registry.py", {"profile", "extract", "tables", "claims", "worklog"}),
        ("machine/device.py", {"tables", "oracle"}),
        ("tables/published.py", {"tables", "worklog"}),
        ("core/columns.py", {"tables", "claims", "oracle"}),
        ("core/text.py", {"time", "tables", "worklog"}),
        ("parsers/sass.py", {"build", "claims"}),
        ("plotting/labels.py", {"plot", "judge", "plot_tuning"}),
    ],
)
def test_a_shared_module_is_code_of_at_least_these_stages(module: str, stages: set[str]) -> None:
    assert {stage for stage in staleness.ROOTS if module in code(stage)} >= stages


@pytest.mark.parametrize("stage", ["build", "check", "time", "profile", "sanitize", "tune"])
def test_the_catalogue_is_hashed_by_value_and_makes_no_measurement_stale(stage: str) -> None:
    assert not [path for path in code(stage) if path.startswith("catalog/")]
