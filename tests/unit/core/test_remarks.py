"""Remarks about timing are recognised, in the wording of today and of the recorded campaigns."""

import pytest

from warplog.core import remarks

PRESENT = [
    remarks.of_samples(remarks.FEW_SAMPLES, 4),
    remarks.DISCARDED.format(dropped=12, taken=112, mhz=1960.2),
    remarks.HELD_CLOCK.format(mhz=1200.0, full=1980.0),
    remarks.of_samples(remarks.NOT_BLOCKED, 1),
    remarks.HOST_TIME,
]
RECORDED = [
    "1 sample in the 0.6 s allowed",
    "4 samples in the 2 s allowed",
    "10 samples below 1485 MHz",
    "10 samples below 1485 MHz, discarded",
    "12 of 112 launches discarded: clock below 1960 MHz",
]


def test_a_remark_states_numbers_and_units() -> None:
    assert PRESENT[:3] == [
        "only 4 samples",
        "12 of 112 launches discarded: set SM clock below 1960 MHz",
        "clock held at 1200 MHz in spite of pauses",
    ]


def test_the_clock_of_a_recorded_remark_is_named_as_today() -> None:
    assert remarks.in_present_words(f"only 4 samples; {RECORDED[-1]}") == "; ".join(PRESENT[:2])
    assert all(remarks.in_present_words(remark) == remark for remark in PRESENT)


@pytest.mark.parametrize("remark", [*PRESENT, *RECORDED])
def test_remarks_about_timing_are_recognised(remark: str) -> None:
    assert remarks.is_about_timing(remark)


@pytest.mark.parametrize("remark", [remarks.EARLIER_SOURCE, "tuned for 10 samples below 1485 MHz", ""])
def test_other_remarks_do_not_count_as_timing(remark: str) -> None:
    assert not remarks.is_about_timing(remark)
