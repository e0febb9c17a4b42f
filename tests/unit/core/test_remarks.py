"""Remarks are codes with values, in a cell of a table and back; their words are made from both."""

from typing import get_args

import pytest

from warplog.core.columns import MEASUREMENTS
from warplog.core.errors import WarplogError
from warplog.records import remarks
from warplog.records.remarks import Discarded, FewSamples, HeldClock, HostTime, NotBlocked, NotReported

DISCARDED = Discarded(dropped=12, taken=112, below_mhz=1960.2)


@pytest.mark.parametrize(
    ("remark", "words"),
    [
        (FewSamples(samples=4), "only 4 samples"),
        (FewSamples(samples=1), "only 1 sample"),
        (DISCARDED, "12 of 112 launches discarded: set SM clock below 1960 MHz"),
        (HeldClock(mhz=1200.0), "clock held at 1200 MHz in spite of pauses"),
        (HeldClock(mhz=None), "clock held in spite of pauses"),
        (NotReported(readings=("power_w",)), "not reported by the driver: power"),
        (NotReported(readings=("sm_mhz", "power_w")), "not reported by the driver: SM clock, power"),
        (NotBlocked(samples=1), "1 sample not blocked: the launcher synchronises"),
        (NotBlocked(samples=3), "3 samples not blocked: the launcher synchronises"),
    ],
)
def test_a_remark_states_numbers_and_units(remark: remarks.Remark, words: str) -> None:
    assert remark.words() == words


def test_the_counts_of_a_remark_can_be_told_apart_from_its_words() -> None:
    assert DISCARDED.counts() == (12, 112)
    assert DISCARDED.uncounted() == "launches discarded: set SM clock below 1960 MHz"
    assert NotBlocked(samples=1).uncounted().startswith("samples not blocked")


def test_remarks_come_back_from_the_cell_of_a_table() -> None:
    assert remarks.read(remarks.cell([DISCARDED, HostTime()])) == (DISCARDED, HostTime())
    assert remarks.cell([]) == ""
    assert [remarks.read(empty) for empty in ("", None, float("nan"))] == [(), (), ()]


@pytest.mark.parametrize(
    ("cell", "misfit"),
    [
        ("only 4 samples", "Expecting value"),
        ("{}", "expected a list"),
        ('["few_samples"]', "0: expected a mapping"),
        ('[{"samples": 4}]', "0: "),
        ("[" * 1000, "recursion"),
        ('[{"code": "unheard"}]', "0.code: 'unheard' is not one of discarded, "),
        ('[{"code": "host_time"}, {"code": "held_clock"}]', "1: the required key 'mhz' is missing"),
        ('[{"code": "held_clock", "mhz": "a"}]', "0.mhz: expected a number or no value, got 'a'"),
        ('[{"code": "few_samples", "sample": 4}]', "unknown key 'sample'; did you mean 'samples'?"),
    ],
)
def test_a_cell_that_holds_no_known_remarks_is_refused_by_name(cell: str, misfit: str) -> None:
    with pytest.raises(WarplogError) as refused:
        remarks.read(cell)
    assert str(refused.value).startswith(repr(cell[:80]))
    assert misfit in str(refused.value)
    assert str(refused.value).endswith("; make the tables again")


def test_limits_come_from_a_cell_or_are_refused_by_name() -> None:
    assert str(remarks.own_limits('{"M": 8192}')) == "{'M': 8192}"
    assert [remarks.own_limits(empty) for empty in ("", None, float("nan"))] == [{}, {}, {}]
    for cell in ("M at most 8192", "[]", '{"M": "many"}'):
        with pytest.raises(WarplogError, match="make the tables again"):
            remarks.own_limits(cell)


def test_the_dictionary_of_columns_names_every_code() -> None:
    for column, union in (("remarks", remarks.Remark), ("agreement_notes", remarks.Note)):
        codes = ", ".join(kind.__struct_config__.tag for kind in get_args(union))
        assert MEASUREMENTS[column].meaning.endswith(codes)
