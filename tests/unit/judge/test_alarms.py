"""Which SLOWER is an alarm, and what becomes of a row if both sides are swapped; all numbers are known by hand."""

import math
from dataclasses import replace

import pytest
from process_drift import CONDITIONS

from warplog.analysis.verdicts import FASTER, SLOWER, Noise, Timed
from warplog.judge.comparison import IN_CYCLES, NO_CLOCKS, NOT_IN_CYCLES, Comparison, compare, counted
from warplog.judge.samples import Campaign, Measured, Samples

NOISE = Noise(0.003)
FLOOR = math.expm1(3.0902 * 0.003 * math.sqrt(2))  # 1.3 %
OPPOSITE = {"FASTER": "SLOWER", "SLOWER": "FASTER", "MORE": "LESS", "LESS": "MORE"}


def ran(
    us, mhz=1980.0, source="edited", nvcc="13.0", board="GPU-0", processes=(0.999, 1.0, 1.001), **counters
):
    """Returns a case that takes `us` in one process and somewhat less and more in two others."""
    samples = [Samples((us * one,) * 3, None if mhz is None else (mhz,) * 3) for one in processes]
    remarks = {"gpu_uuid": board, "nvcc": nvcc, "cuda_runtime": "13.0"}
    times = {"rest": Timed(us, NOISE)}
    return Measured("ok", "", CONDITIONS, remarks, tuple(samples), (), counters, source, times)


def compared(before: Measured, after: Measured, others: int = 0) -> Comparison:
    """Compares a case, beside others of edited code with equal times."""
    sides = []
    for one, source in ((before, "old"), (after, "edited")):
        cases = {("f", f"other{number}", "c"): ran(50.0, source=source) for number in range(others)}
        sides.append(Campaign("made up", {("f", "v", "c"): one, **cases}))
    return compare(*sides)


@pytest.mark.parametrize(
    ("after", "alarms"),
    [
        (ran(105.0), 1),
        (ran(105.0, source="old"), 0),
        (ran(105.0, source="old", nvcc="13.1"), 1),
        (ran(105.0, board="GPU-1"), 0),
        (ran(105.0, mhz=1980.0 / 1.05), 0),
        (ran(105.0, mhz=None), 0),
        (ran(105.0, processes=(0.952, 1.0, 1.001)), 0),
        (ran(100.0 * (1 + FLOOR) * 0.9999), 0),
        (ran(95.0), 0),
    ],
    ids=[
        "slower",
        "same build",
        "other compiler",
        "other board",
        "clock",
        "no clock",
        "one process",
        "floor",
        "faster",
    ],
)
def test_an_alarm_is_slower_edited_code_in_cycles_in_every_process_on_the_same_board(after, alarms):
    """In one of the three processes, the code takes 99.96 us after and 100.1 us before."""
    found = compared(ran(100.0, source="old"), after)
    assert (len(found.alarms), found.status) == (alarms, alarms)


def test_among_many_pairs_only_a_less_likely_gap_is_an_alarm_and_the_verdict_stays():
    """The gap is shown with a probability of 0.0014, which is below 0.05 / 20 and above 0.05 / 60."""
    pair = ran(100.0, source="old"), ran(100.0 * (1 + FLOOR) * 1.0005)
    few, many = compared(*pair, others=19), compared(*pair, others=59)
    assert few.rows[0] == many.rows[0]
    assert few.rows[0].verdict.p == pytest.approx(0.0014, abs=1e-4)
    assert (few.rows[0].word, len(few.alarms), len(many.alarms)) == (SLOWER, 1, 0)
    same_code = replace(pair[0], source="same")
    beside = Campaign("made up", {("f", f"v{number}", "c"): same_code for number in range(59)})
    sides = [replace(beside, cases={**beside.cases, ("f", "v", "c"): one}) for one in pair]
    assert len(compare(*sides).alarms) == 1, "cases of the same build count for nothing"


@pytest.mark.parametrize(
    ("us", "mhz", "word", "clock"),
    [
        (105.0, 1980.0, SLOWER, IN_CYCLES),
        (105.0, 1980.0 * 0.96, SLOWER, NOT_IN_CYCLES),  # 0.8 % more cycles are below the floor
        (105.0, 1980.0 * 0.97, SLOWER, IN_CYCLES),
        (105.0, None, SLOWER, NO_CLOCKS),
        (95.0, 1980.0, FASTER, IN_CYCLES),
        (95.0, 1980.0 / 0.95, FASTER, NOT_IN_CYCLES),
        (95.0, 1980.0 * 1.1, FASTER, NOT_IN_CYCLES),
    ],
)
def test_swapped_sides_have_the_opposite_verdict_on_times_and_counters(us, mhz, word, clock):
    before = ran(100.0, source="old", instructions_executed=1e9)
    after = ran(us, mhz, instructions_executed=1.5e9)
    there, back = compared(before, after).rows[0], compared(after, before).rows[0]
    assert (there.word, there.clock, there.counters, there.apart) == (word, clock, "MORE", True)
    assert (back.word, back.clock, back.counters, back.apart) == (OPPOSITE[word], clock, "LESS", True)
    assert there.verdict.ratio == pytest.approx(us / 100)
    assert back.verdict.ratio == pytest.approx(100 / us)
    assert (back.verdict.low, back.verdict.high) == pytest.approx(
        (1 / there.verdict.high, 1 / there.verdict.low)
    )
    assert (back.verdict.floor, back.verdict.p) == pytest.approx((there.verdict.floor, there.verdict.p))


def test_conditions_that_nobody_knows_are_refused_and_a_comparison_needs_one_pair():
    known, unknown = ran(100.0), replace(ran(100.0), conditions={**CONDITIONS, "clocks": "unknown"})
    refused = compared(unknown, unknown)
    assert (refused.rows[0].word, refused.status) == ("REFUSED", 1)
    assert "clocks differs or is unknown" in refused.rows[0].reason
    assert compared(unknown, unknown, others=1).status == 0
    assert compared(known, known).status == 0


def test_little_traffic_is_no_change_unless_it_becomes_much():
    assert counted({"dram_bytes": 2e5}, {"dram_bytes": 9e5}) == ("SAME", ())
    assert counted({"dram_bytes": 9e5}, {"dram_bytes": 4e6})[0] == "MORE"
    assert counted({"dram_bytes": 4e6}, {"dram_bytes": 9e5})[0] == "LESS"


def test_cycles_are_those_of_the_median_process_and_unknown_if_one_process_has_no_clocks():
    """The clock differs from launch to launch: 10 us at 2 GHz are as many cycles as 20 us at 1 GHz."""
    clocked, blind = Samples((10.0, 20.0), (2000.0, 1000.0)), Samples((10.0, 20.0))
    assert clocked.median_cycles == 20_000
    one = replace(ran(15.0), processes=(clocked, clocked, Samples((30.0,), (1000.0,))))
    assert (one.cycles, one.numbers()) == (20_000, (15.0, 15.0, 30.0))
    assert replace(one, processes=(clocked, blind)).cycles is None
