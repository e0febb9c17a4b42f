"""What nvcc makes of the sgemm ladder: the instructions that each rung is about, no spills, no warnings."""

import ctypes
import re
import shutil

import pytest

from sass_builds import Kind, builder, built, check, compilers
from shipped_families import FAMILIES, KERNELS
from warplog.catalog import family as catalog
from warplog.measure.building import build
from warplog.parsers import sass

FAMILY = FAMILIES["sgemm"]
SWAPPED = str.maketrans("XY", "YX")
REGISTERS_PER_SM = 65536

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def build_all(kept_builds):
    return builder(FAMILY, kept_builds)


@pytest.fixture(scope="module")
def builds(build_all):
    return build_all("sm_90")


def kernels(builds, name):
    return builds[name][1].kernels


def count(kernel, prefix):
    return sass.matching(kernel.opcodes, prefix)


def instructions(folder):
    """The code without addresses and encodings."""
    return re.findall(
        r"^\s+/\*[0-9a-f]{4,5}\*/\s+(.*?)\s*;", (folder / "kernel.sass").read_text(), re.MULTILINE
    )


def main_loop(folder, kernel):
    """The instructions of the innermost loop with nearly all multiply-adds of the kernel with that word in its name."""
    text = (folder / "kernel.sass").read_text()
    (body,) = [part for part in text.split("Function : ")[1:] if kernel in part.split("\n", 1)[0]]
    found = re.findall(r"^\s+/\*([0-9a-f]{4,5})\*/\s+(.*?)\s*;", body, re.MULTILINE)
    place = {int(address, 16): i for i, (address, _) in enumerate(found)}
    loops = []
    for i, (address, instruction) in enumerate(found):
        jump = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)$", instruction)
        if jump and int(jump[1], 16) < int(address, 16):
            loops.append([text for _, text in found[place[int(jump[1], 16)] : i + 1]])
    most = max(products(loop) for loop in loops)
    return min((loop for loop in loops if products(loop) > 0.9 * most), key=len)


def products(loop):
    return sum(text.startswith("FFMA") for text in loop)


def register_reads_per_product(loop):
    """How many registers a multiply-add reads: an operand that the last read with `.reuse` left is not read.

    The cache of each operand keeps one register of each bank, of which an odd register is the one and an even
    one the other (Z. Jia et al., arXiv:1804.06826, for Volta; taken to hold since).
    """
    kept, reads = {}, 0
    for text in loop:
        if not text.startswith("FFMA"):
            continue
        for operand, source in enumerate(text.split(",")[1:]):
            register = re.match(r"\s*-?\|?R(\d+)(\.reuse)?", source)
            if register is None:
                continue
            number, place = int(register[1]), (operand, int(register[1]) % 2)
            reads += kept.get(place) != number
            kept[place] = number if register[2] else None
    return reads / products(loop)


@pytest.mark.parametrize("variant", FAMILY.variants, ids=lambda v: v.name)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(builds, variant):
    check(variant, *builds[variant.name])


def test_kept_output_and_kernels_compiled_alone_are_those_of_the_library(kept_builds):
    variant = FAMILY.variant("smem_tiled")
    made = [built(FAMILY, variant, "sm_90", kept_builds, kind) for kind in (None, Kind.KERNELS, Kind.LIBRARY)]
    kept, alone, library = [record.kernels for _, record in made]
    assert kept == alone == library
    assert kept[0].opcodes["FFMA"] > 0


def test_the_oldest_gpu_is_served_too(build_all):
    builds = build_all("sm_75", Kind.RESOURCES)
    newer = {v.name: v.requires.arch for v in FAMILY.variants if v.requires.why_not((7, 5))}
    for name, (folder, record) in builds.items():
        if name in newer:
            assert (record.status, f"needs {newer[name]}" in record.reason) == ("unsupported", True)
            continue
        assert record.status == "ok", record.reason
        assert "warning" not in (folder / "compile.log").read_text()
        assert sum(kernel.spill_store_bytes for kernel in record.kernels) == 0


def test_coalescing_changes_which_axis_is_read_and_no_other_instruction(builds):
    naive, coalesced = (instructions(builds[name][0]) for name in ("naive", "gmem_coalesced"))
    assert len(naive) == len(coalesced)
    differing = [pair for pair in zip(naive, coalesced, strict=True) if pair[0] != pair[1]]
    assert differing
    assert all("SR_TID." in one or "SR_CTAID." in one for one, _ in differing)
    assert all(one.translate(SWAPPED) == other for one, other in differing)


def test_products_per_shared_load_grow_along_the_ladder(builds):
    ladder = [kernels(builds, name)[0] for name in ("smem_tiled", "blocktile_1d", "blocktile_2d")]
    shares = [count(kernel, "FFMA") / count(kernel, "LDS") for kernel in ladder]
    assert shares == sorted(shares)
    assert shares[-1] > 10 * shares[0]


def test_a_line_of_results_needs_four_times_the_shared_loads_of_a_square(builds):
    line, oblong, square = (
        count(kernels(builds, name)[0], "LDS")
        for name in ("thread_tile_1x64", "thread_tile_4x16", "blocktile_2d")
    )
    assert (line, oblong, square) == (130, 40, 32)  # LDS.128 for 65, 20 and 16 operands of eight k


def test_the_compiler_unrolls_the_loop_of_the_coalesced_kernel_unless_it_must_not(builds):
    unrolled, rolled = (kernels(builds, name)[0] for name in ("gmem_coalesced", "gmem_coalesced_rolled"))
    assert count(unrolled, "LDG.E.CONSTANT") == 58
    assert count(rolled, "LDG.E.CONSTANT") == 2
    loop = main_loop(builds["gmem_coalesced_rolled"][0], "rolled")
    assert (products(loop), len(loop)) == (1, 13)


def test_wide_global_accesses_come_with_vectorized_and_not_by_unrolling(builds):
    (plain,) = kernels(builds, "blocktile_2d")
    assert count(plain, "LDG.E.128") == count(plain, "STG.E.128") == 0
    assert count(plain, "LDS.128") > 0


@pytest.mark.parametrize("name", ["vectorized", "bank_swizzled", "bank_padded", "warptile"])
def test_wide_instance_is_wide_and_the_other_is_not(builds, name):
    narrow, wide = sorted(kernels(builds, name), key=lambda kernel: count(kernel, "LDG.E.128"))
    assert count(narrow, "LDG.E.128") == count(narrow, "STG.E.128") == 0
    assert count(wide, "LDG.E.128.CONSTANT") > 0
    assert count(wide, "LDG.E") == count(wide, "LDG.E.128")
    assert count(wide, "STG.E") == count(wide, "STG.E.128")
    assert count(wide, "LDS") == count(wide, "LDS.128")


@pytest.mark.parametrize("name", ["warptile", "warptile_published"])
def test_warptile_fits_the_blocks_per_sm_that_it_asks_for(builds, name):
    p = FAMILY.variant(name).parameters
    threads = p["BM"] // p["WM"] * (p["BN"] // p["WN"]) * 32
    most = max(kernel.registers_per_thread for kernel in kernels(builds, name))
    assert -(-most // 8) * 8 * threads * p["BLOCKS_PER_SM"] <= REGISTERS_PER_SM


@pytest.mark.parametrize("name", ["bank_swizzled", "bank_padded"])
def test_other_banks_take_the_same_accesses(builds, name):
    before, after = (
        max(kernels(builds, n), key=lambda k: count(k, "LDG.E.128")) for n in ("vectorized", name)
    )
    for prefix in ("LDG", "STS", "LDS.128", "FFMA", "BAR"):
        assert count(after, prefix) == count(before, prefix), prefix


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("bank_swizzled", "row ^ k / 4 * ROWS", "row"),
        ("bank_swizzled", "quad ^ quad / 8 % (TN / 4)", "quad"),
        ("bank_padded", "BM + 4", "BM"),
        ("bank_padded", "column + column / 32 * 4", "column"),
    ],
)
def test_a_layout_with_bank_conflicts_does_not_compile(tmp_path, name, right, wrong):
    nvcc, cuobjdump = compilers()
    for folder in ("sgemm", "include"):
        shutil.copytree(KERNELS / folder, tmp_path / folder)
    source = tmp_path / "sgemm" / f"{name}.cu"
    assert right in source.read_text()
    source.write_text(source.read_text().replace(right, wrong))
    family = catalog.load_family(tmp_path / "sgemm" / "family.yaml")
    record = build.build_variant(family, family.variant(name), "sm_90", nvcc, cuobjdump, tmp_path / "build")
    assert record.status == "compile_error"
    assert "no access of a warp has a bank conflict" in record.reason


def test_block_order_changes_nothing_but_which_tile_a_block_has(builds):
    before, after = (
        max(kernels(builds, n), key=lambda k: count(k, "LDG.E.128"))
        for n in ("double_buffered", "block_swizzled")
    )
    for prefix in ("LDG", "STS", "LDS", "FFMA", "BAR", "STG"):
        assert count(after, prefix) == count(before, prefix), prefix


def test_pairs_of_columns_read_fewer_registers_and_loads_have_a_predicate(builds):
    loops = {
        "tma_pipelined": main_loop(builds["tma_pipelined"][0], "sgemm_tma"),
        "register_reuse": main_loop(builds["register_reuse"][0], "sgemm_register_reuse"),
        "stream_k": main_loop(builds["stream_k"][0], "sgemm_stream_k"),
    }
    reads = {name: register_reads_per_product(loop) for name, loop in loops.items()}
    assert reads["tma_pipelined"] > 1.85
    for name in ("register_reuse", "stream_k"):
        assert reads[name] < 1.6, name  # 1.5 and what begins and ends cost: the compiler kept the order
        loop = loops[name]
        p = FAMILY.variant(name).parameters
        loads = (p["WM"] // p["LANES_M"] + p["WN"] * p["LANES_M"] // 32) // 4  # of four floats, for one k
        assert products(loop) == p["WM"] * p["WN"] // 32 * p["BK"]
        guarded = [text for text in loop if re.match(r"@!?P\d LDS\.128", text)]
        # ptxas orders by the names of symbols: one k's loads go one way or the other.
        assert len(guarded) >= loads * (p["BK"] - 2)
        # A branch of its own for each load would cost an instruction each, and cut the block that is ordered.
        assert sum(" BRA" in f" {text}" for text in loop) < 12


@pytest.mark.parametrize("name", ["tma_pipelined", "register_reuse", "stream_k"])
def test_nine_of_ten_instructions_of_the_loop_multiply_and_add(builds, name):
    loop = main_loop(builds[name][0], {"tma_pipelined": "sgemm_tma"}.get(name, f"sgemm_{name}"))
    assert products(loop) > 0.9 * len(loop)


def test_stream_k_hands_partial_sums_over_and_waits_for_none_in_its_loop(builds):
    (kernel,) = [k for k in kernels(builds, "stream_k") if "stream_k" in k.mangled]
    assert count(kernel, "ATOMG.E.EXCH") == 2  # is ready; was ready
    assert count(kernel, "LDG.E.128") > 0
    loop = main_loop(builds["stream_k"][0], "sgemm_stream_k")
    assert not any(re.search(r"\b(ATOMG|LDG|STG|MEMBAR)\b", text) for text in loop)


def test_stream_k_numbers_its_blocks_as_they_start_and_never_looks_at_their_ids(builds):
    """A block waits for those of lower numbers: they must be running, and CUDA promises no order of block ids."""
    text = (builds["stream_k"][0] / "kernel.sass").read_text()
    (body,) = [part for part in text.split("Function : ")[1:] if "sgemm_stream_k" in part.split("\n", 1)[0]]
    assert body.count("ATOMG.E.INC") == 1
    assert "SR_CTAID" not in body
    assert "SR_CTAID" in text  # of the kernel for unaligned matrices: the name is spelt like this


def test_loads_of_what_another_block_left_wait_for_l2_together(builds):
    """One after the other they would take 10 us a block and tile: a fifth of the time at 1024."""
    lines = instructions(builds["stream_k"][0])
    was_ready = max(i for i, text in enumerate(lines) if "ATOMG.E.EXCH" in text)
    stored = next(i for i, text in enumerate(lines) if i > was_ready and "STG.E.128" in text)
    loads = [text for text in lines[was_ready:stored] if "LDG.E.128" in text]
    assert sum("STRONG.GPU" in text for text in loads) == 8
    assert len(loads) >= 12  # and those of C


def test_baseline_needs_no_cublas_to_be_built_and_loaded(builds):
    folder, record = builds["cublas"]
    assert record.kernels == ()
    library = ctypes.CDLL(str(folder / "kernel.so"))
    assert library.library_version() == 0 or library.library_version() >= 120000
    assert library.warplog_launch
