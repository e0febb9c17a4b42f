"""What a step changes in the use of units, in traffic, blocks per SM, waves, and the gap at tile ends."""

from dataclasses import replace

import pytest

from warplog.analysis import decomposition
from warplog.analysis.decomposition import Change, Factor, StateChange, Step
from warplog.analysis.use import use
from warplog.worklog import explain, sentences

LIMITS = {f"occupancy_limit_{name}_blocks": 8.0 for name in ("warps", "registers", "shared_memory", "blocks")}
BEFORE = LIMITS | {
    "l2_throughput_pct": 85.0, "pipe_tensor_pct": 38.0, "l2_bytes": 3.69e9, "dram_bytes": 207e6,
    "issue_active_pct": 17.0, "theoretical_occupancy_pct": 100.0,
}  # fmt: skip
AFTER = LIMITS | {
    "l2_throughput_pct": 68.0, "pipe_tensor_pct": 44.0, "l2_bytes": 2.81e9, "dram_bytes": 199e6,
    "issue_active_pct": 11.0, "occupancy_limit_registers_blocks": 5.0, "theoretical_occupancy_pct": 62.5,
}  # fmt: skip


def step(found):
    fewer = Factor(Change("instructions_executed", 200.0, 172.0), 1.16)
    return Step("f", "b", "a", "1", 1.16, (fewer,), (), 1.0, use=found)


def test_a_kernel_that_waits_for_a_unit_is_told_by_that_unit_and_not_by_its_instructions():
    found = use(BEFORE, AFTER, 132.0)
    told = explain.sentence(step(found))
    assert (
        "Utilisation: L2 85 % → 68 % and the tensor pipe 38 % → 44 %. Traffic: L2 3.69 GB → 2.81 GB." in told
    )
    assert "Theoretical occupancy 100 % → 62.5 % (8 → 5 blocks per SM)." in told
    assert "instructions" not in told
    assert sentences.brief(step(found))[1:3] == (
        "traffic: L2 3.69 GB → 2.81 GB",
        "utilisation: L2 85 % → 68 % and the tensor pipe 38 % → 44 %",
    )
    busy = use(BEFORE, AFTER | {"issue_active_pct": 25.0}, 132.0)
    assert "Factors in its favour: instructions 200 → 172 (1.16x)." in explain.sentence(step(busy))


def test_more_instructions_of_warps_that_poll_are_no_cause_where_another_unit_is_used_three_times_as_much():
    polls = Factor(Change("instructions_executed", 100.0, 370.0), 0.27)
    faster = Factor(Change("ipc", 0.45, 1.0), 2.2)
    states = (
        StateChange("long_scoreboard", 0.2, 0.9, ()),
        StateChange("issuing_or_ready", 0.05, 0.25, (polls.change,)),
        StateChange("wait", 0.1, 0.2, ()),
    )
    loss = replace(step(use(BEFORE, AFTER, 132.0)), ratio=0.6, factors=(polls, faster), states=states)

    def told(issuing):
        return explain.sentence(replace(loss, use=use(BEFORE, AFTER | {"issue_active_pct": issuing}, 132.0)))

    assert "instructions" not in told(22.0), "L2 is at 68 %"
    assert "Issuing or ready" not in told(22.0)
    assert "(wait)" in told(22.0)
    assert "Factors against it: instructions 100 → 370 (0.270x)." in told(24.0)
    assert "Issuing or ready" in told(24.0)


def test_a_slower_kernel_with_the_same_traffic_is_not_told_by_the_use_that_falls():
    same = AFTER | {"l2_bytes": BEFORE["l2_bytes"]}
    slower = Factor(Change("ipc", 100.0, 80.0), 0.8)
    loss = replace(step(use(BEFORE, same, 132.0)), ratio=0.8, factors=(slower,))
    assert "L2 85 %" not in explain.sentence(loss)
    assert "L2 85 %" in explain.sentence(replace(loss, use=use(BEFORE, AFTER, 132.0)))


def test_traffic_of_a_unit_that_is_not_the_busiest_counts_from_a_factor_of_one_and_a_half():
    for dram, told in ((398e6, True), (300e6, False), (130e6, True)):
        assert (
            "device memory" in explain.sentence(step(use(BEFORE, AFTER | {"dram_bytes": dram}, 132.0)))
        ) == told


@pytest.mark.parametrize(
    ("waves", "told"),
    [
        ((3.88, 3.10), ", with a less full last wave of blocks: 3.88 → 3.1 waves"),
        ((1.0, 1.0), ""),
        ((3.1, 3.88), ""),
    ],
)
def test_sm_activity_that_a_partial_last_wave_accounts_for_names_the_waves(waves, told):
    pair = [
        {"instructions_executed": 1e9, "ipc": 1.0, "gpu_cycles": cycles, "waves_per_sm": count}
        for cycles, count in zip((1e9 / 132 / 0.963, 1e9 / 132 / 0.843), waves, strict=True)
    ]
    busy = next(
        f for f in decomposition.factors(*pair, (1980, 1980), 132.0) if f.change.name == "sm_busy_pct"
    )
    assert sentences._factor(busy) == f"SM activity 96.3 % → 84.3 % (0.875x{told})"


@pytest.mark.parametrize("generations", [1, 2])
def test_the_gap_at_a_tile_end_is_compared_with_the_nearest_ancestor_that_has_a_timeline(
    recorded, generations
):
    parents = recorded.variants.set_index("variant")["parent"]
    above = parents["warptile"] if generations == 1 else parents[parents["warptile"]]
    gaps = {"warptile": 1.42, above: 3.36}
    launches = recorded.launches.reindex(range(2)).assign(
        variant=list(gaps), case=recorded.profiled_case, bubble_us=list(gaps.values())
    )
    steps = {one.variant: one for one in explain.Explanation(replace(recorded, launches=launches)).steps}
    whose = above if generations == 1 else f"{above}, the nearest ancestor with a timeline"
    assert (
        f"The median pipeline bubble at the end of a tile falls from 3.36 µs (in {whose}) to 1.42 µs."
        in explain.sentence(steps["warptile"])
    )
    assert not any(one.use.tile_end for name, one in steps.items() if name != "warptile")
