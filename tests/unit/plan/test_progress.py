"""The lines of a run on the terminal: the logger plugin of Snakemake, without Snakemake."""

import logging
from types import SimpleNamespace

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_warplog as plugin

SETTINGS = {
    **{"printshellcmds": False, "nocolor": True, "quiet": None, "debug_dag": False, "verbose": False},
    **{"show_failed_logs": False, "stdout": False, "dryrun": False},
}


def log(handler: plugin.LogHandler, message: str = "", level: int = logging.INFO, **values) -> None:
    record = logging.makeLogRecord({"msg": message, "levelno": level, "levelname": "INFO", **values})
    handler.handle(record)


def job(handler: plugin.LogHandler, number: int, rule: str, family: str, start: float, end: float) -> None:
    about = {"jobid": number, "rule_name": rule, "wildcards": {"family": family}}
    log(handler, event=LogEvent.JOB_INFO, created=start, **about)
    log(handler, event=LogEvent.JOB_FINISHED, created=end, job_id=number)


@pytest.fixture
def handler() -> plugin.LogHandler:
    made = plugin.LogHandler(SimpleNamespace(**SETTINGS), None)
    steps = [("build_variant", "scan")] * 2 + [("check_family", "scan"), ("time_family", "scan")]
    log(made, event=plugin.STEPS, steps=steps)
    return made


def test_a_step_has_one_line_when_all_its_jobs_are_done(handler: plugin.LogHandler, capsys) -> None:
    job(handler, 1, "build_variant", "scan", 100.0, 108.0)
    assert capsys.readouterr().err == ""
    job(handler, 2, "build_variant", "scan", 101.0, 110.0)
    job(handler, 3, "check_family", "scan", 110.0, 120.0)
    job(handler, 4, "time_family", "scan", 120.0, 131.5)
    job(handler, 5, "all", "", 131.5, 131.5)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["[1/3]", "build", "scan", "10.0", "s"],
        ["[2/3]", "check", "scan", "10.0", "s"],
        ["[3/3]", "time", "scan", "11.5", "s"],
    ]
    assert "about 1 min left" in lines[0]
    assert "left" not in lines[2]


def test_messages_of_snakemake_are_left_out_but_warnings_errors_and_ours_are_not(handler, capsys) -> None:
    log(handler, "Building DAG of jobs...")
    log(handler, "3 of 57 steps (5%) done", event=LogEvent.PROGRESS)
    log(handler, "WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR)
    assert capsys.readouterr().err == ""
    log(handler, "live on h200", event=plugin.MESSAGE)
    log(handler, "a tool is old", logging.WARNING)
    log(handler, "MissingInputException in rule all", logging.ERROR, event=LogEvent.ERROR)
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == [
        "live",
        "a",
        "MissingInputException",
    ]


def test_what_snakemake_answers_without_running_a_job_is_shown(capsys) -> None:
    handler = plugin.LogHandler(SimpleNamespace(**SETTINGS), None)
    log(handler, "Building DAG of jobs...")
    log(handler, "Unlocked working directory.")
    log(handler, "Nothing to be done (all requested files are present and up to date).")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["Unlocked", "Nothing"]


def test_a_failed_job_shows_stage_family_log_and_the_last_lines_of_the_log(handler, capsys, tmp_path) -> None:
    path = tmp_path / "scan.log"
    path.write_text("".join(f"line {number}\n" for number in range(50)) + "error: it printed this\n")
    about = {"jobid": 3, "rule_name": "check_family", "wildcards": {"family": "scan"}}
    log(handler, event=LogEvent.JOB_INFO, created=1.0, **about)
    log(handler, "Error in rule", logging.ERROR, event=LogEvent.JOB_ERROR, jobid=3, log=[str(path)], aux={})
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.split() == ["[0/3]", "check", "scan", "failed", str(path)]
    assert [line.strip() for line in rest] == [f"line {number}" for number in range(40, 50)]


@pytest.mark.parametrize("option", ["verbose", "dryrun", "printshellcmds", "debug_dag"])
def test_snakemakes_own_lines_come_back_if_asked_for(option: str, capsys) -> None:
    handler = plugin.LogHandler(SimpleNamespace(**(SETTINGS | {option: True})), None)
    log(handler, "Building DAG of jobs...")
    assert "Building DAG" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.1, "5 s"), (42, "40 s"), (58, "1 min"), (361, "6 min"), (9000, "2.5 h")]
)
def test_what_is_left_is_rounded(seconds: float, text: str) -> None:
    assert plugin.duration(seconds) == text
