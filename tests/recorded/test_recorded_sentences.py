"""What the pages say about the recorded campaign where the counters alone would mislead."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import shipped_families
from warplog import worklog
from warplog.catalog import winners
from warplog.catalog.header import read_source
from warplog.judge import evidence
from warplog.judge.audit import Audit, PageAudit
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.config import Config
from warplog.tables import view
from warplog.worklog import explain
from warplog.worklog.sentences import sentence

_PAGES = ("sgemm", "bf16_gemm", "softmax", "layernorm", "reduction", "overlap")
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


@pytest.fixture(scope="module")
def pages():
    """The pages of three families as Markdown, with the evidence of their tables."""
    campaign = door.read(next((ROOT / "campaign").glob("*.json")), Campaign)
    families = winners.with_winners(shipped_families.FAMILIES, campaign.gpu)
    found = {}
    for name in _PAGES:
        page = worklog.gather(families[name], tables_of(name), campaign, [], CAPTIONS)
        found[name] = worklog.markdown(page, ROOT), evidence.read(TABLES, name)
    return found


def audit(known, family, text):
    result = Audit()
    PageAudit(f"{family}.md", known, result).run(text)
    return result


@pytest.fixture(scope="module")
def sections(pages):
    """The sections of each page, each at its line and without error."""
    found = {}
    for family, (text, known) in pages.items():
        parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)
        before = [sum(part.count("\n") for part in parts[:place]) for place in range(len(parts))]
        found[family] = ["\n" * lines + part for lines, part in zip(before, parts, strict=True)]
        assert all(audit(known, family, part).passed for part in found[family])
    return found


@pytest.mark.parametrize("family", _PAGES)
def test_every_number_of_the_pages_is_attributed_and_right(pages, family):
    text, known = pages[family]
    result = audit(known, family, text)
    assert result.passed, (result.wrong, result.unattributed)
    assert result.checked > (200 if family == "overlap" else 500), "overlap has no counters"


def test_variants_with_the_same_kernel_are_named_together_and_explained_once(pages):
    text, _ = pages["softmax"]
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


@pytest.mark.parametrize(
    ("family", "old", "new"),
    [
        ("sgemm", r"it launches the kernel of register_reuse", "it launches the kernel of tma_pipelined"),
        ("sgemm", r"machine code \((\d+) instead", r"machine code (1\1 instead"),
        ("sgemm", r"accesses use (\d)", r"accesses use 9\1"),
        ("sgemm", r"\*\*1\.(\d+)x\*\* at 8192", r"**2.\1x** at 8192"),
        ("sgemm", r"(above|below) the expected (\S+) to (\S+) times", r"within the expected \2 to \3 times"),
        ("sgemm", r"(above|below) the expected (\S+) to (\S+) times", r"\1 the expected \2 to 1\3 times"),
        ("softmax", r"Same kernel as registers at", "Same kernel as online at"),
        ("softmax", r"see step 6 for", "see step 5 for"),
        ("softmax", r"\*\*(\S+)x\*\* at 1x65536 \(", r"**7\1x** at 1x65536 ("),
        ("softmax", r"the same kernel\*\* as registers", "the same kernel** as vectorized"),
        ("softmax", r"registers, warp_per_row, cluster and", "registers, cluster and"),
        ("softmax", r"with (\d+) to (\d+) GB/s", r"with 1\1 to \2 GB/s"),
        ("softmax", r"\| +same kernel \|", "| 1.01x |"),
        ("softmax", r"claim confirmed \(at 1024x32768\)", "claim confirmed (at 4096x4096)"),
        ("softmax", r"claim confirmed", "claim refuted"),
        (
            "softmax",
            r"slower than (\w+) by more than 2 % at (\d+) of",
            r"slower than \1 by more than 2 % at 1\2 of",
        ),
        ("softmax", r"(slower than \w+ by more than 2 % at \d+ of \d+ cases, )(\S+)x at", r"\g<1>7\2x at"),
        ("softmax", r"below the expected 1\.3 times", "above the expected 1.3 times"),
        ("softmax", r"about the expected 1\.12 times", "below the expected 1.12 times"),
        ("softmax", r"Blocks in the grid 32 →", "Blocks in the grid 23 →"),
        ("softmax", r"its peak; device memory is at 6", "its peak; device memory is at 7"),
        ("softmax", r"32 blocks for 132 SMs", "32 blocks for 123 SMs"),
        ("softmax", r"0\.84 times the compulsory", "about the compulsory"),
        ("softmax", r"median of 3 processes \((\S+) to", r"median of 3 processes (1\1 to"),
        ("reduction", r"(; as expected.*)", "; not as expected."),
        ("reduction", r"interleaved and atomics are slower", "interleaved is slower"),
        ("reduction", r"not as expected: slower than both", "as expected"),
        ("reduction", r"(\S+) µs less than float4", r"9\1 µs less than float4"),
        ("reduction", r"same traffic \(271 MB\)", "same traffic (217 MB)"),
        ("reduction", r"Device memory (\d)", r"Device memory 9\1"),
        ("reduction", r"no longer bound it", "bound it"),
        ("reduction", r"other kernels of the launch (\d)", r"other kernels of the launch 9\1"),
        ("reduction", r"mainly through its (\d)", r"mainly through its 9\1"),
        ("reduction", r"; the same bytes use (\d)", r"; the same bytes use 9\1"),
        ("layernorm", r"copies take (\d)", r"copies take 9\1"),
        ("layernorm", r"; more in (\w+ \(waiting [^)]*\)): (\d)", r"; more in \1: 9\2"),
        ("overlap", r"copies in for (\d)", r"copies in for 9\1"),
        ("overlap", r"\d+ % of the copy time is overlapped", "9 % of the copy time is overlapped"),
        ("overlap", r"No copy time is overlapped", "9 % of the copy time is overlapped"),
        ("bf16_gemm", r"\): waiting for TMA loads", "): waiting for the tensor cores"),
        ("bf16_gemm", r"the wgmma wait of (\S+):(\d+)", r"the wgmma wait of \1:9\2"),
        (
            "bf16_gemm",
            r"an mbarrier, or data from global or local memory",
            "data from global or local memory",
        ),
        ("bf16_gemm", r"Utilisation: L2 (\d)", r"Utilisation: L2 1\1"),
        ("bf16_gemm", r"Traffic: L2 \d", "Traffic: L2 77"),
        ("bf16_gemm", r"\((\d+) → (\d+) blocks per SM", r"(\2 → \1 blocks per SM"),
        ("bf16_gemm", r"blocks: (\S+) → (\S+) waves", r"blocks: \2 → \1 waves"),
        ("bf16_gemm", r"a less full last wave", "a fuller last wave"),
        (
            "bf16_gemm",
            r"where wgmma_tile128 waits for TMA loads",
            "where wgmma_tile128 waits for loads or other warps",
        ),
        ("bf16_gemm", r"where wgmma_tile128 waits for TMA loads", "where wgmma_tma waits for TMA loads"),
        ("bf16_gemm", r"; L2 traffic fell", "; L2 traffic rose"),
        ("bf16_gemm", r"Device-memory traffic is (\d)", r"Device-memory traffic is 9\1"),
        ("bf16_gemm", r"\. The busiest unit is L2;", ". It is bound by L2;"),
        ("bf16_gemm", r"\. The busiest unit is L2;", ". The busiest unit is the tensor pipe;"),
        ("bf16_gemm", r"; achieved occupancy is (\d)", r"; achieved occupancy is 9\1"),
        ("bf16_gemm", r"tile falls from (\S+) µs (.*?) to (\S+) µs", r"tile falls from \3 µs \2 to \1 µs"),
        ("bf16_gemm", r"\(in wgmma_cluster, the nearest", "(in wgmma_tuned, the nearest"),
        ("bf16_gemm", r"a launch (rises|falls) from (\d+) to (\d+) MHz", r"a launch \1 from \3 to \2 MHz"),
        ("bf16_gemm", r"Less time in (\w+) (\([^)]*\)): (\S+) → (\S+) µs", r"Less time in \1 \2: \4 → \3 µs"),
        ("bf16_gemm", r"1\.\d+x the time at rest", "9.99x the time at rest"),
        ("bf16_gemm", r"the time at rest", "the time with a cold L2"),
        ("bf16_gemm", r"(\d+) of (\d+) launches discarded", r"\1 of 1\2 launches discarded"),
        (
            "bf16_gemm",
            r"The busiest unit is the tensor pipe, at (\S+) % of its peak",
            r"It is bound by the tensor pipe, at \1 % of its peak",
        ),
        ("bf16_gemm", r"slightly faster was expected", "not as expected"),
        ("bf16_gemm", r"slightly faster was expected", "faster was expected"),
        ("bf16_gemm", r"; about the expected (\d+) TFLOP/s", r"; below the expected \1 TFLOP/s"),
        ("bf16_gemm", r"; about the expected (\d+) TFLOP/s", r"; about the expected 9\1 TFLOP/s"),
        ("bf16_gemm", r"at 8192 \(about the expected 770", "at 8192 (about the expected 731"),
        ("bf16_gemm", r"Got: \*\*(\d+) TFLOP/s", r"Got: **9\1 TFLOP/s"),
        ("bf16_gemm", r"\(tied within noise; as expected\)", "(as expected)"),
        ("bf16_gemm", r"\(tied within noise; as expected\)", "(tied within noise; faster than expected)"),
        ("sgemm", r"within noise of the expected", "within the expected"),
        ("sgemm", r"within noise of the expected", "below the expected"),
        (
            "sgemm",
            r"as expected: 0\.(\d+)x the speed of autotuned",
            r"as expected: 0.9\1x the speed of autotuned",
        ),
        ("sgemm", r"x the speed of cublas, as expected", "x the speed of cublas, not as expected"),
        ("softmax", r"(\*\*\S+x\*\* at 65536x128-bf16) \(as expected\)", r"\1 (below the expected 2 times)"),
        ("sgemm", "Case 4096 is M = N = K = 4096", "Case 4096 is M = N = K = 8192"),
        ("sgemm", r" \(more than theory allows: the counters are inexact\)", ""),
        ("bf16_gemm", r"tied with it within noise: \w+, ", "tied with it within noise: "),
    ],
)
def test_an_error_in_such_a_sentence_is_found(pages, sections, family, old, new):
    section = next(one for one in sections[family] if re.search(old, one))
    assert audit(pages[family][1], family, re.sub(old, new, section, count=1)).wrong


@pytest.mark.parametrize(("before", "is_right"), [("", True), ("7", False)])
def test_the_case_where_a_variant_differs_most_is_checked(pages, before, is_right):
    """No recorded page has the sentence: the expectation of cluster names that case."""
    text, known = pages["softmax"]
    ratio = re.search(r"\*\*(\S+x)\*\* at 1x65536 \(", text.partition("## 8. cluster")[2])[1]
    most = f"It differs most at 1x65536: {before}{ratio} the speed of warp_per_row."
    result = audit(known, "softmax", re.sub(r"(for its counters\.)(?=\n+## 9\. )", rf"\1 {most}", text))
    assert result.passed == is_right, (result.wrong, result.unattributed)
    assert not result.unattributed
