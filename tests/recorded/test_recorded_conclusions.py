"""What is concluded from the recorded campaign where the counters alone would mislead."""

from functools import cache
from pathlib import Path

import pytest

from shipped_families import FAMILIES
from warplog.analysis.conclude import conclude
from warplog.analysis.explanation import sources_of
from warplog.records.config import Config
from warplog.tables import view

TABLES = Path(__file__).parents[2] / "results" / "recorded" / Config().recorded / "tables"


@cache
def concluded(family):
    """What is concluded about a family of the recorded campaign."""
    tables = view.of_family(_of_all_families(), TABLES, family)
    return conclude(tables, sources_of(FAMILIES[family].variants))


@cache
def _of_all_families():
    return view.read_all(TABLES)


def step(family, variant):
    return next(one for one in concluded(family).steps if one.variant == variant)


def bound(family, variant):
    return next(one for one in concluded(family).bounds if one.variant == variant)


def changes(family, variant):
    """The changes of a step by quantity."""
    return {one.quantity: one for one in concluded(family).changes if one.variant == variant}


def reasons(family, variant):
    """The quantities that argue for or against a step."""
    return {name for name, one in changes(family, variant).items() if one.role in ("cause", "cost")}


@pytest.mark.parametrize(("variant", "twin"), [("warp_per_row", "registers"), ("cluster", "warp_per_row")])
def test_softmax_variants_that_take_the_same_path_at_the_headline_case_explain_no_noise(variant, twin):
    one = step("softmax", variant)
    assert (one.twin, one.twin_code, one.word) == (twin, "same", "SAME")
    assert one.twin_instructions == one.instructions
    assert not reasons("softmax", variant)


def test_best_of_launches_the_kernel_of_another_variant_in_other_machine_code():
    one = step("sgemm", "best_of")
    assert (one.twin, one.twin_code) == ("register_reuse", "recompiled")
    assert one.twin_instructions != one.instructions
    assert not step("sgemm", "gmem_coalesced").twin
    assert not step("sgemm", "autotuned").twin


def test_the_waits_of_wgmma_kernels_are_told_by_their_hot_lines():
    narrow = changes("bf16_gemm", "wgmma_tma_n256")["long_scoreboard"]
    assert (narrow.wait, narrow.wait_line.partition(":")[0]) == ("tma", "mbarrier.cuh")
    wide = changes("bf16_gemm", "wgmma_pipelined")["barrier"]
    assert (wide.wait, wide.wait_line.partition(":")[0]) == ("wgmma", "wgmma_pipelined.cu")
    assert changes("bf16_gemm", "wmma_tiled")["long_scoreboard"].wait == ""


def test_a_kernel_that_executes_no_mbarrier_instruction_does_not_wait_at_one():
    """At rows of 16 KiB, one_exchange launches the instantiation of a template in which one block handles a row."""
    one = bound("layernorm", "one_exchange")
    assert (one.stall, one.wait) == ("long_scoreboard", "")


def test_a_step_of_a_kernel_that_waits_for_l2_or_tensor_cores_is_told_by_them():
    for variant in ("wgmma_tma_n128", "wgmma_tma_store"):
        assert "instructions_executed" not in reasons("bf16_gemm", variant)
    assert {"l2_bytes", "long_scoreboard"} <= reasons("bf16_gemm", "wgmma_tma_n128")
    bubble = changes("bf16_gemm", "wgmma_tma_store")["bubble_us"]
    assert (bubble.role, bubble.of) == ("cause", "wgmma_cluster"), "the nearest ancestor with a timeline"
    assert (round(bubble.before, 2), round(bubble.after, 2)) == (5.95, 1.12), (
        "of the longest gap at each tile end"
    )
    found = changes("bf16_gemm", "wgmma_pipelined")
    assert (found["blocks_per_sm"].before, found["blocks_per_sm"].after) == (3, 1)
    assert (
        changes("sgemm", "split_k")["dram_bytes"].after > 4 * changes("sgemm", "split_k")["dram_bytes"].before
    )


def test_a_cause_that_is_told_is_one():
    """What readers took for wrong: a small counter at a wait, more wavefronts as excess ones, and kernels left out."""
    atomics, alike = changes("reduction", "grid_stride"), changes("reduction", "float4")
    assert (atomics["contended_atomics"].role, atomics["contended_atomics"].after) == ("cause", 0)
    assert atomics["dram_throughput_pct"].role == "effect"
    assert step("reduction", "float4").explained == "no_cause", "the use of device memory at the same traffic"
    assert alike["dram_throughput_pct"].role == "effect"
    assert "dram_bytes" not in alike
    assert "sm_busy_pct" not in reasons("reduction", "float4")
    assert step("reduction", "interleaved").others_us > step("reduction", "interleaved").parent_others_us > 0
    assert {"shared_wavefronts_excess", "short_scoreboard"} <= reasons("reduction", "interleaved")
    online = [one.of for one in concluded("softmax").changes if one.variant == "online"]
    assert "short_scoreboard" not in online, "LDS are 0.5 % of its instructions"
    grid = changes("softmax", "block_per_row")["grid_blocks"]
    assert (grid.role, grid.before, grid.after) == ("cause", 32, 4096)
    assert "blocks_per_sm" not in changes("softmax", "block_per_row")
