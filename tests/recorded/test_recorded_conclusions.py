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
    return next(step for step in concluded(family).steps if step.variant == variant)


def bound(family, variant):
    return next(bound for bound in concluded(family).bounds if bound.variant == variant)


def changes(family, variant):
    """The changes of a step by quantity."""
    return {change.quantity: change for change in concluded(family).changes if change.variant == variant}


def reasons(family, variant):
    """The quantities that argue for or against a step."""
    return {name for name, change in changes(family, variant).items() if change.role in ("cause", "cost")}


@pytest.mark.parametrize(
    ("variant", "twin", "word"),
    [("warp_per_row", "registers", "SAME"), ("cluster", "warp_per_row", "AMBIGUOUS")],
)
def test_softmax_variants_that_take_the_same_path_at_the_headline_case_explain_no_noise(variant, twin, word):
    conclusion = step("softmax", variant)
    assert (conclusion.twin, conclusion.twin_code, conclusion.word) == (twin, "same", word)
    assert conclusion.twin_instructions == conclusion.instructions
    assert not reasons("softmax", variant)


def test_best_of_launches_the_kernel_of_another_variant():
    conclusion = step("sgemm", "best_of")
    assert (conclusion.twin, conclusion.twin_code) == ("register_reuse", "same")
    assert conclusion.twin_instructions == conclusion.instructions
    assert not step("sgemm", "gmem_coalesced").twin
    assert not step("sgemm", "autotuned").twin


def test_the_stalls_of_wgmma_kernels_are_explained_by_their_hot_lines():
    narrow = changes("bf16_gemm", "wgmma_tma_n256")["long_scoreboard"]
    assert (narrow.wait, narrow.wait_line.partition(":")[0]) == ("tma", "mbarrier.cuh")
    wide = changes("bf16_gemm", "wgmma_pipelined")["barrier"]
    assert (wide.wait, wide.wait_line.partition(":")[0]) == ("wgmma", "wgmma_pipelined.cu")
    assert changes("bf16_gemm", "wmma_tiled")["long_scoreboard"].wait == ""


def test_a_kernel_that_executes_no_mbarrier_instruction_does_not_wait_at_one():
    """At rows of 16 KiB, one_exchange launches the instantiation of a template in which one block handles a row."""
    conclusion = bound("layernorm", "one_exchange")
    assert (conclusion.stall, conclusion.wait) == ("long_scoreboard", "")


def test_a_step_of_a_kernel_that_waits_for_l2_or_tensor_cores_is_explained_by_them():
    for variant in ("wgmma_tma_n128", "wgmma_tma_store"):
        assert "instructions_executed" not in reasons("bf16_gemm", variant)
    assert {"l2_bytes", "long_scoreboard"} <= reasons("bf16_gemm", "wgmma_tma_n128")
    bubble = changes("bf16_gemm", "wgmma_tma_store")["bubble_us"]
    assert (bubble.role, bubble.of) == ("cause", "wgmma_cluster"), "the nearest ancestor with a timeline"
    assert (round(bubble.before, 2), round(bubble.after, 2)) == (6.45, 1.39), (
        "of the longest gap at each tile end"
    )
    by_quantity = changes("bf16_gemm", "wgmma_pipelined")
    assert (by_quantity["blocks_per_sm"].before, by_quantity["blocks_per_sm"].after) == (3, 1)
    assert (
        changes("sgemm", "split_k")["dram_bytes"].after > 4 * changes("sgemm", "split_k")["dram_bytes"].before
    )


def test_a_cause_that_is_shown_is_one():
    """What readers took for wrong: a small counter at a wait, more wavefronts as excess ones, and kernels left out."""
    atomics, alike = changes("reduction", "grid_stride"), changes("reduction", "float4")
    assert (atomics["contended_atomics"].role, atomics["contended_atomics"].after) == ("cause", 0)
    assert atomics["dram_throughput_pct"].role == "effect"
    assert reasons("reduction", "float4") == {"long_scoreboard"}, (
        "not the use of device memory at the same traffic"
    )
    assert alike["dram_throughput_pct"].role == "effect"
    assert "dram_bytes" not in alike
    assert "sm_busy_pct" not in reasons("reduction", "float4")
    assert step("reduction", "interleaved").others_us > step("reduction", "interleaved").parent_others_us > 0
    assert {"shared_wavefronts_excess", "short_scoreboard"} <= reasons("reduction", "interleaved")
    online = [change.of for change in concluded("softmax").changes if change.variant == "online"]
    assert "short_scoreboard" not in online, "LDS are 0.5 % of its instructions"
    grid = changes("softmax", "block_per_row")["grid_blocks"]
    assert (grid.role, grid.before, grid.after) == ("cause", 32, 4096)
    assert "blocks_per_sm" not in changes("softmax", "block_per_row")
