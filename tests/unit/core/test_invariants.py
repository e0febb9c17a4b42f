"""Times are believed if a check of the same library passed, and if all statistics are those of the samples."""

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from warplog.records.verification import invariants

Change = Callable[[Any], object]
LIBRARY, OTHER = "a" * 64, "b" * 64
# Two processes with the medians 10 and 14: that of the case is 12, whereas that of all samples is 12.5.
COLD = {
    "samples_us": [10.0, 9.0, 11.0, 14.0, 13.0, 15.0, 16.0, 12.0],
    **{"median_us": 12.0, "q1_us": 10.75, "q3_us": 14.25, "min_us": 9.0, "max_us": 16.0, "mean_us": 12.5},
    **{"rel_spread": 3.5 / (1.349 * 12.5), "samples": 8},
}
HOT = {
    "samples_us": [8.0, 8.0, 10.0, 10.0],
    **{"median_us": 9.0, "q1_us": 8.0, "q3_us": 10.0, "min_us": 8.0, "max_us": 10.0, "mean_us": 9.0},
    **{"rel_spread": 2.0 / (1.349 * 9.0), "samples": 4},
}
PROCESSES = [
    {"process": 1, "median_us": 10.0, "samples": 3, "hot_us": 8.0, "sustained": {"mean_us": 20.0}},
    {"process": 2, "median_us": 14.0, "samples": 5, "hot_us": 10.0, "sustained": {"mean_us": 30.0}},
]
CASE = {
    **{"case": "64", "status": "ok", "reason": "", "seconds": 0.5},
    **{"cold": COLD, "hot": HOT, "processes": PROCESSES, "sustained": {"mean_us": 25.0}},
}
TIME = {"status": "ok", "reason": "", "library_sha256": LIBRARY, "source_sha256": OTHER, "cases": [CASE]}
CHECK = {"status": "ok", "reason": "", "library_sha256": LIBRARY}
BUILD = {"status": "ok", "library_sha256": LIBRARY, "source_sha256": OTHER}


def test_a_consistent_record_is_believed_as_it_is() -> None:
    assert invariants.believed(TIME, CHECK, BUILD) == TIME


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c["cold"].update(median_us=6.0), "cold.median_us is 6, its processes give 12"),
        (lambda c: c["cold"].update(q1_us=1.0), "cold.q1_us is 1, its samples give 10.75"),
        (lambda c: c["cold"].update(q3_us=99.0), "cold.q3_us"),
        (lambda c: c["cold"].update(min_us=0.0), "cold.min_us"),
        (lambda c: c["cold"].update(max_us=17.0), "cold.max_us"),
        (lambda c: c["cold"].update(mean_us=-5.0), "cold.mean_us"),
        (lambda c: c["cold"].update(samples=7), "cold.samples"),
        (lambda c: c["cold"]["samples_us"].__setitem__(0, 9.5), "processes give|samples give"),
        (lambda c: c["hot"].update(median_us=4.5), "hot.median_us is 4.5, its processes give 9"),
        (lambda c: c["processes"][1].update(median_us=12.0), "cold.median_us|processes.2.median_us"),
        (lambda c: c["processes"][1].update(samples=2), "its processes have 5 samples, the case has 8"),
        (lambda c: c["sustained"].update(mean_us=12.5), "sustained.mean_us is 12.5, its processes give 25"),
    ],
)
def test_a_statistic_that_is_not_that_of_the_samples_is_an_error_of_the_case(
    change: Change, words: str
) -> None:
    time = copy.deepcopy(TIME)
    second = {**copy.deepcopy(CASE), "case": "128"}
    time["cases"].append(second)
    change(time["cases"][0])
    found = invariants.believed(time, CHECK, BUILD)
    bad, good = found["cases"]
    assert bad["status"] == found["status"] == "error"
    assert re.search(words, bad["reason"])
    assert "time the variant again" in bad["reason"]
    assert not {"cold", "hot", "processes", "sustained"} & set(bad)
    assert good == second


def test_processes_are_compared_with_their_own_samples() -> None:
    time = copy.deepcopy(TIME)
    for process, us in zip(time["cases"][0]["processes"], (11.0, 13.0), strict=True):
        process["median_us"] = us  # their median is still 12
    assert "processes.1.median_us is 11, its samples give 10" in invariants.believed(time, CHECK)["reason"]


def test_a_time_is_above_zero() -> None:
    zero = {**COLD, **dict.fromkeys(("median_us", "q1_us", "q3_us", "min_us", "max_us", "mean_us"), 0.0)}
    zero |= {"samples_us": [0.0] * 8, "rel_spread": 0.0}
    assert "cold.median_us is 0, not above 0" in invariants.inconsistent({"cold": zero, "processes": []})


@pytest.mark.parametrize(
    ("check", "build", "words"),
    [
        (
            {**CHECK, "status": "wrong", "reason": "off by one"},
            BUILD,
            "its check has status wrong: off by one",
        ),
        ({"status": "missing", "reason": "not there"}, BUILD, "its check has status missing"),
        (
            {**CHECK, "library_sha256": OTHER},
            None,
            "its check is of library bbbbbbbbbbbb, its result of aaaaaaaaaaaa",
        ),
        (CHECK, {**BUILD, "library_sha256": OTHER}, "its build made library bbbbbbbbbbbb"),
    ],
)
def test_there_is_no_time_without_the_passed_check_of_the_same_library(
    check: dict[str, Any], build: dict[str, Any] | None, words: str
) -> None:
    found = invariants.believed(TIME, check, build)
    assert [found["status"], found["cases"][0]["status"]] == ["error", "error"]
    assert words in found["cases"][0]["reason"]
    assert "cold" not in found["cases"][0]


def test_a_build_of_another_source_says_nothing_about_the_time() -> None:
    edited = {**BUILD, "library_sha256": OTHER, "source_sha256": LIBRARY}
    assert invariants.believed(TIME, CHECK, edited) == TIME


def test_a_variant_without_results_needs_no_check() -> None:
    skipped = {
        **TIME,
        "status": "skipped",
        "cases": [{"case": "64", "status": "skipped", "reason": "no build"}],
    }
    assert invariants.believed(skipped, {"status": "missing", "reason": ""}) == skipped
