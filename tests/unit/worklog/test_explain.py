"""Why a variant is faster: known decompositions, the recorded ladder, and sentences without counters."""

import math
import re
from dataclasses import replace

import pytest

import figure_tables
from warplog.analysis import decomposition
from warplog.worklog import explain, sentences, step_tables

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


@pytest.fixture(scope="module")
def found(recorded):
    return {step.variant: step for step in explain.Explanation(recorded).steps}


def test_a_state_is_told_by_the_time_spent_in_it_and_not_by_that_per_instruction():
    """Half as many instructions halve the time in a state in which each instruction waits as long as before."""
    before = kernel(2e9, {"selected": 1.0, "long_scoreboard": 9.0}, 50)
    after = kernel(1e9, {"selected": 1.0, "long_scoreboard": 9.0}, 50)
    assert _told_states(before, after)[0] == (
        "Waiting for data from global or local memory (long_scoreboard): 2152 → 1076 µs."
    )


def test_the_largest_states_of_both_signs_are_told_and_issuing_like_the_others():
    before = kernel(
        1e9, {"selected": 30.0, "not_selected": 20.0, "short_scoreboard": 40.0, "barrier": 0.0}, 50
    )
    after = kernel(1e9, {"selected": 1.0, "not_selected": 1.0, "short_scoreboard": 4.0, "barrier": 14.0}, 50)
    assert _told_states(before, after) == [
        "Issuing or ready: 5978 → 239 µs.",
        "Waiting for data from shared memory or a special function (short_scoreboard): 4783 → 478 µs.",
        "Waiting for a barrier (barrier): 0 → 1674 µs.",
    ]
    fewer = kernel(5e8, {"selected": 30.0, "not_selected": 20.0, "short_scoreboard": 40.0}, 50)
    assert _told_states(before, fewer)[0] == (
        "Issuing or ready: 5978 → 2989 µs; instructions fell as well."
    ), "the factors have told how many"


def test_a_counter_that_changed_along_with_two_states_is_given_once():
    fewer = decomposition.Change("shared_wavefronts_excess", 285e6, 17e6)
    states = (
        decomposition.StateChange("short_scoreboard", 0.4, 0.1, (fewer,)),
        decomposition.StateChange("mio_throttle", 0.3, 0.1, (fewer,)),
    )
    faster = decomposition.Factor(decomposition.Change("ipc", 1.0, 1.5), 1.5)
    step = decomposition.Step("f", "b", "a", "1", 1.5, (faster,), states, 1.0, kernel_us=(100.0, 67.0))
    assert explain.sentence(step).count("285 M → 17 M") == 1
    assert explain.sentence(step).endswith(
        "(mio_throttle): 30 → 10 µs; excess shared wavefronts fell as well."
    )
    assert sentences.values_told(step) == {"ipc", "short_scoreboard", "mio_throttle", fewer.name}
    assert sentences.values_told(replace(step, ratio=1.0, tied=True)) == set()


def test_the_values_that_a_step_has_told_are_those_of_its_sentences(recorded, page):
    """Neither a counter nor a wait stands in both paragraphs of a step."""
    for one in page.rungs:
        story, limits = " ".join(one.story), " ".join(one.limits)
        if "Less " in story or not story:
            continue
        for unit, used in re.findall(r"(?:Utilisation: |and )([\w/' ]+) [\d.]+ % → ([\d.]+) %", story):
            assert f"{unit}, at {used} %" not in limits, one.name
        for value in re.findall(r"device memory [\d.]+ \w+ → ([\d.]+ \w+)", story):
            assert value not in limits, one.name
        for state in re.findall(r"\((\w+)\): [\d.]+ → ", story):
            assert f"The largest stall is {state}" not in limits or "waiting for" not in limits, one.name


def _told_states(before, after):
    """The sentences about the states of a step from `a` to `b`."""
    factors = decomposition.factors(before, after, (1980, 1980), SMS)
    states = decomposition.states(before, after)
    kernels = before["duration_us"], after["duration_us"]
    return sentences._states(decomposition.Step("f", "b", "a", "1", 2.0, factors, states, kernel_us=kernels))


def test_a_loss_is_not_told_by_what_it_saves_nor_a_gain_by_what_it_costs():
    fewer = decomposition.Factor(decomposition.Change("instructions_executed", 200.0, 100.0), 2.0)
    states = (decomposition.StateChange("no_instruction", 0.11, 0.05, ()),)
    loss = decomposition.Step("f", "b", "a", "1", 0.9, (replace(fewer, factor=0.9),), states, 1.0)
    assert explain.sentence(loss).endswith("(0.900x).")
    assert not any("no_instruction" in reason for reason in sentences.brief(loss))
    busy = decomposition.Factor(decomposition.Change("sm_busy_pct", 99.0, 98.0), 0.995)
    loss = decomposition.Step("f", "b", "a", "1", 0.994, (busy, replace(fewer, factor=1.0)), (), 1.0)
    assert explain.sentence(loss) == "Takes 1.01x the time of a."


def test_a_tied_step_says_which_states_offset_which():
    states = tuple(
        decomposition.StateChange(name, *shares, ())
        for name, shares in (("barrier", (0.6, 0.1)), ("long_scoreboard", (0.1, 0.55)), ("wait", (0.2, 0.21)))
    )
    step = decomposition.Step("f", "b", "a", "1", 1.001, (), states, 1.0, tied=True, kernel_us=(200.0, 200.0))
    assert explain.sentence(step) == (
        "As fast as a within noise (1.001x). Less time in barrier (waiting for a barrier): 120 → 20 µs; more in"
        " long_scoreboard (waiting for data from global or local memory): 20 → 110 µs."
    )
    assert explain.sentence(replace(step, states=states[2:])) == "As fast as a within noise (1.001x)."
    several = tuple(decomposition.StateChange(name, 0.1, 0.14, ()) for name in ("wait", "drain"))
    several = (decomposition.StateChange("barrier", 0.2, 0.1, ()), *several)
    assert explain.sentence(replace(step, states=several)).endswith(
        "; more in wait (waiting for a fixed-latency dependency): 20 → 28 µs"
        " and drain (waiting for stores to drain): 20 → 28 µs."
    )


def test_issuing_and_ready_warps_are_one_state_that_saves_time_like_the_others():
    before = kernel(1e9, {"selected": 1.0, "not_selected": 5.0, "barrier": 4.0}, 50)
    after = kernel(1e9, {"selected": 1.0, "not_selected": 1.0, "barrier": 4.0}, 25)
    states = decomposition.states(before, after)
    assert {one.name for one in states} == {"issuing_or_ready", "barrier"}
    step = decomposition.Step("f", "b", "a", "1", 2.0, (), states, kernel_us=(100.0, 120.0))
    table = step_tables.state_table([step], key=False)
    assert [row[1:4] for row in table.rows if row[0] == "issuing or ready"] == [("20.0", "60.0", "40.0")]


@pytest.mark.parametrize(
    ("kernel_us", "cells"),
    [
        (2.0, ("−0.67", "0.33", "1.00")),
        (293.2, ("−97.7", "48.9", "146.6")),
        (36000.0, ("−12000", "6000", "18000")),
    ],
)
def test_times_of_states_have_one_number_of_digits_and_add_up(kernel_us, cells):
    state = decomposition.StateChange("barrier", 1 / 6, 0.5, ())
    step = decomposition.Step("f", "b", "a", "1", 2.0, (), (state,), kernel_us=(kernel_us, kernel_us / 2))
    assert step_tables.state_table([step], key=False).rows[0][1:4] == cells


def test_a_step_reads_as_a_sentence():
    before = kernel(1e9, {"selected": 1.0, "short_scoreboard": 4.0}, 25) | {"shared_wavefronts_excess": 285e6}
    after = kernel(1e9, {"selected": 1.0, "short_scoreboard": 3.0}, 25) | {"shared_wavefronts_excess": 17e6}
    step = decomposition.Step(
        *("sgemm", "warptile", "vectorized", "4096", 1.25),
        decomposition.factors(before, after, (1980, 1980), SMS),
        decomposition.states(before, after),
        remainder=1.0,
        kernel_us=(before["duration_us"], after["duration_us"]),
    )
    assert explain.sentence(step) == (
        "1.25x as fast as vectorized. Factors in its favour: instructions per cycle 3.2 → 4 (1.25x)."
        " Waiting for data from shared memory or a special function (short_scoreboard): 957 → 717 µs; excess shared"
        " wavefronts (285 M → 17 M) fell as well."
    )


def test_the_opcodes_that_went_are_named_with_the_instructions():
    mix = {"inst_iadd3": 3e9, "inst_ldg": 1e9, "inst_mov": 1e8, "inst_ffma": 2e9, "inst_lds": 0.0}
    before = kernel(8e9, {"selected": 1.0, "wait": 1.0}, 50) | mix
    after = kernel(4e9, {"selected": 1.0, "wait": 1.0}, 50) | mix
    after |= {"inst_iadd3": 1e8, "inst_ldg": 3e7, "inst_lds": 1e8}
    first = decomposition.factors(before, after, (math.nan, math.nan), SMS)[0]
    assert [change.name for change in first.evidence] == ["inst_iadd3", "inst_ldg"]
    step = decomposition.Step("f", "b", "a", "1", 2.0, (first,), (), 1.0)
    told = explain.sentence(step)
    evidence = "IADD3 instructions 3 G → 100 M and LDG instructions 1 G → 30 M"
    assert f"Factors in its favour: instructions 8 G → 4 G (2.00x, mainly {evidence})." in told
    before["instructions_executed"] = 12e9
    first = decomposition.factors(before, after, (math.nan, math.nan), SMS)[0]
    step = decomposition.Step("f", "b", "a", "1", 3.0, (first,), (), 1.0)
    assert "(3.00x, including IADD3 instructions 3 G → 100 M)" in explain.sentence(step), (
        "they are less than half of the change"
    )


@pytest.mark.parametrize(
    ("name", "noise"), [("sm_busy_pct", 0.962), ("ipc", 1.035), ("instructions_executed", 0.985)]
)
def test_a_factor_as_small_as_between_two_profiles_of_the_same_kernel_is_not_told(name, noise):
    for factor, told in ((noise, False), (0.95, True)):
        change = decomposition.Factor(decomposition.Change(name, 14.06, 13.85), factor)
        ratio = 0.96 if factor < 1 else 1.04
        text = explain.sentence(decomposition.Step("f", "b", "a", "1", ratio, (change,), (), 1.0))
        assert ("Factors against it" in text or "Factors in its favour" in text) == told


def test_the_clock_results_from_the_power_and_is_never_told_as_a_cause():
    clock = decomposition.Factor(decomposition.Change("sm_mhz", 1650.0, 1815.0), 1.1)
    more = decomposition.Factor(decomposition.Change("instructions_executed", 100.0, 200.0), 0.5)
    step = decomposition.Step("f", "b", "a", "1", 0.55, (more, clock), (), 1.0)
    told = explain.sentence(step)
    assert "Factors against it: instructions 100 → 200 (0.500x)." in told
    assert "Factors in its favour" not in told
    assert "The mean SM clock during a launch rises from 1650 to 1815 MHz." in told
    assert not any("clock" in reason for reason in sentences.brief(step))


def test_what_makes_a_step_slower_is_told_apart():
    before = kernel(1e9, {"selected": 1.0, "long_scoreboard": 9.0}, 100)
    after = kernel(1e9, {"selected": 1.0, "long_scoreboard": 1.0}, 50)
    factors = decomposition.factors(before, after, (1980, 1980), SMS)
    step = decomposition.Step("f", "b", "a", "1", 2.5, factors, (), 1.0)
    assert "Factors in its favour: instructions per cycle 6.4 → 16 (2.50x)." in explain.sentence(step)


def test_a_ratio_that_the_counters_do_not_make_is_not_explained_and_the_page_says_why():
    same = kernel(1e9, {"selected": 1.0}, 25)
    factors = decomposition.factors(same, same, (math.nan, math.nan), math.nan)
    step = decomposition.Step("f", "b", "a", "1", 1.3, factors, (), 1.3)
    half = "The counters account for less than half of the difference from a."
    assert explain.sentence(step) == f"1.30x as fast as a. {half}"
    fewer = decomposition.Factor(decomposition.Change("instructions_executed", 100.0, 97.0), 1.03)
    small = replace(step, ratio=1.1, factors=(fewer,), remainder=1.068)
    assert half in explain.sentence(small)
    assert explain.sentence(replace(step, ratio=1.01, remainder=1.031)) == (
        "1.01x as fast as a. The counters cannot explain the difference (1 %): it is smaller"
        " than that between the profiled and the timed launches"
        " (3.1 %)."
    )


def test_a_step_that_changes_the_other_kernels_of_a_launch_is_told_by_them():
    """Launches under ncu: 63.7 + 2.43 and 64.8 µs, so that the longest kernel alone would make it slower."""
    slower = decomposition.Factor(decomposition.Change("ipc", 1.0, 0.983), 0.983)
    step = decomposition.Step("f", "b", "a", "1", 1.014, (slower,), (), 1.0, kernel_us=(63.74, 64.8))
    assert "other kernels" not in explain.sentence(step)
    told = "The longest kernel takes 63.7 → 64.8 µs under ncu, the other kernels of the launch 2.43 → 0 µs."
    assert explain.sentence(replace(step, others_us=(2.43, 0.0))) == f"1.01x as fast as a. {told}"
    assert "other kernels" not in explain.sentence(replace(step, others_us=(0.0, 2.43))), (
        "the wrong direction"
    )


def test_a_gain_at_the_same_traffic_is_told_by_the_unit_that_is_busier():
    change, bytes_ = (
        decomposition.Change("dram_throughput_pct", 11.6, 85.0),
        decomposition.Change("dram_bytes", 271e6, 271e6),
    )
    fewer = decomposition.Factor(decomposition.Change("instructions_executed", 86e6, 11.8e6), 7.28)
    use = decomposition.Use(
        units=(change,), even={"dram_throughput_pct": bytes_}, idle=True, contended=(True, False)
    )
    step = decomposition.Step("f", "b", "a", "1", 7.33, (fewer,), (), 1.0, use=use)
    assert explain.sentence(step) == (
        "7.33x as fast as a. Contended global atomics no longer bound it. Device memory 11.6 % → 85 % of its peak at"
        " the same traffic (271 MB)."
    )
    loss = explain.sentence(replace(step, ratio=1 / 7.33, factors=(replace(fewer, factor=1 / 7.28),)))
    assert "same traffic" not in loss, "less use of a unit is what a loss results in"
    other = replace(step, ratio=2.0, factors=(replace(fewer, factor=2.0),))
    assert "same traffic" not in explain.sentence(other), "its use grows by another factor"


def test_a_large_gain_is_told_by_a_grid_that_fills_the_gpu_and_by_fewer_sectors_and_not_by_factors():
    change = decomposition.Change
    grid = change("grid_blocks", 32, 4096), change("waves_per_sm", 0.015, 3.88)
    sectors = (
        change("global_load_sectors_per_request", 32, 4),
        change("global_store_sectors_per_request", 4, 32),
    )
    busy = decomposition.Factor(change("sm_busy_pct", 24.1, 91.9), 3.81)
    step = decomposition.Step(
        "f", "b", "a", "1", 4.0, (busy,), (), 1.0, use=decomposition.Use(grid=grid, sectors=sectors)
    )
    assert explain.sentence(step) == (
        "4.00x as fast as a. Blocks in the grid 32 → 4096 (0.015 → 3.88 waves). Sectors per global load 32 → 4."
    )
    assert "SM activity" in explain.sentence(replace(step, ratio=2.9)), "a ratio below 3"


def test_the_recorded_ladder_is_decomposed_and_its_remainders_are_small(recorded, found):
    times = recorded.ladder(recorded.profiled_case).set_index("variant")["median_us"]
    assert len(found) >= 6
    for step in found.values():
        assert step.ratio == pytest.approx(times[step.parent] / times[step.variant])
        assert math.prod(f.factor for f in step.factors) * step.remainder == pytest.approx(step.ratio)
        assert step.remainder == pytest.approx(1.0, abs=0.05), explain.sentence(step)
        assert abs(sum(s.share for s in step.states)) < 1.5


def test_the_recorded_sentences_name_what_the_ladder_is_about(found):
    coalesced = explain.sentence(found["gmem_coalesced"])
    assert re.search(r"\(lg_throttle\): \d+ → 6\.\d+ ms", coalesced)
    assert "Sectors per global load" in coalesced
    assert "excess shared wavefronts" in explain.sentence(found["warptile"])


def test_what_the_tables_lack_is_not_in_the_sentence(recorded):
    lacking = recorded.metrics["metric"].str.contains("lg_throttle|sectors_per_request")
    tables = replace(recorded, metrics=recorded.metrics[~lacking])
    step = next(s for s in explain.Explanation(tables).steps if s.variant == "gmem_coalesced")
    told = explain.sentence(step)
    assert "lg_throttle" not in told
    assert "sectors" not in told
    assert "instructions per cycle" in told


def test_without_counters_the_ratio_stands_and_the_lack_is_said(recorded):
    rows = recorded.metrics.copy()
    hit = (rows["variant"] == "vectorized") & (rows["tool"] == "ncu")
    rows.loc[hit, "value"], rows.loc[hit, "status"], rows.loc[hit, "reason"] = math.nan, "denied", "no rights"
    tables = replace(recorded, metrics=rows)
    told = {step.variant: step for step in explain.Explanation(tables).steps}
    for name in ("vectorized", "warptile"):
        assert told[name].ratio > 1
        assert not told[name].factors
        assert "Not explained because vectorized lacks counters" in explain.sentence(told[name])
    assert told["smem_tiled"].explicable
    assert "vectorized lacks counters" in explain.markdown(tables)
    bound = next(one for one in explain.Explanation(tables).bounds if one.variant == "vectorized")
    assert (bound.kind, bound.ceiling) == ("", "")
    assert (bound.gap, bound.gap_detail) == ("no_counters", "n/a (denied)")


def test_counters_that_are_needed_are_named(recorded):
    kept = recorded.metrics[recorded.metrics["metric"] != "gpu_cycles"]
    step = explain.Explanation(replace(recorded, metrics=kept)).steps[0]
    assert "lacks counters: gpu_cycles" in explain.sentence(step)


def test_a_failed_variant_and_a_parent_outside_the_tables_have_no_ratio():
    tables = figure_tables.sgemm(failed={"autotuned": "wrong"}, names=("autotuned", "warptile", "split_k"))
    told = {step.variant: explain.sentence(step) for step in explain.Explanation(tables).steps}
    assert told["autotuned"] == "Not compared with vectorized because vectorized is not in the tables."
    assert told["warptile"] == "Not compared with autotuned because autotuned has no time (wrong)."


def test_a_slower_variant_is_called_slower(recorded):
    rows = recorded.measurements.copy()
    rows.loc[rows["variant"] == "warptile", "median_us"] *= 2
    tables = replace(recorded, measurements=rows)
    step = next(s for s in explain.Explanation(tables).steps if s.variant == "warptile")
    assert explain.sentence(step).startswith(f"Takes {1 / step.ratio:.3g}x the time of vectorized.")
    assert not step.explicable


def test_counters_of_the_longest_kernel_only_are_said_to_be(recorded):
    rows = recorded.measurements.copy()
    rows.loc[rows["variant"] == "warptile", "ncu_us"] *= 2
    step = next(
        s for s in explain.Explanation(replace(recorded, measurements=rows)).steps if s.variant == "warptile"
    )
    assert "The counters cover only the longest kernel of warptile, 50 % of its time." in explain.sentence(
        step
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(285_212_672, "285 M"), (1.4016, "1.4"), (0.15191, "0.15"), (2.268e12, "2.27 T"), (math.nan, "n/a")],
)
def test_numbers_for_people(value, text):
    assert sentences.short_number(value) == text


def test_names_are_told_as_they_are_written(recorded):
    rows = recorded.measurements.copy()
    rows.loc[rows["variant"] == "gmem_coalesced", "status"] = "compile_error"
    steps = {step.variant: step for step in explain.Explanation(replace(recorded, measurements=rows)).steps}
    assert sentences.gap_text(steps["smem_tiled"]) == "gmem_coalesced has no time (compile error)"


def test_times_that_differ_by_less_than_a_percent_but_more_than_the_noise_are_told_in_percent():
    quicker, slower = (
        explain.sentence(decomposition.Step("f", "b", "a", "1", ratio, (), (), 1.0))
        for ratio in (1.004, 0.996)
    )
    assert quicker.startswith("0.4 % faster than a.")
    assert slower.startswith("0.4 % slower than a.")
