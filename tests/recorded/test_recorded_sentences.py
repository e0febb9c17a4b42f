"""What the pages say about the recorded campaign where the counters alone would mislead."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from warplog.worklog.sentences import sentence

import shipped_families
from warplog import worklog
from warplog.catalog import winners
from warplog.catalog.header import read_source
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.config import Config
from warplog.tables import view
from warplog.worklog import explain

ROOT = Path(__file__).parents[2] / "results" / "recorded" / Config().recorded
TABLES = ROOT / "tables"
CAPTIONS = Path(__file__).parents[2] / "workflow" / "report"


@cache
def of_all_families():
    return view.read_all(TABLES)


@cache
def tables_of(family):
    """The tables of a family of the recorded campaign, which no test changes."""
    return view.of_family(of_all_families(), TABLES, family)


@pytest.fixture(scope="module")
def told():
    """The sentences of steps of the recorded campaign, by family and variant."""
    found = {}
    for family in ("sgemm", "softmax", "layernorm", "reduction", "bf16_gemm"):
        variants = shipped_families.FAMILIES[family].variants
        sources = {
            v.name: {path.name: read_source(path) for path in (v.file, *v.headers())} for v in variants
        }
        for step in explain.Explanation(tables_of(family), sources).steps:
            found[family, step.variant] = sentence(step)
    return found


def test_softmax_variants_that_take_the_same_path_at_the_headline_case_say_so_and_explain_no_noise(told):
    for name, parent in (("warp_per_row", "registers"), ("cluster", "warp_per_row")):
        assert told["softmax", name] == (
            f"At 4096x4096, it launches the same kernel as {parent} (equal opcode counts, registers, grid and executed"
            " instructions)."
        )
        assert "waiting" not in told["softmax", name]


def test_best_of_says_that_it_launches_the_kernel_of_another_variant_in_other_machine_code(told):
    assert re.search(
        r"At 4096, it launches the kernel of register_reuse, compiled to different machine code \(\d+ instead of \d+"
        r" instructions, \d+ registers in both\)",
        told["sgemm", "best_of"],
    )
    assert not any(
        "launches the" in text for key, text in told.items() if key[1] in ("gmem_coalesced", "autotuned")
    )


def test_the_waits_of_wgmma_kernels_are_told_by_their_hot_lines(told):
    narrow, wide = told["bf16_gemm", "wgmma_tma_n256"], told["bf16_gemm", "wgmma_pipelined"]
    assert "Waiting for TMA loads (long_scoreboard, mostly at the mbarrier wait of mbarrier.cuh:" in narrow
    assert "Waiting for the tensor cores (barrier, mostly at the wgmma wait of " in wide
    assert "Waiting for data from global or local memory (long_scoreboard)" in told["bf16_gemm", "wmma_tiled"]


def test_a_step_of_a_kernel_that_waits_for_l2_or_tensor_cores_is_told_by_them(told):
    narrow, store = told["bf16_gemm", "wgmma_tma_n128"], told["bf16_gemm", "wgmma_tma_store"]
    assert re.search(r"Utilisation: L2 \S+ % → \S+ %", narrow)
    assert re.search(r"\(0\.\d+x, with a less full last wave of blocks: 3.88 → 3.1 waves\)", narrow)
    assert re.search(
        r"The median pipeline bubble at the end of a tile falls from \S+ µs \(in wgmma_cluster, the nearest"
        r" ancestor with a timeline\) to \S+ µs\.",
        store,
    )
    assert "instructions" not in narrow + store
    assert (
        "Theoretical occupancy 18.8 % → 12.5 % (3 → 1 blocks per SM)." in told["bf16_gemm", "wgmma_pipelined"]
    )
    assert re.search(r"device memory \S+ MB → \S+ GB", told["sgemm", "split_k"])


def test_no_step_of_a_child_repeats_what_was_counted_differently_in_its_parent(told):
    """The counters of vectorized are of several passes, of which some took 4 % more cycles than others."""
    assert not any("remains" in text for text in told.values())


def test_a_cause_that_is_told_is_one(told):
    """What readers took for wrong: a small counter at a wait, more wavefronts as excess ones, and kernels left out."""
    memory = r"Device memory \S+ % → \S+ % of its peak at the same traffic \(271 MB\)\."
    atomics = told["reduction", "grid_stride"].partition(" Waiting")[0]
    assert re.search(rf"Contended global atomics no longer bound it\. {memory}$", atomics)
    assert re.search(memory, told["reduction", "float4"])
    assert "SM activity" not in told["reduction", "float4"]
    assert re.search(
        r"The longest kernel takes \S+ → \S+ µs under ncu, the other kernels of the launch \S+ → \S+ µs\.",
        "".join(text for (family, _), text in told.items() if family == "reduction"),
    )
    assert "rose as well" not in told["reduction", "interleaved"], "shared wavefronts fell"
    alone = r"\(short_scoreboard\): \S+ → \S+ µs\."
    assert re.search(alone, told["reduction", "interleaved"])
    assert re.search(alone, told["softmax", "online"]), "LDS are 0.5 % of its instructions"
    assert "SM activity" not in told["softmax", "shuffle"] + told["softmax", "online"]
    assert "Blocks in the grid 32 → 4096 (0.015 → 3.88 waves)." in told["softmax", "block_per_row"]
    assert "blocks per SM" not in told["softmax", "block_per_row"]


def test_a_kernel_that_executes_no_mbarrier_instruction_does_not_wait_at_one():
    """At rows of 16 KiB, one_exchange launches the instantiation of a template in which one block handles a row."""
    variant = shipped_families.FAMILIES["layernorm"].variant("one_exchange")
    texts = {path.name: read_source(path) for path in (variant.file, *variant.headers())}
    limits = explain.Explanation(tables_of("layernorm"), {variant.name: texts}).bounds
    one = next(limit for limit in limits if limit.variant == variant.name)
    assert (one.stall, one.wait) == ("long_scoreboard", None)


def test_the_case_where_a_variant_differs_most_is_told_once():
    """With its kernel at the headline case, if the expectation does not name that case."""
    family = shipped_families.FAMILIES["softmax"]
    campaign = door.read(next((ROOT / "campaign").glob("*.json")), Campaign)
    tables = tables_of("softmax")

    def step(expected):
        one = replace(tables, variants=tables.variants.assign(expected=expected))
        page = worklog.gather(family, one, campaign, [], CAPTIONS)
        return next(rung for rung in page.rungs if rung.name == "warp_per_row")

    named = step("Twice `registers` or more at 128 columns.")
    assert [where for _, where in named.elsewhere] == [
        "at 65536x128-bf16 (as expected)",
        "at 65536x128 (as expected)",
    ]
    assert named.story == ("Same kernel as registers at 4096x4096; see step 6 for its counters.",)
    assert step("Faster.").story[1].startswith("It differs most at 65536x128-bf16: ")


def test_variants_with_the_same_kernel_are_named_together_and_explained_once():
    campaign = door.read(next((ROOT / "campaign").glob("*.json")), Campaign)
    families = winners.with_winners(shipped_families.FAMILIES, campaign.gpu)
    text = worklog.markdown(
        worklog.gather(families["softmax"], tables_of("softmax"), campaign, [], CAPTIONS), ROOT
    )
    assert re.search(
        r"At 4096x4096, the fastest variants are registers, warp_per_row, cluster and one_exponential, which launch the"
        r" same kernel, with \d+ to \d+ GB/s, \S+ to \S+ % of torch; tied with them within noise: vectorized, triton\.",
        text,
    )
    step = text.partition("## 8. cluster")[2].partition("## 9.")[0]
    assert "Same kernel as registers at 4096x4096; see step 6 for its counters.\n" in step
    assert re.search(r"; \*\*\S+x\*\* at 1x65536 \(", step), (
        "where it differs most, beside what was expected there"
    )
    assert "Got: **the same kernel** as warp_per_row (4096x4096, at rest)" in step
    assert "BLOCK 512 (not used at 4096x4096)" in step
    assert not re.search(r"largest stall|\| state|\| quantity|\| line|tied", step)
    path = text.partition("## The main path")[2].partition("##")[0]
    rows = [line.split("|") for line in path.splitlines() if line.startswith("| ")]
    assert [row[3].strip() for row in rows if row[1].split()[0] in ("cluster", "one_exponential")] == [
        "same kernel"
    ] * 2
