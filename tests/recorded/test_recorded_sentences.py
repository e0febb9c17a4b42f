"""What the pages say about the recorded campaign where the counters alone would mislead."""

import re
from pathlib import Path

import pytest

import shipped_families
from warplog import worklog
from warplog.catalog import winners
from warplog.catalog.header import read_source
from warplog.core.defaults import DEFAULTS
from warplog.core.records import read_json
from warplog.judge import evidence
from warplog.judge.audit import Audit, PageAudit
from warplog.tables import view
from warplog.worklog import explain
from warplog.worklog.sentences import sentence

ROOT = Path(__file__).parents[2] / "results" / "recorded" / DEFAULTS["recorded"]
TABLES = ROOT / "tables"
CAPTIONS = Path(__file__).parents[2] / "workflow" / "report"


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
            f"At 4096x4096, it launches the same kernel as {parent} (equal opcode counts, registers, grid and executed"
            " instructions)."
        )
        assert "waiting" not in told["softmax", name]


def test_best_of_says_that_it_launches_the_kernel_of_another_variant_in_other_machine_code(told):
    assert re.search(
        r"At 4096, it launches the kernel of register_reuse, compiled to other machine code \(\d+ instead of \d+"
        r" instructions, \d+ registers\)",
        told["sgemm", "best_of"],
    )
    assert not any(
        "launches the" in text for key, text in told.items() if key[1] in ("gmem_coalesced", "autotuned")
    )


def test_the_waits_of_wgmma_kernels_are_told_by_their_hot_lines(told):
    narrow, wide = told["bf16_gemm", "wgmma_tma_n256"], told["bf16_gemm", "wgmma_pipelined"]
    assert "waiting for TMA loads (long_scoreboard, mostly at the mbarrier wait of mbarrier.cuh:" in narrow
    assert "waiting for the tensor cores (barrier, mostly at the wgmma wait of " in wide
    assert "waiting for data from global or local memory (long_scoreboard)" in told["bf16_gemm", "wmma_tiled"]


def test_a_step_of_a_kernel_that_waits_for_l2_or_tensor_cores_is_told_by_them(told):
    narrow, store = told["bf16_gemm", "wgmma_tma_n128"], told["bf16_gemm", "wgmma_tma_store"]
    assert "Utilisation: L2 84.9 % → 68 %" in narrow
    assert "(0.876, with 3.88 → 3.1 waves of blocks)" in narrow
    assert (
        "The median gap in computing at a tile end is 3.36 µs → 1.42 µs, compared with wgmma_cluster."
        in store
    )
    assert "instructions" not in narrow + store
    assert "Blocks per SM 3 → 1." in told["bf16_gemm", "wgmma_pipelined"]
    assert "DRAM bytes 397 M → 1.73 G" in told["sgemm", "split_k"]


def test_no_step_of_a_child_repeats_what_was_counted_differently_in_its_parent(told):
    """The counters of vectorized are of several passes, of which some took 4 % more cycles than others."""
    assert not any("remains" in text for text in told.values())
    assert "No counter accounts for this difference." in told["bf16_gemm", "wgmma_cluster"]


@pytest.fixture(scope="module")
def pages():
    """The pages of three families as Markdown, with the evidence of their tables."""
    campaign = read_json(next((ROOT / "campaign").glob("*.json")), "record")
    families = winners.with_winners(shipped_families.FAMILIES, campaign["gpu"])
    found = {}
    for name in ("sgemm", "bf16_gemm", "softmax"):
        page = worklog.gather(families[name], view.load(TABLES, name), campaign, [], CAPTIONS)
        found[name] = worklog.markdown(page, ROOT), evidence.read(TABLES, name)
    return found


def audited(pages, family, old="", new=""):
    text, known = pages[family]
    assert re.search(old, text), old
    result = Audit()
    PageAudit(f"{family}.md", known, result).run(re.sub(old, new, text, count=1) if old else text)
    return result


@pytest.mark.parametrize("family", ["sgemm", "bf16_gemm", "softmax"])
def test_every_number_of_the_pages_is_attributed_and_right(pages, family):
    result = audited(pages, family)
    assert result.passed, (result.wrong, result.unattributed)
    assert result.checked > 500


@pytest.mark.parametrize(
    ("family", "old", "new"),
    [
        ("sgemm", r"it launches the kernel of register_reuse", "it launches the kernel of tma_pipelined"),
        ("sgemm", r"machine code \((\d+) instead", r"machine code (1\1 instead"),
        ("sgemm", r"Compared with register_reuse, which is faster", "Compared with naive, which is faster"),
        ("sgemm", r"accesses use (\d)", r"accesses use 9\1"),
        ("sgemm", r"\*\*1\.(\d+)x\*\* at 8192", r"**2.\1x** at 8192"),
        ("sgemm", r"above the expected 0\.9 to 1\.1 times", "within the expected 0.9 to 1.1 times"),
        ("sgemm", r"above the expected 0\.9 to 1\.1 times", "above the expected 0.8 to 1.1 times"),
        ("softmax", r"it launches the same kernel as registers", "it launches the same kernel as online"),
        ("softmax", r"\(claims at 1024x32768\)", "(claims at 4096x4096)"),
        ("bf16_gemm", r"waiting for TMA loads", "waiting for the tensor cores"),
        ("bf16_gemm", r"the wgmma wait of (\S+):(\d+)", r"the wgmma wait of \1:9\2"),
        (
            "bf16_gemm",
            r"an mbarrier, or data from global or local memory",
            "data from global or local memory",
        ),
        ("bf16_gemm", r"Utilisation: L2 (\d)", r"Utilisation: L2 1\1"),
        ("bf16_gemm", r"Traffic: L2 bytes \d", "Traffic: L2 bytes 77"),
        ("bf16_gemm", r"Blocks per SM (\d+) → (\d+)", r"Blocks per SM \2 → \1"),
        ("bf16_gemm", r"with (\S+) → (\S+) waves of blocks", r"with \2 → \1 waves of blocks"),
        ("bf16_gemm", r"is 3.36 µs → 1.42 µs", "is 3.36 µs → 1.24 µs"),
        ("bf16_gemm", r"compared with wgmma_cluster\.", "compared with wgmma_tuned."),
        ("bf16_gemm", r"a launch goes from (\d+) to (\d+) MHz", r"a launch goes from \2 to \1 MHz"),
        ("bf16_gemm", r"Less (\w+) (\([^)]*\)): (\d+ %) → (\S+ %) of", r"Less \1 \2: \4 → \3 of"),
        ("bf16_gemm", r"\(1.18x the time\)", "(1.33x the time)"),
        ("bf16_gemm", r"(\d+) of (\d+) launches discarded", r"1\1 of \2 launches discarded"),
        (
            "bf16_gemm",
            r"The busiest unit is the tensor pipe, at 80 % of its peak",
            "It is bound by the tensor pipe, at 80 % of the peak",
        ),
        ("sgemm", "Case 4096 is M = N = K = 4096", "Case 4096 is M = N = K = 8192"),
        ("sgemm", r", above the theoretical value by the inaccuracy of the counters", ""),
        ("bf16_gemm", r"tied with it within noise: \w+, ", "tied with it within noise: "),
    ],
)
def test_an_error_in_such_a_sentence_is_found(pages, family, old, new):
    assert audited(pages, family, old, new).wrong
