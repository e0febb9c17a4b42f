"""What a child saves of its parent's time: an example by hand, and what must hold of any."""

import math
from dataclasses import replace

import pytest

from made_up_work import gpu, work
from warplog.analysis.mechanisms.model import Calibration, fit, predict
from warplog.analysis.mechanisms.units import unit_times
from warplog.analysis.verdicts import EXACT, Noise, Timed

MODEL = Calibration(4.0, 0.2)
QUIET = gpu(block_life_ns=0.0, block_starts_per_us=1e12, warp_starts_per_us=1e12)
SLOW, FAST = [work(dram_read=6e9)], [work(dram_read=3e9)]  # 2000 and 1000 us


def test_the_child_reaches_as_much_of_its_units_as_the_parent():
    """2502 us are a launch and 1.25 times what device memory takes; so are the child's 1252."""
    found = predict(SLOW, FAST, Timed(2502, EXACT), QUIET, MODEL)
    assert found.saved_us == pytest.approx(1250)
    assert (found.low_us, found.high_us) == pytest.approx((1000, 1500))
    assert found.shares == pytest.approx({"dram": 1250})
    assert found.speedup == pytest.approx(2502 / 1252)
    assert found.speedup_interval == pytest.approx((2502 / 1502, 2502 / 1002))


def test_what_holds_up_a_unit_is_not_carried_over_to_another():
    """The parent takes twice as long as device memory: nothing is known of how long the child's products take."""
    other = [work(pipe_cycles={"tensor": 1e6})]  # 1000 us
    found = predict(SLOW, other, Timed(4002, EXACT), QUIET, MODEL)
    assert found.saved_us == pytest.approx(3000)


def test_less_work_does_not_take_longer_whatever_held_up_the_parent():
    other = [work(pipe_cycles={"tensor": 2.5e6})]
    assert predict(SLOW, other, Timed(8002, EXACT), QUIET, MODEL).saved_us == pytest.approx(-2000)


def test_a_child_is_not_faster_than_its_busiest_unit():
    """Products hide behind device memory in the parent, which thus takes less than both; nothing hides that itself."""
    both = [work(pipe_cycles={"tensor": 2e6}, dram_read=6e9)]
    found = predict(both, SLOW, Timed(2012, EXACT), QUIET, MODEL)
    assert found.saved_us == pytest.approx(10)


def test_a_child_may_beat_a_ceiling_as_much_as_its_parent_does():
    assert predict(SLOW, FAST, Timed(1602, EXACT), QUIET, MODEL).saved_us == pytest.approx(800)


def test_each_kernel_costs_a_launch_and_its_own_units():
    halves = [work(dram_read=3e9), work(dram_read=3e9)]
    found = predict(halves, SLOW, Timed(2504, EXACT), QUIET, MODEL)
    assert found.saved_us == pytest.approx(2)
    assert found.shares == pytest.approx({"launches": 2})
    assert predict(SLOW, halves, Timed(2502, EXACT), QUIET, MODEL).saved_us == pytest.approx(-2)


def test_units_share_a_saving_by_what_they_contribute():
    before = [work(dram_read=6e9, instructions=4e8, l1_wavefronts=1e8)]
    after = [work(dram_read=3e9, instructions=6e8, l1_wavefronts=1e8)]
    found = predict(before, after, Timed(2502, EXACT), QUIET, MODEL)
    assert sum(found.shares.values()) == pytest.approx(found.saved_us)
    assert found.shares["dram"] > found.saved_us > 0 > found.shares["issue"]
    assert "l1" not in found.shares


def test_no_unit_saves_more_than_its_change_while_others_may():
    """Atomics on one address take most of the time, beside waits for loads, which come on top of all units."""
    before = [work(dram_read=3e8, same_address=6e5, loads=4e6, load_sectors=16e6, in_flight=1)]
    after = [work(dram_read=3e8, same_address=4e2, loads=4e6, load_sectors=16e6, in_flight=4)]
    on = gpu(block_life_ns=0.0, block_starts_per_us=1e12, warp_starts_per_us=1e12)
    found = predict(before, after, Timed(702, EXACT), on, MODEL)
    parts = [unit_times(*launch, on) for launch in (before, after)]
    assert found.shares["waits"] == pytest.approx(parts[0]["waits"] - parts[1]["waits"])
    assert sum(found.shares.values()) == pytest.approx(found.saved_us)


def test_kernels_that_are_gone_save_what_they_took_and_the_others_what_changed_in_them():
    """Of a launch without its passes over memory, the product took four percent more cycles of its pipe."""
    product = work(pipe_cycles={"tensor": 150e3}, dram_read=90e6)
    passing = work(dram_read=90e6)
    noisy = replace(product, pipe_cycles={"tensor": 156e3})
    found = predict([product, passing, passing], [noisy], Timed(230, EXACT), gpu(), MODEL)
    rest = found.saved_us - found.shares["launches"]
    assert found.shares["dram"] == pytest.approx(rest * 60 / 54, rel=0.02)
    assert found.shares["tensor"] == pytest.approx(-rest * 6 / 54, rel=0.02)


def test_the_interval_has_the_spread_of_the_parents_time_and_of_the_ceilings():
    exact = Calibration(4.0, 0.0)
    noise = Noise(0.01)
    found = predict(SLOW, FAST, Timed(2502, noise), QUIET, exact)
    assert found.high_us - found.saved_us == pytest.approx(noise.gap() * 2502 / 2, rel=1e-3)
    two = [work(dram_read=6e9, l1_wavefronts=2e8)], [work(dram_read=3e9, l1_wavefronts=2e8)]
    spread = gpu(block_life_ns=0.0, block_starts_per_us=1e12, warp_starts_per_us=1e12, spread=0.1)
    certain, uncertain = (predict(*two, Timed(2502, EXACT), on, exact) for on in (QUIET, spread))
    assert certain.low_us == certain.saved_us == uncertain.saved_us == certain.high_us
    assert uncertain.low_us < uncertain.saved_us < uncertain.high_us


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (SLOW, FAST),
        ([work(instructions=8e8, dram_read=3e9)], [work(instructions=4e8, dram_read=4e9)]),
        ([work(fences=80_000), work(dram_read=1e9)], [work(dram_read=1e9)]),
    ],
)
def test_swapping_parent_and_child_turns_a_saving_into_a_loss(before, after):
    us = Timed(5000, EXACT)
    saving, loss = predict(before, after, us, gpu(), MODEL), predict(after, before, us, gpu(), MODEL)
    assert saving.saved_us > 0 > loss.saved_us
    assert all(loss.shares[unit] * saved < 0 for unit, saved in saving.shares.items())


def test_if_everything_takes_three_times_as_long_so_does_the_saving():
    slower = [[replace(each, mhz=each.mhz / 3) for each in launch] for launch in (SLOW, FAST)]
    found = predict(SLOW, FAST, Timed(2502, EXACT), gpu(), MODEL)
    scaled = predict(*slower, Timed(3 * 2502, EXACT), gpu(scale=3), MODEL)
    assert scaled.saved_us == pytest.approx(3 * found.saved_us)
    assert (scaled.low_us, scaled.high_us) == pytest.approx((3 * found.low_us, 3 * found.high_us))


def test_the_same_work_saves_nothing():
    found = predict(SLOW, list(SLOW), Timed(2502, EXACT), gpu(spread=0.1), MODEL)
    assert found.saved_us == pytest.approx(0)
    assert found.shares == {}


def test_nothing_is_predicted_of_a_parent_whose_work_is_unknown():
    assert predict([], FAST, Timed(2502, EXACT), gpu(), MODEL) is None
    assert predict([work()], FAST, Timed(2502, EXACT), replace(QUIET, ceilings={}), MODEL) is None


def test_power_and_error_are_fitted_to_pairs():
    def pair(power, read):
        sides = [work(dram_read=read, l1_wavefronts=2e8), work(dram_read=3e9, l1_wavefronts=2e8)]
        times = [((each.dram_read / 3e6) ** power + 2000**power) ** (1 / power) + 2 for each in sides]
        return ([sides[0]], [sides[1]], *(Timed(us, EXACT) for us in times))

    found = fit([pair(3.0, read) for read in (4e9, 6e9, 9e9)], QUIET, (2.0, 3.0, 4.0, 6.0))
    assert found.power == 3
    assert found.error == pytest.approx(0, abs=1e-9)
    mixed = fit([*(pair(3.0, read) for read in (4e9, 5e9, 6e9)), pair(6.0, 9e9)], QUIET, (2.0, 3.0, 6.0))
    assert mixed.power == 3
    assert 0.01 < mixed.error < 1, "that of the pair which fits worst"
    assert math.isinf(fit([], QUIET, (2.0, 3.0)).error)


@pytest.mark.parametrize(("multicasts", "saved_us"), [(True, 300), (False, 600)])
def test_sms_receive_by_multicast_what_they_asked_for_one_by_one(multicasts, saved_us):
    """800 us of L2, of which 200 are left; ports between it and SMs take 500 for all that they receive."""
    before = [work(l2_requests=25e6, l2_sectors=160e6)]
    after = [work(l2_requests=6.25e6, l2_sectors=40e6, multicasts=multicasts)]
    found = predict(before, after, Timed(802, EXACT), QUIET, MODEL)
    assert found.saved_us == pytest.approx(saved_us)
