"""What a warp state waits for: the instruction at which its samples fall decides, not the name of the state."""

import pytest

import shipped_families
from warplog.analysis.stall_reasons import waits
from warplog.catalog.header import read_source

WGMMA = ("WARPGROUP.ARRIVE", "WARPGROUP.DEPBAR.LE", "HGMMA.64x128x16.F32.BF16", "BAR.SYNC.DEFER_BLOCKING")
TMA = ("UTMALDG.2D", "SYNCS.ARRIVE.TRANS64", "SYNCS.EXCH.64", "SYNCS.PHASECHK.TRANS64.TRYWAIT")
EITHER = {
    "barrier": "barrier_or_wgmma",
    "long_scoreboard": "mbarrier_or_memory",
}
SPIN = """\
__device__ void wait(uint64_t* barrier, int parity) {
    uint32_t is_over = 0;
    do {
        asm volatile(
            "{\\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\n"
            "}\\n"
            : "=r"(is_over));
    } while (!is_over);
}
__device__ void poll(volatile int* flag) {
    do {
    } while (!*flag);
}
"""


def line(text, stall, share, number=1, file="k.cu"):
    return {
        "file": file, "line": number, "text": text, "stall": stall, "sample_share": share, "samples": 1000 * share,
        "stall_samples": 1000 * share,
    }  # fmt: skip


def waits_of(rows, opcodes, shares, texts=()):
    by_state = waits(rows, dict(texts), opcodes, shares, {})
    return {state: (wait.awaited, wait.line) for state, wait in by_state.items()}


@pytest.mark.parametrize(
    ("executed", "expected"),
    [
        (
            {"LDS": 34e6, "STS": 19e6, "SHFL": 0.0},
            {"short_scoreboard": "shared", "mio_throttle": "shared_queue"},
        ),
        ({"LDS": 1e5, "STS": 2e6, "SHFL": 1e6}, {"mio_throttle": "shared_queue"}),
        ({"LDS": 1e5, "STS": 1e5, "SHFL": 12e6}, {}),
        ({"LDS": 0.0, "STS": 0.0, "SHFL": 0.0}, {}),
        ({}, {}),
    ],
    ids=["shared memory", "stores to it", "shuffles", "special registers only", "not counted"],
)
def test_mio_states_wait_for_shared_memory_only_in_kernels_that_use_it_most(executed, expected):
    assert {state: wait.awaited for state, wait in waits((), {}, (), {}, executed).items()} == expected


@pytest.mark.parametrize(
    "text", ["wgmma::wait<0>();", 'asm volatile("wgmma.wait_group.sync.aligned %0;"', "warpgroup_wait<1>();"]
)
def test_the_wait_for_wgmma_is_the_one_for_the_tensor_cores(text):
    rows = [line("__syncthreads();", "barrier", 0.05), line(text, "barrier", 0.4, 7)]
    assert waits_of(rows, WGMMA, {"barrier": 0.45}) == {"barrier": ("wgmma", "k.cu:7")}


def test_a_barrier_elsewhere_in_a_kernel_with_wgmma_proves_nothing():
    rows = [line("__syncthreads();", "barrier", 0.4), line("wgmma::wait<0>();", "barrier", 0.05, 7)]
    assert waits_of(rows, WGMMA, {"barrier": 0.45}) == {"barrier": (EITHER["barrier"], "")}
    assert waits_of(rows, ("BAR.SYNC", "LDG.E"), {"barrier": 0.45}) == {}, "no wgmma in the machine code"


def test_the_loop_around_an_mbarrier_at_which_only_tma_loads_arrive_waits_for_them():
    rows = [line("} while (!is_over);", "long_scoreboard", 0.8, 9, "m.cuh")]
    shares, texts = {"long_scoreboard": 0.82}, {"m.cuh": SPIN}
    assert waits_of(rows, TMA, shares, texts) == {"long_scoreboard": ("tma", "m.cuh:9")}
    arrivals = (*TMA, "SYNCS.ARRIVE.TRANS64.A1T0")
    assert waits_of(rows, arrivals, shares, texts) == {"long_scoreboard": ("mbarrier", "m.cuh:9")}
    assert waits_of(rows, TMA, shares) == {"long_scoreboard": (EITHER["long_scoreboard"], "")}, (
        "the loop is not known"
    )


def test_another_loop_is_no_mbarrier_wait():
    rows = [line("} while (!*flag);", "long_scoreboard", 0.8, 13, "m.cuh")]
    by_state = waits_of(rows, TMA, {"long_scoreboard": 0.82}, {"m.cuh": SPIN})
    assert by_state == {"long_scoreboard": (EITHER["long_scoreboard"], "")}


def test_a_source_that_changed_since_it_was_sampled_proves_nothing():
    rows = [line("} while (!is_over);", "long_scoreboard", 0.8, 8, "m.cuh")]
    by_state = waits_of(rows, TMA, {"long_scoreboard": 0.82}, {"m.cuh": SPIN})
    assert by_state == {"long_scoreboard": (EITHER["long_scoreboard"], "")}


def test_the_shipped_barriers_are_recognised():
    variant = shipped_families.FAMILIES["bf16_gemm"].variant("wgmma_tma")
    texts = {path.name: read_source(path) for path in (variant.file, *variant.headers())}
    lines = texts["mbarrier.cuh"].splitlines()
    ends = [number for number, text in enumerate(lines, 1) if text.strip() == "} while (!is_over);"]
    assert ends
    for number in ends:
        rows = [line("} while (!is_over);", "long_scoreboard", 0.8, number, "mbarrier.cuh")]
        by_state = waits_of(rows, TMA, {"long_scoreboard": 0.8}, texts)
        assert by_state == {"long_scoreboard": ("tma", f"mbarrier.cuh:{number}")}
