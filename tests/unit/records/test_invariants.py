"""Times are believed if a check of the same library passed, and if all statistics are those of the samples."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

import made_up_accesses
import made_up_launch
import made_up_records
from made_up_records import LIBRARY, process, run
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.measured import Absent
from warplog.records.requested.accesses import AccessCase, Accesses
from warplog.records.requested.timeline import Timeline
from warplog.records.time import TimeCase
from warplog.records.verification import invariants

OTHER = "c" * 64
MISSING = Absent(status="missing", reason="not there")
# Two processes with the medians 10 and 14: that of the case is 12, whereas that of all samples is 12.5.
COLD = made_up_records.cold([10.0, 9.0, 11.0, 14.0, 13.0, 15.0, 16.0, 12.0], median_us=12.0)
COLD = replace(COLD, rel_spread=3.5 / (1.349 * 12.5))
HOT = made_up_records.hot([8.0, 8.0, 10.0, 10.0])
PROCESSES = (
    process(1, 10.0, 3, hot_us=8.0, sustained=run(20.0)),
    process(2, 14.0, 5, hot_us=10.0, sustained=run(30.0)),
)
SUSTAINED = made_up_records.sustained(25.0)
CASE = made_up_records.time_case("64", COLD, PROCESSES, hot=HOT, sustained=SUSTAINED, seconds=0.5)
TIME = made_up_records.time(CASE)
CHECK = made_up_records.check(0.5)
BUILD = made_up_records.build()


def cold(**changed: Any) -> TimeCase:
    return replace(CASE, cold=replace(COLD, **changed))


def second(**changed: Any) -> TimeCase:
    return replace(CASE, processes=(PROCESSES[0], replace(PROCESSES[1], **changed)))


def test_a_consistent_record_is_believed_as_it_is() -> None:
    assert invariants.believed(made_up_records.valid(TIME), CHECK, BUILD) == TIME


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (cold(median_us=6.0), "cold.median_us is 6, its processes give 12"),
        (cold(q1_us=1.0), "cold.q1_us is 1, its samples give 10.75"),
        (cold(q3_us=99.0), "cold.q3_us"),
        (cold(min_us=0.0), "cold.min_us"),
        (cold(max_us=17.0), "cold.max_us"),
        (cold(mean_us=-5.0), "cold.mean_us"),
        (cold(samples=7), "cold.samples"),
        (cold(samples_us=(9.5, *COLD.samples_us[1:])), "processes give|samples give"),
        (replace(CASE, hot=replace(HOT, median_us=4.5)), "hot.median_us is 4.5, its processes give 9"),
        (second(median_us=12.0), "cold.median_us|processes.2.median_us"),
        (second(samples=2), "its processes have 5 samples, the case has 8"),
        (
            replace(CASE, sustained=replace(SUSTAINED, mean_us=12.5)),
            "sustained.mean_us is 12.5, its processes give 25",
        ),
    ],
)
def test_a_statistic_that_is_not_that_of_the_samples_is_an_error_of_the_case(
    changed: TimeCase, words: str
) -> None:
    other = replace(CASE, case="128")
    believed = invariants.believed(replace(TIME, cases=(changed, other)), CHECK, BUILD)
    bad, good = believed.cases
    assert bad.status == believed.status == "error"
    assert re.search(words, bad.reason)
    assert "time the variant again" in bad.reason
    assert (bad.cold, bad.hot, bad.processes, bad.sustained) == (None, None, (), None)
    assert good == other


def test_processes_are_compared_with_their_own_samples() -> None:
    processes = [
        replace(timed, median_us=us) for timed, us in zip(PROCESSES, (11.0, 13.0), strict=True)
    ]  # their median is still 12
    time = replace(TIME, cases=(replace(CASE, processes=tuple(processes)),))
    assert "processes.1.median_us is 11, its samples give 10" in invariants.believed(time, CHECK).reason


def test_a_time_is_above_zero() -> None:
    case = made_up_records.time_case("64", made_up_records.cold([0.0] * 8), [process(1, 0.0, 8)])
    assert "cold.median_us is 0, not above 0" in invariants.inconsistent(case)


def test_so_is_the_median_of_each_process_but_not_every_sample() -> None:
    def case(*first_us: float) -> TimeCase:
        samples_us = [*first_us, 0.2, 0.2, 0.2]
        medians = [process(1, sorted(first_us)[1], 3), process(2, 0.2, 3)]
        median_us = (sorted(first_us)[1] + 0.2) / 2
        return made_up_records.time_case("64", made_up_records.cold(samples_us, median_us=median_us), medians)

    assert invariants.inconsistent(case(-0.128, 0.1, 0.1)) == ""
    assert invariants.inconsistent(case(-0.1, -0.1, 0.1)) == "processes.1.median_us is -0.1, not above 0"


@pytest.mark.parametrize(
    ("check", "build", "words"),
    [
        (
            replace(CHECK, status="wrong", reason="off by one"),
            BUILD,
            "its check has status wrong: off by one",
        ),
        (MISSING, BUILD, "its check has status missing: not there"),
        (
            replace(CHECK, library_sha256=OTHER),
            None,
            f"its check is of library cccccccccccc, its result of {LIBRARY[:12]}",
        ),
        (CHECK, replace(BUILD, library_sha256=OTHER), "its build made library cccccccccccc"),
    ],
)
def test_there_is_no_time_without_the_passed_check_of_the_same_library(
    check: Check | Absent, build: Build | None, words: str
) -> None:
    believed = invariants.believed(TIME, check, build)
    assert [believed.status, believed.cases[0].status] == ["error", "error"]
    assert words in believed.cases[0].reason
    assert believed.cases[0].cold is None


def test_a_build_of_another_source_says_nothing_about_the_time() -> None:
    edited = replace(BUILD, library_sha256=OTHER, source_sha256=LIBRARY)
    assert invariants.believed(TIME, CHECK, edited) == TIME


@pytest.mark.parametrize(
    "stage",
    [
        made_up_records.timeline(made_up_launch.case_of(made_up_launch.pipelined(), "64")),
        made_up_accesses.accesses(
            AccessCase(
                case="64", status="ok", reason="", max_error_over_tolerance=0.0, kernels=(), instructions=()
            )
        ),
    ],
)
def test_timelines_and_traces_of_another_build_need_the_passed_check_of_their_source(
    stage: Timeline | Accesses,
) -> None:
    other_build = replace(CHECK, library_sha256=OTHER)
    assert invariants.unproven(stage, other_build) == ""
    assert "its check is of library" in invariants.unproven(stage, replace(other_build, source_sha256=OTHER))
    assert "status wrong" in invariants.unproven(stage, replace(CHECK, status="wrong", reason="off by one"))


def test_a_variant_without_results_needs_no_check() -> None:
    skipped = replace(TIME, status="skipped", cases=(TimeCase(case="64", status="skipped", reason="no"),))
    assert invariants.believed(skipped, MISSING) == skipped
