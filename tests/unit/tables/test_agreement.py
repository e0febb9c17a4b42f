"""Our times compared with the profilers': at rest with ncu, hot with nsys, within the range of the processes."""

from typing import Any

import pytest

from warplog.records.remarks import agreement_words
from warplog.tables.agreement import agreement, other_pass


def in_words(*args: Any, **kwargs: Any) -> str:
    """Returns the verdict and the notes in words."""
    verdict = agreement(*args, **kwargs)
    return f"{verdict.code}: {agreement_words(verdict.notes)}" if verdict.notes else verdict.code


@pytest.mark.parametrize(
    ("own_us", "profiler_us", "agrees"),
    [
        (1030.9, 1000.0, True),
        (1031.1, 1000.0, False),
        (969.1, 1000.0, True),
        (968.9, 1000.0, False),
        (3.05, 2.0, True),
        (3.1, 2.0, False),
    ],
)
def test_times_agree_within_three_percent_and_a_microsecond(
    own_us: float, profiler_us: float, agrees: bool
) -> None:
    at_rest = in_words([own_us], [], profiler_us, None)
    hot = in_words([1.0], [own_us], None, profiler_us)
    assert at_rest == ("ok" if agrees else f"disagree: rest {own_us:.4g} us, ncu {profiler_us:.4g} us")
    assert hot == ("ok" if agrees else f"disagree: hot {own_us:.4g} us, nsys {profiler_us:.4g} us")


def test_a_profiler_may_lie_anywhere_between_the_processes() -> None:
    """The addresses of a kernel's arrays give it either of two times; the profiled process has its own."""
    assert in_words([356.0, 375.0, 356.5], [], 366.0, None) == "ok"
    assert in_words([356.0, 375.0], [350.0, 372.0], 390.0, 361.0) == (
        "disagree: rest 356 to 375 us, ncu 390 us"
    )


def test_nothing_to_compare_is_empty() -> None:
    assert in_words([100.0], [90.0], None, None) == ""
    assert in_words([100.0], [], None, 90.0) == "", "the case has no hot time"


def test_both_comparisons_are_told() -> None:
    words = in_words([100.0], [90.0], 200.0, 300.0)
    assert words == "disagree: rest 100 us, ncu 200 us; hot 90 us, nsys 300 us"


def test_several_kernels_are_not_compared_with_ncu_which_flushes_before_each() -> None:
    note = ": (ncu not compared: 2 kernels per launch, each after a flush)"
    assert in_words([1000.0], [], 1200.0, None, kernels=2) == note
    assert in_words([1000.0], [990.0], 1200.0, 991.0, kernels=2) == f"ok{note}"


def test_each_kernel_of_a_launch_adds_a_microsecond_of_tolerance() -> None:
    assert in_words([12.0], [12.9], None, 10.0, kernels=3).startswith("ok")
    assert in_words([12.0], [12.9], None, 10.0, kernels=1).startswith("disagree")


def test_a_kernel_that_tracing_slows_down_is_not_called_wrong() -> None:
    """Events in the same process as nsys measured what nsys did; without nsys the kernel is faster."""
    assert in_words([100.0], [90.0], 100.0, 120.0, traced_us=121.0) == (
        "ok: (tracing changes the time: hot 90 us, nsys 120 us, events under nsys 121 us)"
    )
    words = in_words([100.0], [90.0], 100.0, 120.0, traced_us=90.5)
    assert words == "disagree: hot 90 us, nsys 120 us", "nsys itself is the one that differs"


def test_a_profiler_on_another_board_is_not_compared() -> None:
    far = in_words([100.0], [100.0], 150.0, 100.0, elsewhere=["ncu"])
    assert far == "ok: (ncu not compared: captured on another board)"
    assert in_words([100.0], [], 150.0, None, elsewhere=["ncu"]).startswith(": (ncu not compared")


def test_a_kernel_whose_time_varies_between_the_passes_of_ncu_is_compared_with_each() -> None:
    """One more row than two blocks per SM: 299 us, or 321 if its block is placed badly, as in ncu's first pass."""
    other = other_pass(321.056, 635210.0, 1840.15)
    assert other == pytest.approx(298.6, abs=0.05)
    assert in_words([299.1, 300.2], [], 321.056, None, other_pass_us=other) == (
        "ok: (the time varies in ncu: rest 299.1 to 300.2 us, passes of ncu 321.1 and 298.6 us)"
    )
    words = in_words([280.0], [], 321.056, None, other_pass_us=other)
    assert words == "disagree: rest 280 us, ncu 321.1 us", "neither pass agrees"
