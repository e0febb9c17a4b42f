"""Remarks are codes with values, in a cell of a table and back; their words are made from both."""

import pytest

from warplog.core import remarks
from warplog.core.errors import WarplogError

DISCARDED = {"code": "discarded", "dropped": 12, "taken": 112, "below_mhz": 1960.2}


@pytest.mark.parametrize(
    ("remark", "words"),
    [
        ({"code": "few_samples", "samples": 4}, "only 4 samples"),
        ({"code": "few_samples", "samples": 1}, "only 1 sample"),
        (DISCARDED, "12 of 112 launches discarded: set SM clock below 1960 MHz"),
        ({"code": "held_clock", "mhz": 1200.0}, "clock held at 1200 MHz in spite of pauses"),
        ({"code": "not_blocked", "samples": 1}, "1 sample not blocked: the launcher synchronises"),
        ({"code": "not_blocked", "samples": 3}, "3 samples not blocked: the launcher synchronises"),
    ],
)
def test_a_remark_states_numbers_and_units(remark: remarks.Remark, words: str) -> None:
    assert remarks.words(remark) == words


def test_the_counts_of_a_remark_can_be_told_apart_from_its_words() -> None:
    assert remarks.counts(DISCARDED) == (12, 112)
    assert remarks.uncounted(DISCARDED) == "launches discarded: set SM clock below 1960 MHz"
    assert remarks.uncounted({"code": "not_blocked", "samples": 1}).startswith("samples not blocked")


def test_remarks_come_back_from_the_cell_of_a_table() -> None:
    assert remarks.read(remarks.cell([DISCARDED, {"code": "host_time"}])) == (
        DISCARDED,
        {"code": "host_time"},
    )
    assert remarks.cell([]) == ""
    assert [remarks.read(empty) for empty in ("", None, float("nan"))] == [(), (), ()]


@pytest.mark.parametrize("cell", ["only 4 samples", "{}", '["few_samples"]', '[{"samples": 4}]', "[" * 1000])
def test_a_cell_that_holds_no_remarks_is_refused_by_name(cell: str) -> None:
    with pytest.raises(WarplogError, match="is not a list of remarks; make the tables again"):
        remarks.read(cell)


def test_limits_come_from_a_cell_or_are_refused_by_name() -> None:
    assert remarks.own_limits('{"M": 8192}') == {"M": 8192}
    assert [remarks.own_limits(empty) for empty in ("", None, float("nan"))] == [{}, {}, {}]
    for cell in ("M at most 8192", "[]", '{"M": "many"}'):
        with pytest.raises(WarplogError, match="holds no limits"):
            remarks.own_limits(cell)


@pytest.mark.parametrize(
    "remark", [{"code": "unheard"}, {"code": "held_clock"}, {"code": "held_clock", "mhz": "a"}]
)
def test_an_unknown_remark_is_an_error_and_no_blank(remark: remarks.Remark) -> None:
    with pytest.raises(WarplogError, match="is not a known remark"):
        remarks.words(remark)


def test_every_code_about_timing_has_words() -> None:
    assert set(remarks.WORDS) >= remarks.ABOUT_TIMING | set(remarks.COUNTS)
