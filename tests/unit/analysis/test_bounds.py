"""What bounds a kernel, from its counters: the closest ceiling, latency, or a grid that is too small."""

import math

import pytest

from made_up_tables import MadeUpTables
from warplog.analysis import bounds
from warplog.analysis.explanation import Explanation

SMS = 132.0


@pytest.mark.parametrize(
    ("values", "kind", "ceiling"),
    [
        ({"dram_throughput_pct": 91.0, "sm_throughput_pct": 20.0}, "memory", "dram_throughput_pct"),
        (
            {"l1_throughput_pct": 40.0, "sm_throughput_pct": 92.0, "pipe_fma_pct": 92.0},
            "compute",
            "pipe_fma_pct",
        ),
        (
            {"l1_throughput_pct": 40.0, "sm_throughput_pct": 91.0, "issue_active_pct": 91.0},
            "compute",
            "issue_active_pct",
        ),
        (
            {"l1_throughput_pct": 40.0, "sm_throughput_pct": 89.9, "issue_active_pct": 60.0},
            "near",
            "sm_throughput_pct",
        ),
        ({"l2_throughput_pct": 95.0, "dram_throughput_pct": 80.0}, "memory", "l2_throughput_pct"),
        ({"l2_throughput_pct": 30.0, "waves_per_sm": 8.0}, "latency", "l2_throughput_pct"),
        ({"l2_throughput_pct": 30.0, "waves_per_sm": 0.2}, "launch", "l2_throughput_pct"),
    ],
)
def test_what_bounds_a_kernel(values, kind, ceiling):
    bound = bounds.bound("a", values, SMS)
    assert (bound.kind, bound.ceiling) == (kind, ceiling)
    assert bound.ceiling_pct == max(v for n, v in values.items() if n.endswith("_pct"))


@pytest.mark.parametrize(
    ("l1", "kind", "ceiling"),
    [(40.0, "memory", "memory_throughput_pct"), (92.8, "memory", "l1_throughput_pct")],
)
def test_the_memory_throughput_decides_over_that_of_its_parts(l1, kind, ceiling):
    values = {"memory_throughput_pct": 93.0, "l2_throughput_pct": 20.0, "sm_throughput_pct": 71.0}
    bound = bounds.bound("a", {**values, "l1_throughput_pct": l1}, SMS)
    assert (bound.kind, bound.ceiling, bound.ceiling_pct) == (kind, ceiling, l1 if l1 > 90 else 93.0)


@pytest.mark.parametrize(("dram", "kind"), [(90.0, "memory"), (82.7, "memory"), (79.0, "near")])
def test_device_memory_is_the_ceiling_where_l2_is_only_a_little_busier(dram, kind):
    bound = bounds.bound("a", {"dram_throughput_pct": dram, "l2_throughput_pct": dram + 9}, SMS)
    assert (bound.kind, bound.ceiling, bound.ceiling_pct) == (kind, "dram_throughput_pct", dram)
    assert bound.beside_pct == dram + 9
    assert math.isnan(
        bounds.bound("a", {"dram_throughput_pct": 90.0, "l2_throughput_pct": 60.0}, SMS).beside_pct
    )


COPY = {
    "dram_throughput_pct": 79.0, "l2_throughput_pct": 40.0, "dram_bytes": 3.8e9, "l2_bytes": 4e9, "duration_us": 1000.0,
}  # fmt: skip
MEASURED = {"dram_gbytes_per_s": 4000.0, "l2_gbytes_per_s": 8000.0}


def test_a_measured_rate_decides_where_the_peak_is_out_of_reach():
    """3.8 GB in 1 ms are 79 % of the peak, and 95 % of the 4000 GB/s that a kernel can read."""
    bound = bounds.bound("a", COPY, SMS, MEASURED)
    assert (bound.kind, bound.ceiling, bound.ceiling_pct) == (
        "memory",
        "dram_gbytes_per_s",
        pytest.approx(95),
    )
    assert (bounds.bound("a", COPY, SMS).kind, bounds.bound("a", COPY, SMS).ceiling) == (
        "near",
        "dram_throughput_pct",
    )
    slower = bounds.bound("a", {**COPY, "dram_bytes": 3.5e9}, SMS, MEASURED)
    assert (slower.kind, slower.ceiling_pct) == ("near", pytest.approx(87.5))


def test_a_rate_that_was_not_measured_leaves_the_peak():
    for measured in ({}, {"dram_gbytes_per_s": math.nan}):
        assert bounds.bound("a", COPY, SMS, measured) == bounds.bound("a", COPY, SMS)
    uncounted = {name: value for name, value in COPY.items() if name != "duration_us"}
    assert bounds.bound("a", uncounted, SMS, MEASURED).ceiling == "dram_throughput_pct"


def test_a_unit_that_is_busier_than_its_bytes_say_keeps_its_peak():
    """Atomics and lookups occupy L2 without moving bytes."""
    bound = bounds.bound(
        "a",
        {**COPY, "l2_throughput_pct": 97.0, "dram_bytes": 1e9, "dram_throughput_pct": 20.0},
        SMS,
        MEASURED,
    )
    assert (bound.kind, bound.ceiling, bound.ceiling_pct) == ("memory", "l2_throughput_pct", 97)


ATOMICS = {
    "dram_throughput_pct": 11.5, "l2_throughput_pct": 15.7, "l1_throughput_pct": 15.4, "sm_throughput_pct": 17.0,
    "waves_per_sm": 248.0, "achieved_occupancy_pct": 87.0, "stall_long_scoreboard_pct": 53.0,
    "stall_barrier_pct": 37.0, bounds.GLOBAL_ATOMICS: 1.0,
}  # fmt: skip


def test_atomics_on_one_address_are_the_bound_of_an_idle_gpu():
    assert bounds.bound("a", ATOMICS, SMS).kind == "atomics"


@pytest.mark.parametrize(
    "other",
    [
        {bounds.GLOBAL_ATOMICS: 0.0},
        {"l2_throughput_pct": 50.0},
        {"achieved_occupancy_pct": 20.0},
        {"stall_barrier_pct": 60.0},
    ],
    ids=["no atomics", "L2 is busy", "few warps", "the warps wait for each other"],
)
def test_atomics_are_not_blamed_for_what_else_may_bound_a_kernel(other):
    assert bounds.bound("a", ATOMICS | other, SMS).kind == "latency"


def test_atomics_are_found_in_the_machine_code_of_the_kernel_that_was_captured():
    made = MadeUpTables()
    for name, opcode in (
        ("atomics", "sass_REDG.E.ADD.F32"),
        ("shared", "sass_ATOMS.ADD"),
        ("lone", "sass_RED.E"),
    ):
        made.variant("f", name, 0, 3, "1")
        made.measured("f", name, "1", 1024, 490.0, 1.0, 1.0)
        made.counted("f", name, "1", f"void {name}(float*)", 0, ATOMICS)
        made.counted(
            "f", name, "", f"{name if name != 'lone' else 'other'}(float*)", 0, {opcode: 1}, tool="cuobjdump"
        )
    kinds = {bound.variant: bound.kind for bound in Explanation(made.tables()).bounds}
    assert kinds == {"atomics": "atomics", "shared": "latency", "lone": "latency"}


def test_two_ceilings_on_a_knifes_edge_are_both_named():
    bound = bounds.bound("a", {"l2_throughput_pct": 76.4, "issue_active_pct": 76.7}, SMS)
    assert (bound.ceiling, bound.ceiling_2, bound.ceiling_2_pct) == (
        "issue_active_pct", "l2_throughput_pct", 76.4,
    )  # fmt: skip
    assert bounds.bound("a", {"l2_throughput_pct": 71.6, "issue_active_pct": 76.7}, SMS).ceiling_2 == ""


def test_a_part_of_known_name_stands_for_the_unit_without_a_name_that_it_is_close_to():
    near = {"sm_throughput_pct": 64.6, "pipe_fma_pct": 57.3, "issue_active_pct": 63.5}
    bound = bounds.bound("a", near, SMS)
    assert (bound.ceiling, bound.ceiling_pct) == ("issue_active_pct", 63.5)
    assert bound.ceiling_2 == "pipe_fma_pct", "its instructions fill the issue slots"
    assert bounds.bound("a", near | {"issue_active_pct": 60.0}, SMS).ceiling == "sm_throughput_pct"


@pytest.mark.parametrize(("stall", "kind"), [("lg_throttle", "queue"), ("long_scoreboard", "latency")])
def test_a_full_queue_is_throughput_and_not_latency(stall, kind):
    values = {"l2_throughput_pct": 56.0, "waves_per_sm": 8.0, f"stall_{stall}_pct": 31.0}
    assert bounds.bound("a", values, SMS).kind == kind
    assert bounds.bound("a", values | {"l2_throughput_pct": 61.0}, SMS).kind == "near"


def busy(share, **values):
    """Returns counters of a kernel of 1000 cycles whose 132 SMs are active for a share of them."""
    return {"ipc": 2.0, "gpu_cycles": 1000.0, "instructions_executed": 2 * SMS * 1000 * share, **values}


def test_use_of_active_cycles_counts_for_the_part_of_the_time_in_which_sms_are_active():
    values = busy(0.5, issue_active_pct=92.0, l1_throughput_pct=80.0, l2_throughput_pct=30.0)
    found = {bounds.ISSUE: 46.0, bounds.L1: 40.0, bounds.L2: 30.0}
    assert bounds.ceilings(values, SMS) == pytest.approx(found)
    assert bounds.bound("a", busy(0.79, l2_throughput_pct=30.0, waves_per_sm=2.0), SMS).kind == "launch"
    assert bounds.bound("a", busy(0.81, l2_throughput_pct=30.0, waves_per_sm=2.0), SMS).kind == "latency"


@pytest.mark.parametrize(("wavefronts", "told"), [(53_000.0, True), (52_000.0, False)])
def test_of_l1_its_bytes_conflicts_and_most_of_its_use_are_told(wavefronts, told):
    """Of 132,000 cycles 80 % are used, of which half are 52,800; 128 bytes a cycle are the peak."""
    values = busy(1.0, l1_throughput_pct=80.0, l1_bytes=0.25 * 128 * SMS * 1000)
    found = bounds.bound(
        "a", values | {"shared_wavefronts": wavefronts, "shared_wavefronts_excess": 0.75 * wavefronts}, SMS
    )
    assert (found.ceiling, found.l1_bytes_pct, found.conflicts_pct) == (bounds.L1, 25.0, 75.0)
    assert (found.shared_wavefronts == wavefronts) == told


@pytest.mark.parametrize(
    ("of_l1", "shared", "conflicts_pct"),
    [
        ({"l1_shared_wavefronts": 66_000.0}, 66_000.0, 10.0),
        (
            {"l1_shared_wavefronts": 55_000.0},
            55_000.0,
            0.0,
        ),  # fewer than addresses tell, even without conflicts
        ({"l1_shared_wavefronts": 150_000.0}, 118_800.0, 50.0),  # copies are among them
        ({"l1_wavefronts": 66_000.0}, 66_000.0, 10.0),
        ({}, 118_800.0, 50.0),
    ],
)
def test_no_more_wavefronts_are_told_of_than_l1_had(of_l1, shared, conflicts_pct):
    told = {"shared_wavefronts": 118_800.0, "shared_wavefronts_excess": 59_400.0}
    found = bounds.bound("a", busy(1.0, l1_throughput_pct=80.0) | told | of_l1, SMS)
    assert (found.shared_wavefronts, found.conflicts_pct) == pytest.approx((shared, conflicts_pct))


def test_an_unknown_bound_is_not_guessed():
    bound = bounds.bound("a", {"waves_per_sm": 3.0, "l1_throughput_pct": math.nan}, SMS)
    assert (bound.kind, bound.gap) == ("", "no_throughput")


def test_the_recorded_bounds(recorded):
    limits = {bound.variant: bound for bound in Explanation(recorded).bounds}
    assert (limits["naive"].kind, limits["naive"].stall) == ("memory", "lg_throttle")
    assert limits["warptile"].kind == "near"
    assert limits["warptile"].limiters == "registers"
    assert set(limits) == set(recorded.variants["variant"])
