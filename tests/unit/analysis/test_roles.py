"""What argues for a step and against it, and what only follows from its time; by examples whose roles are known."""

from dataclasses import replace

import pytest

from warplog.analysis.decomposition import ISSUING, Change, Factor, StateChange, Step, Use
from warplog.analysis.roles import changes
from warplog.analysis.shared_code import Twin
from warplog.tables.conclusions import Bound

FEWER = Factor(Change("instructions_executed", 200.0, 100.0), 2.0)
SAME = Factor(Change("instructions_executed", 100.0, 101.0), 0.99)
FULLER = Factor(Change("ipc", 1.0, 2.0), 2.0)
WAITS = StateChange("long_scoreboard", 0.6, 0.1, ())


def step(*factors, states=(), ratio=2.0, use=None, **facts):
    made = Step(
        "f", "b", "a", "1", ratio, factors, states, 1.0, use=use or Use(), kernel_us=(100.0, 100 / ratio)
    )
    return replace(made, **facts)


def limit(variant, kind, ceiling=""):
    return Bound("f", variant, "1", "k()", kind=kind, ceiling=ceiling)


def roles_of(explained, *bounds):
    """The role of each quantity of a step."""
    return {
        change.quantity: change.role
        for change in changes(explained, {bound.variant: bound for bound in bounds})
    }


def test_a_factor_in_the_direction_of_the_step_is_a_cause_and_one_against_it_a_cost():
    more = Factor(Change("sm_busy_pct", 100.0, 80.0), 0.8)
    assert roles_of(step(FEWER, more, ratio=1.6)) == {"instructions_executed": "cause", "sm_busy_pct": "cost"}
    slower = step(replace(FEWER, factor=0.5), replace(more, factor=1.25), ratio=0.625)
    assert roles_of(slower) == {"instructions_executed": "cause", "sm_busy_pct": "cost"}


def test_instructions_per_cycle_are_a_cause_only_if_the_instructions_changed_and_memory_bounds_neither_kernel():
    assert roles_of(step(FULLER, SAME))["ipc"] == "effect", "the same work in less time"
    fewer = Factor(Change("instructions_executed", 110.0, 100.0), 1.1)
    assert roles_of(step(FULLER, fewer, ratio=2.2))["ipc"] == "cause"
    for name in ("a", "b"):
        bound = limit(name, "near", "l2_throughput_pct")
        assert roles_of(step(FULLER, fewer, ratio=2.2), bound)["ipc"] == "effect"


def test_the_use_of_a_unit_is_work_per_time_and_never_a_reason():
    units = (Change("pipe_tensor_pct", 63.7, 79.5), Change("issue_active_pct", 58.6, 74.8))
    roles = roles_of(step(FEWER, use=Use(units=units)))
    assert roles == {
        "instructions_executed": "cause",
        "pipe_tensor_pct": "effect",
        "issue_active_pct": "effect",
    }


def test_the_clock_follows_from_the_power():
    clock = Factor(Change("sm_mhz", 1650.0, 1980.0), 1.2)
    assert roles_of(step(FEWER, clock, ratio=2.4))["sm_mhz"] == "effect"


@pytest.mark.parametrize(
    ("instructions", "issuing", "role"),
    [
        ((100.0, 101.0), (0.2, 0.4), "effect"),
        ((100.0, 130.0), (0.2, 0.4), "cost"),
        ((130.0, 100.0), (0.2, 0.4), "effect"),
        ((130.0, 100.0), (0.4, 0.2), "cause"),
    ],
)
def test_warps_that_are_ready_more_often_cost_time_only_if_they_execute_more(instructions, issuing, role):
    executed = Factor(Change("instructions_executed", *instructions), instructions[0] / instructions[1])
    rest = replace(FULLER, factor=2.0 / executed.factor)
    states = (WAITS, StateChange(ISSUING, *issuing, ()))
    assert roles_of(step(rest, executed, states=states))[ISSUING] == role


def test_excess_wavefronts_that_take_time_are_a_cause_even_if_no_state_names_them():
    excess = Change("shared_wavefronts_excess", 285e6, 0.0)
    faster = step(FULLER, SAME, states=(WAITS,), use=Use(excess=excess))
    assert roles_of(faster)["shared_wavefronts_excess"] == "cause"
    slower = step(replace(FULLER, factor=0.5), SAME, ratio=0.5, use=Use(excess=excess))
    assert roles_of(slower)["shared_wavefronts_excess"] == "cost"


def test_traffic_is_a_reason_where_its_unit_is_a_ceiling():
    use = Use(traffic=(Change("l2_bytes", 3.7e9, 2.1e9), Change("dram_bytes", 1e8, 1.6e8)))
    roles = roles_of(step(FEWER, use=use), limit("a", "near", "l2_throughput_pct"))
    assert (roles["l2_bytes"], roles["dram_bytes"]) == ("cause", "detail")


def test_occupancy_is_a_reason_for_a_kernel_that_latency_bounds():
    use = Use(occupancy=Change("theoretical_occupancy_pct", 50.0, 100.0))
    assert roles_of(step(FEWER, use=use), limit("a", "latency"))["theoretical_occupancy_pct"] == "cause"
    assert roles_of(step(FEWER, use=use), limit("a", "near"))["theoretical_occupancy_pct"] == "detail"


def test_a_bubble_at_the_end_of_a_tile_that_shrinks_is_a_cause_and_names_the_ancestor_it_was_seen_in():
    changed = changes(step(FEWER, use=Use(tile_end=("root", 4.8, 0.1))), {})
    bubble = next(change for change in changed if change.quantity == "bubble_us")
    assert (bubble.role, bubble.of, bubble.before, bubble.after, bubble.unit) == (
        "cause", "root", 4.8, 0.1, "us",
    )  # fmt: skip
    assert roles_of(step(FEWER, use=Use(tile_end=("a", 3.4, 3.2))))["bubble_us"] == "detail"


def test_atomics_that_no_longer_contend_stand_for_all_factors():
    changed = changes(step(FEWER, use=Use(contended=(True, False))), {})
    assert [(change.quantity, change.role) for change in changed] == [
        ("contended_atomics", "cause"),
        ("instructions_executed", "detail"),
    ]


def test_a_large_gain_is_caused_by_a_grid_that_fills_the_gpu_and_by_fewer_sectors():
    grid = Change("grid_blocks", 32.0, 4096.0), Change("waves_per_sm", 0.015, 3.88)
    sectors = (Change("global_load_sectors_per_request", 32.0, 4.0),)
    larger = step(replace(FEWER, factor=4.0), ratio=4.0, use=Use(grid=grid, sectors=sectors))
    assert roles_of(larger) == {
        "grid_blocks": "cause",
        "global_load_sectors_per_request": "cause",
        "waves_per_sm": "detail",
        "instructions_executed": "detail",
    }
    assert roles_of(replace(larger, ratio=2.9))["instructions_executed"] == "cause", "a ratio below 3"


def test_two_states_in_the_direction_and_the_largest_one_against_it_are_reasons():
    states = tuple(
        StateChange(name, before, after, ())
        for name, before, after in (
            ("barrier", 0.5, 0.1),
            ("wait", 0.3, 0.1),
            ("drain", 0.2, 0.1),
            ("membar", 0.0, 0.2),
        )
    )
    changed = changes(step(FULLER, SAME, states=states), {})
    roles = {
        change.quantity: (change.role, round(change.saved_us)) for change in changed if change.kind == "state"
    }
    assert roles == {
        "barrier": ("cause", 40),
        "wait": ("cause", 20),
        "membar": ("cost", -20),
        "drain": ("detail", 10),
    }


def test_each_quantity_is_told_once_in_its_first_role_and_in_order():
    wavefronts = Change("shared_wavefronts_excess", 285e6, 17e6)
    states = (StateChange("short_scoreboard", 0.6, 0.1, (wavefronts,)),)
    changed = changes(step(FULLER, SAME, states=states, use=Use(excess=wavefronts)), {})
    assert [change.rank for change in changed] == list(range(len(changed)))
    assert len({change.quantity for change in changed}) == len(changed)
    assert [change.role for change in changed] == sorted(
        (change.role for change in changed), key=("cause", "cost", "effect", "detail").index
    )


@pytest.mark.parametrize(
    "facts",
    [{"tied": True}, {"remainder": 3.0}, {"twin": Twin("a", True, (1, 1), 1)}],
    ids=["tied", "within the runs", "the same kernel"],
)
def test_a_step_that_the_counters_do_not_explain_has_details_only(facts):
    assert set(roles_of(step(FEWER, states=(WAITS,), **facts)).values()) == {"detail"}
    assert changes(step(FEWER, gap="no_counters"), {}) == []
