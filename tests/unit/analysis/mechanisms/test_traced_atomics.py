"""How many atomics are on one address: by the addresses of a small traced case, else a guess."""

import math
from types import SimpleNamespace

import pytest

from warplog.analysis.mechanisms import campaign

SOURCE, OLDER = "a" * 64, "b" * 64
ADD = "void add<(int)1>(int *)"  # as ncu prints it
REQUESTS = 8192.0  # of the profiled case
CASES = {
    "small": {"n": 64, "skew": 0},
    "large": {"n": 4096, "skew": 0},
    "medium": {"n": 512, "skew": 0},
    "medium-of-half": {"n": 512, "skew": 1},
}


def row(case, **cells):
    return {"family": "f", "variant": "v", "case": case, **cells}


def metrics(kernel=ADD, launch=0, sectors=REQUESTS, **counts):
    counted = {
        **{"grid_blocks": 64.0, "block_threads": 128.0, "gpu_cycles": 1e6, "instructions_executed": 1e6},
        **{"global_reduction_requests": REQUESTS, "l2_reduction_sectors": sectors, **counts},
    }
    common = {"tool": "ncu", "status": "ok", "kernel": kernel, "launch": launch}
    return [row("large", metric=name, value=value, **common) for name, value in counted.items()]


def trace(requests, same_address, case="small", kernel="void add<1>(int*)", launch=0, source=SOURCE):
    """The rows of both tables about a kernel: an atomic of so many requests, in halves, and other accesses."""
    common = {"launch": launch, "source_sha256": source}
    kinds = [("global", "atomic", requests // 2)] * 2 + [("shared", "atomic", 999), ("global", "store", 999)]
    accesses = [
        row(case, status="ok", space=space, kind=kind, requests=n, **common) for space, kind, n in kinds
    ]
    return accesses, [row(case, kernel=kernel, same_address=same_address, **common)]


def read(counted, *traces):
    """A campaign, read from tables."""
    empty = dict.fromkeys(campaign.TABLES, ())
    gpu = {"sms": 64, "dram_gbytes_per_s_peak": 3000.0}
    return campaign.read(
        {
            **empty,
            "gpus": [gpu],
            "metrics": counted,
            "measurements": [row("large", status="ok", median_us=50.0, sm_mhz=1800.0)],
            "variants": [{"family": "f", "variant": "v", "parent": "", "source_sha256": SOURCE}],
            "accesses": [access for accesses, _ in traces for access in accesses],
            "traced_kernels": [kernel for _, kernels in traces for kernel in kernels],
        },
        {},
        {"f": SimpleNamespace(case_values=lambda: CASES, cases={})},
    )


def works(counted, *traces):
    """The kernels of a launch, read from tables."""
    return read(counted, *traces).launches["f", "v", "large"]


def test_accesses_that_were_traced_at_a_small_case_are_known_of_the_variant():
    traced = trace(256, 4)
    assert read(metrics(), traced).accesses["f", "v"] == traced[0]


@pytest.mark.parametrize(
    ("same_address", "per_request"),
    [
        (256, 1),  # a lane of each of 256 warps adds to the same word
        (4, 1 / 64),  # to a word of its block, of 64
        (900, 900 / 256),  # each lane to a bin: that of the most frequent key
    ],
)
@pytest.mark.parametrize("sectors", [REQUESTS, 32 * REQUESTS])
def test_the_busiest_address_receives_the_share_that_it_has_at_the_traced_case(
    same_address, per_request, sectors
):
    (work,) = works(metrics(sectors=sectors), trace(256, same_address))
    assert work.same_address == pytest.approx(REQUESTS * per_request)
    assert work.traced


def test_atomics_with_and_without_a_result_have_the_same_share():
    (work,) = works(metrics(global_atomic_requests=100.0, l2_atomic_sectors=1600.0), trace(256, 128))
    assert work.same_address == (REQUESTS + 100) / 2


def test_without_a_trace_of_this_kernel_of_this_source_it_is_a_guess():
    for traces in ([], [trace(256, 4, source=OLDER)], [trace(256, 4, kernel="sub(int*)")]):
        (work,) = works(metrics(), *traces)
        assert (work.same_address, work.traced) == (REQUESTS, False)


def test_a_trace_that_does_not_tell_leaves_the_guess_and_need_not_be_made():
    """As of atomics on whole regions, or on too many addresses."""
    (work,) = works(metrics(), trace(256, math.nan))
    assert (work.same_address, work.traced) == (REQUESTS, True)


def test_kernels_of_a_launch_are_told_apart_by_their_names():
    """The traced case launches one of them twice more, once without an atomic, and in another order."""
    adds = trace(256, 4, launch=1), trace(256, 12, launch=2), trace(0, math.nan, launch=3)
    counted = [*metrics(), *metrics("end(int *)", launch=1)]
    found = works(counted, trace(100, 10, kernel="end(int*)"), *adds)
    assert [work.same_address for work in found] == [REQUESTS / 32, REQUESTS / 10]


def test_the_profiled_case_is_asked_first_then_that_with_most_atomics():
    few, many = trace(10, 10, "small"), trace(1000, 500, "medium")
    (work,) = works(metrics(), few, many)
    assert work.same_address == REQUESTS / 2
    (work,) = works(metrics(), few, many, trace(100, 25, "large"))
    assert work.same_address == REQUESTS / 4


def test_a_case_that_was_not_traced_is_like_the_one_with_most_values_in_common():
    few, many = trace(10, 10, "small"), trace(1000, 500, "medium-of-half")
    (work,) = works(metrics(), few, many)
    assert work.same_address == REQUESTS
