"""What bounds a kernel, from its counters: the closest ceiling, latency, or a grid that is too small."""

import math

import pytest

from warplog.worklog import bounds, explain

SMS = 132.0


@pytest.mark.parametrize(
    ("values", "kind", "ceiling"),
    [
        ({"dram_throughput_pct": 91.0, "sm_throughput_pct": 20.0}, "memory", "device memory"),
        (
            {"l1_throughput_pct": 40.0, "sm_throughput_pct": 85.0, "pipe_fma_pct": 85.0},
            "compute",
            "the FMA pipe",
        ),
        ({"l1_throughput_pct": 40.0, "sm_throughput_pct": 85.0}, "compute", "the SM's issue slots"),
        ({"l2_throughput_pct": 30.0, "waves_per_sm": 8.0}, "latency", "L2"),
        ({"l2_throughput_pct": 30.0, "waves_per_sm": 0.2}, "launch", "L2"),
    ],
)
def test_what_bounds_a_kernel(values, kind, ceiling):
    found = bounds.bound("a", values, SMS)
    assert (found.kind, found.ceiling) == (kind, ceiling)
    assert found.ceiling_pct == max(v for n, v in values.items() if n.endswith("_pct"))


@pytest.mark.parametrize(
    ("l1", "kind", "ceiling"),
    [(40.0, "memory", "the memory system"), (71.8, "memory", "L1 and shared memory")],
)
def test_the_memory_throughput_decides_over_that_of_its_parts(l1, kind, ceiling):
    values = {"memory_throughput_pct": 72.0, "l2_throughput_pct": 20.0, "sm_throughput_pct": 71.0}
    found = bounds.bound("a", {**values, "l1_throughput_pct": l1}, SMS)
    assert (found.kind, found.ceiling, found.ceiling_pct) == (kind, ceiling, 72.0)


def test_an_unknown_bound_is_not_guessed():
    found = bounds.bound("a", {"waves_per_sm": 3.0, "l1_throughput_pct": math.nan}, SMS)
    assert found.kind == ""
    assert found.gap


def test_the_recorded_bounds(recorded):
    found = {one.variant: one for one in explain.bounds_of(recorded)}
    assert (found["naive"].kind, found["naive"].stall) == ("memory", "lg_throttle")
    assert found["warptile"].kind == "compute"
    assert found["warptile"].limiters == ("registers",)
    assert set(found) == set(recorded.variants["variant"])
