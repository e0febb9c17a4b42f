"""What the pages say about the recorded campaign where the counters alone would mislead."""

from pathlib import Path

import pytest

import shipped_families
from warplog.catalog.header import read_source
from warplog.core.defaults import DEFAULTS
from warplog.tables import view
from warplog.worklog import explain
from warplog.worklog.sentences import sentence

TABLES = Path(__file__).parents[2] / "results" / "recorded" / DEFAULTS["recorded"] / "tables"


@pytest.fixture(scope="module")
def told():
    """The sentences of steps of the recorded campaign, by family and variant."""
    found = {}
    for family in ("sgemm", "softmax", "bf16_gemm"):
        variants = shipped_families.FAMILIES[family].variants
        sources = {
            v.name: {path.name: read_source(path) for path in (v.file, *v.headers())} for v in variants
        }
        for step in explain.steps(view.load(TABLES, family), sources):
            found[family, step.variant] = sentence(step)
    return found


def test_softmax_variants_that_take_the_same_path_at_the_headline_case_say_so_and_explain_no_noise(told):
    for name, parent in (("warp_per_row", "registers"), ("cluster", "warp_per_row")):
        assert told["softmax", name].endswith(
            f"At 4096x4096, it launches the same kernel as {parent} (equal machine code by opcode, registers, grid and"
            " executed instructions)."
        )
        assert "waiting" not in told["softmax", name]


def test_best_of_says_that_it_launches_the_kernel_of_another_variant_in_other_machine_code(told):
    assert (
        "At 4096, it launches the kernel of register_reuse, compiled to other machine code (6134 instead of 6138"
        " instructions, 211 registers); it reaches 1.01x the speed of register_reuse."
        in told["sgemm", "best_of"]
    )
    assert not any(
        "launches the" in text for key, text in told.items() if key[1] in ("gmem_coalesced", "autotuned")
    )


def test_the_waits_of_wgmma_kernels_are_told_by_their_hot_lines(told):
    narrow, wide = told["bf16_gemm", "wgmma_tma_n256"], told["bf16_gemm", "wgmma_pipelined"]
    assert "waiting for TMA loads (long_scoreboard, mostly at the mbarrier wait of mbarrier.cuh:" in narrow
    assert "waiting for the tensor cores (barrier, mostly at the wgmma wait of " in wide
    assert "waiting for data from global or local memory (long_scoreboard)" in told["bf16_gemm", "wmma_tiled"]
