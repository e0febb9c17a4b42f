"""A step in factors of the time and in warp states, by kernels that follow the model exactly."""

import math

import pytest

from warplog.analysis import decomposition

SMS = 132.0


def kernel(instructions, waits, warps_pct, busy=1.0):
    """Counters of a kernel that follows the model exactly: at most 64 warps per SM, four schedulers."""
    cycles_per_issue = sum(waits.values())
    ipc = 4 * (warps_pct / 100 * 16) / cycles_per_issue
    cycles = instructions / (ipc * SMS * busy)
    return {
        "instructions_executed": instructions,
        "warp_cycles_per_issue": cycles_per_issue,
        "achieved_occupancy_pct": warps_pct,
        "ipc": ipc,
        "gpu_cycles": cycles,
        "duration_us": cycles / 1980,
        **{f"stall_{state}_cycles_per_issue": value for state, value in waits.items()},
    }


def test_the_factors_of_a_known_step_multiply_to_its_ratio():
    before = kernel(4e9, {"selected": 1.0, "long_scoreboard": 19.0}, 100)
    after = kernel(2e9, {"selected": 1.0, "long_scoreboard": 4.0}, 50, busy=0.8)
    times = [before["gpu_cycles"] / 1980, after["gpu_cycles"] / 1800]
    factors = {f.change.name: f.factor for f in decomposition.factors(before, after, (1980, 1800), SMS)}
    assert factors == pytest.approx(
        {
            "ipc": 2.0,
            "instructions_executed": 2.0,
            "sm_busy_pct": 0.8,
            "sm_mhz": 1800 / 1980,
        }
    )
    assert math.prod(factors.values()) == pytest.approx(times[0] / times[1])
    assert set(list(factors)[:2]) == {"ipc", "instructions_executed"}


def test_states_split_the_cycles_without_rest_and_the_largest_comes_first():
    before = kernel(1e9, {"selected": 1.0, "short_scoreboard": 8.0, "barrier": 1.0}, 50)
    after = kernel(1e9, {"selected": 1.0, "short_scoreboard": 1.0, "barrier": 3.0}, 50)
    states = decomposition.states(before, after)
    assert [s.name for s in states] == ["short_scoreboard", "barrier"]
    assert [s.share for s in states] == pytest.approx([0.7, -0.2])
    assert sum(s.before for s in states) == pytest.approx(0.9), "the issue itself did not change"
    assert sum(s.after for s in states) == pytest.approx(after["gpu_cycles"] / before["gpu_cycles"] - 0.1)


def test_evidence_moves_with_its_state_and_is_in_the_tables():
    before = kernel(1e9, {"selected": 1.0, "short_scoreboard": 8.0}, 50)
    after = kernel(1e9, {"selected": 1.0, "short_scoreboard": 1.0}, 50)
    assert decomposition.states(before, after)[0].evidence == ()
    before |= {"shared_wavefronts_excess": 285e6, "l1_shared_wavefronts": 700e6, "inst_lds": 1e8}
    after |= {"shared_wavefronts_excess": 17e6, "l1_shared_wavefronts": 690e6, "inst_lds": 0.98e8}
    proof = decomposition.states(before, after)[0].evidence
    assert [(c.name, c.before, c.after) for c in proof] == [("shared_wavefronts_excess", 285e6, 17e6)]
    after["l1_shared_wavefronts"] = 710e6
    assert decomposition.states(before, after)[0].evidence == (), "there are no fewer wavefronts in all"


def test_a_few_instructions_are_evidence_at_a_barrier_only():
    before = kernel(1e9, {"selected": 1.0, "short_scoreboard": 8.0, "barrier": 8.0}, 50)
    after = kernel(1e9, {"selected": 1.0, "short_scoreboard": 1.0, "barrier": 1.0}, 50)
    counts = {"inst_lds": 1e7, "inst_bar": 1e7, "l1_shared_wavefronts": 1e7}
    before, after = before | counts, after | {name: count / 10 for name, count in counts.items()}
    proof = {
        state.name: [change.name for change in state.evidence]
        for state in decomposition.states(before, after)
    }
    assert (proof["short_scoreboard"], proof["barrier"]) == ([], ["inst_bar"]), "1 % of the instructions"


def test_a_small_move_is_no_evidence_for_a_large_one():
    before = kernel(1e9, {"selected": 1.0, "short_scoreboard": 1.0}, 25) | {"shared_wavefronts_excess": 268e6}
    after = kernel(1e9, {"selected": 1.0, "short_scoreboard": 2.0}, 25) | {"shared_wavefronts_excess": 285e6}
    assert decomposition.states(before, after)[0].evidence == ()
    after["shared_wavefronts_excess"] = 500e6  # half of the change of the state, in logarithms, is enough
    assert len(decomposition.states(before, after)[0].evidence) == 1


@pytest.mark.parametrize(("waves", "told"), [((2.0, 1.1), True), ((2.0, 4.0), False), ((1.2, 1.1), False)])
def test_waves_explain_the_busy_share_where_the_last_one_fills_less_of_the_gpu(waves, told):
    """Two waves fill the GPU, and 1.1 waves fill 55 % of two, as the busy share falls to 55 %."""
    waits = {"selected": 1.0, "barrier": 3.0}
    before, after = (
        kernel(1e9, waits, 50, busy) | {"waves_per_sm": count}
        for busy, count in zip((1.0, 0.55), waves, strict=True)
    )
    by_name = {one.change.name: one for one in decomposition.factors(before, after, (1980, 1980), SMS)}
    expected = (decomposition.Change("waves_per_sm", *waves),) if told else ()
    assert by_name["sm_busy_pct"].evidence == expected
    assert by_name["sm_busy_pct"].factor == pytest.approx(0.55)


def test_a_warp_that_exits_early_changes_no_factor():
    """Three of four warps issue as many instructions in as many cycles as four of which one waits for the end."""
    before = kernel(1e9, {"selected": 1.0, "barrier": 3.0}, 25)
    after = kernel(1e9, {"selected": 1.0, "barrier": 2.0}, 18.75)
    factors = decomposition.factors(before, after, (1980, 1980), SMS)
    assert [one.factor for one in factors] == pytest.approx([1.0] * 4)


def step(ratio, remainder=1.0, others=(math.nan, math.nan), **factors):
    """Returns a step whose longest kernel took 100 us in the parent, with these factors of its time."""
    known = tuple(
        decomposition.Factor(decomposition.Change(name, 1.0, 1.0), factor) for name, factor in factors.items()
    )
    times = {"remainder": remainder, "kernel_us": (100.0, 100.0 / ratio), "others_us": others}
    return decomposition.Step("f", "v", "p", "1", ratio, known, **times)


@pytest.mark.parametrize("power", [1, -1], ids=["gain", "loss"])
def test_counters_explain_a_step_if_they_make_half_of_it_without_the_clock(power):
    assert step(1.5**power, ipc=1.4**power, sm_mhz=1.07**power).explicable
    assert not step(1.5**power, ipc=1.07**power, sm_mhz=1.4**power).explicable
    assert not step(1.5**power, ipc=1.4**-power, sm_mhz=1.07**power).explicable
    assert step(1.02**power, remainder=1.03).is_within_runs
    assert step(1.02**power, remainder=1 / 1.03).is_within_runs
    assert not step(1.03**power, remainder=1.02).is_within_runs


@pytest.mark.parametrize(
    ("ratio", "others", "told"),
    [
        (1.4, (60.0, 10.0), True),
        (1.4, (10.0, 5.0), False),
        (1 / 1.4, (10.0, 60.0), True),
        (1.4, (10.0, 60.0), False),
    ],
)
def test_other_kernels_make_a_step_if_they_change_the_time_by_half_of_it(ratio, others, told):
    """By hand: 160 us become 110 us, which is 1.45 times as fast; of 110 and 105 us it is 1.05 times."""
    assert step(ratio, others=others).is_elsewhere == told
