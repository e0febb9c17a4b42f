"""What nvcc makes of the bf16 ladder: the instructions that each rung is about, no spills but one, no warnings."""

import ctypes
import re

import pytest
from msgspec import structs

from sass_builds import Kind, builder, built, check
from shipped_families import FAMILIES
from warplog.parsers import sass

FAMILY = FAMILIES["bf16_gemm"]
NAMES = [v.name for v in FAMILY.variants]
HOPPER = [v.name for v in FAMILY.variants if v.requires.arch == "sm_90a"]
WITH_PTX_BARRIERS = HOPPER[HOPPER.index("wgmma_ptx_barriers") :]
IN_CLUSTERS = HOPPER[HOPPER.index("wgmma_cluster_fenced") :]
SPILLS = "wgmma_one_consumer"  # its lesson
REGISTERS_PER_SM = 65536

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def build_all(kept_builds):
    return builder(FAMILY, kept_builds)


@pytest.fixture(scope="module")
def builds(build_all):
    return build_all("sm_90")


def count(builds, name, prefix):
    """How often instructions of that prefix stand in the variant's kernels."""
    return sum(sass.matching(kernel.opcodes, prefix) for kernel in builds[name][1].kernels)


def code(builds, name):
    """The instructions in their order."""
    text = (builds[name][0] / "kernel.sass").read_text()
    return re.findall(r"^\s+/\*[0-9a-f]{4}\*/\s+(.*?)\s*;", text, re.MULTILINE)


def where(instructions, *words):
    return [i for i, line in enumerate(instructions) if all(word in line for word in words)]


@pytest.mark.parametrize("variant", FAMILY.variants, ids=lambda v: v.name)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(builds, variant):
    check(variant, *builds[variant.name])


def test_the_rung_that_is_to_spill_does(builds):
    (kernel,) = builds[SPILLS][1].kernels
    assert kernel.spill_store_bytes > 0


def test_the_oldest_gpu_is_served_too(build_all):
    for name, (folder, record) in build_all("sm_80", Kind.RESOURCES).items():
        if name in HOPPER:
            assert (record.status, "sm_90a" in record.reason) == ("unsupported", True)
            continue
        assert record.status == "ok", record.reason
        assert "warning" not in (folder / "compile.log").read_text()
        assert sum(kernel.spill_store_bytes for kernel in record.kernels) == 0


def test_tiles_come_to_shared_memory_by_wider_means_along_the_ladder(builds):
    def means(name):
        return tuple(count(builds, name, opcode) > 0 for opcode in ("STS", "LDGSTS", "UTMALDG"))

    assert means("wmma_tiled") == (True, False, False)
    assert means("wmma_cp_async")[1:] == (True, False)
    assert means("mma_sync") == (False, True, False)
    assert all(means(name)[1:] == (False, True) for name in HOPPER)


def test_products_of_an_instruction_grow_along_the_ladder(builds):
    for name in HOPPER:
        width = FAMILY.variant(name).parameters["BN"]
        assert count(builds, name, "HGMMA") == count(builds, name, f"HGMMA.64x{width}x16.F32.BF16") > 0


def test_ptx_barriers_read_no_clock_and_never_sleep(builds):
    """libcu++ waits with a time-out: it reads the global timer before it looks a second time, and sleeps."""
    for name in ("wgmma_pipelined", "wgmma_tile128x256", "wgmma_persistent", "wgmma_grouped"):
        assert count(builds, name, "NANOSLEEP") > 0
        assert where(code(builds, name), "SR_GLOBALTIMERLO")
    for name in WITH_PTX_BARRIERS:
        assert count(builds, name, "NANOSLEEP") == 0
        assert not where(code(builds, name), "SR_GLOBALTIMERLO")


def test_only_the_fenced_cluster_waits_for_the_whole_gpu_at_every_step(builds):
    fences = {name: count(builds, name, "MEMBAR.ALL.GPU") for name in HOPPER}
    assert [name for name, found in fences.items() if found] == ["wgmma_cluster_fenced", "wgmma_stream_k"]
    instructions = code(builds, "wgmma_cluster_fenced")
    last_product = where(instructions, "HGMMA")[-1]
    loop_ends = next(i for i in where(instructions, "BRA") if i > last_product)
    assert where(instructions[last_product:loop_ends], "MEMBAR.ALL.GPU")


def test_partial_sums_pass_sixteen_bytes_at_a_time_between_memory_and_the_registers_of_the_products(builds):
    """Without a move, and without a fence in a consumer: one as a cluster starts, one before the messenger's flag."""
    instructions = code(builds, "wgmma_stream_k")
    loads, stores = where(instructions, "LDG.E.128"), where(instructions, "STG.E.128")
    sums = [f"R{first}" for first in range(24, 152, 4)]
    assert [re.search(r"128\S* (R\d+)", instructions[i]).group(1) for i in loads] == sums
    assert [re.search(r", (R\d+)$", instructions[i]).group(1) for i in stores] == sums
    first_product, producer = where(instructions, "HGMMA")[0], where(instructions, "USETMAXREG.DEALLOC")[0]
    (met, fence), (flag, cleared) = (
        where(instructions, "MEMBAR.ALL.GPU"),
        where(instructions, "ST.E.STRONG.GPU"),
    )
    (look,) = where(instructions, "LD.E.STRONG.GPU")
    assert (
        met
        < loads[0]
        < loads[-1]
        < first_product
        < stores[0]
        < stores[-1]
        < producer
        < fence
        < flag
        < look
        < cleared
    )


def test_clusters_that_wait_for_each_other_are_numbered_as_they_start(builds):
    """CUDA promises no order of block ids; a cluster may wait only for one that is running."""
    (number,) = where(code(builds, "wgmma_stream_k"), "ATOMG.E.INC")
    met = where(code(builds, "wgmma_stream_k"), "UCGABAR_ARV")[0]
    assert number < met


def test_the_producer_keeps_to_the_registers_that_are_left_to_it(builds):
    for name, most in (("wgmma_stmatrix", 24), ("wgmma_stream_k", 40)):
        instructions = code(builds, name)
        (given,) = where(instructions, "USETMAXREG.DEALLOC")
        assert int(instructions[given].split()[-1], 16) == most
        last = where(instructions, "EXIT")[-1]  # after it the other halves of loops, of consumers too
        own = instructions[given : last + 1]
        assert max(int(r) for line in own for r in re.findall(r"\bR(\d+)\b", line)) < most


@pytest.mark.parametrize("name", [name for name in IN_CLUSTERS if name != "wgmma_three_consumers"])
def test_a_stage_is_given_back_after_its_products_are_done(builds, name):
    instructions = code(builds, name)
    waits = where(instructions, "WARPGROUP.DEPBAR")
    arrivals = where(instructions, "SYNCS.ARRIVE", ".RED.")
    products = where(instructions, "HGMMA")
    assert len(waits) == len(arrivals) == 2  # in the loop, and after it
    assert products[-1] < waits[0] < arrivals[0] < waits[1] < arrivals[1]


def test_multicast_starts_with_clusters_and_four_blocks_share_a_too(builds):
    for name in HOPPER:
        assert (count(builds, name, "UTMALDG.2D.MULTICAST") > 0) == (name in IN_CLUSTERS)
    for name, shared in (("wgmma_stmatrix", 1), ("wgmma_four_blocks", 2)):
        assert count(builds, name, "UTMALDG.2D.MULTICAST") == shared
        assert count(builds, name, "UTMALDG") == 2


def test_results_leave_by_wider_means_along_the_ladder(builds):
    def stores(name):
        return tuple(count(builds, name, opcode) for opcode in ("STG", "STS", "STSM", "UTMASTG"))

    assert stores("wgmma_cluster") == (64, 0, 0, 0)
    assert count(builds, "wgmma_cluster", "STG.E.EF") == 0
    assert count(builds, "wgmma_tuned", "STG.E.EF") == 64
    assert stores("wgmma_hilbert") == (0, 64, 0, 4)
    assert stores("wgmma_stmatrix") == (0, 0, 16, 4)


def test_registers_change_hands_from_tuned_on(builds):
    given = [name for name in HOPPER if count(builds, name, "USETMAXREG.DEALLOC")]
    stored = HOPPER[HOPPER.index("wgmma_tma_store") : HOPPER.index("wgmma_three_consumers")]
    assert given == ["wgmma_tuned", "wgmma_cluster_setmaxnreg", *stored]
    for name in given:
        assert count(builds, name, "USETMAXREG.TRY_ALLOC") == 1


def test_without_its_change_an_ablation_is_the_kernel_that_it_is_compared_with(builds, kept_builds):
    variant = FAMILY.variant("wgmma_cluster_setmaxnreg")
    unchanged = structs.replace(variant, parameters={**variant.parameters, "SETMAXNREG": 0})
    folder, record = built(FAMILY, unchanged, "sm_90", kept_builds)
    assert record.status == "ok", record.reason
    assert code({"unchanged": (folder, record)}, "unchanged") == code(builds, "wgmma_cluster")


@pytest.mark.parametrize("name", [name for name in HOPPER if name != SPILLS])
def test_a_block_of_three_warpgroups_fits_the_registers_of_an_sm(builds, name):
    warpgroups = 1 if FAMILY.variant(name).file.stem == "wgmma_tma" else 3
    (kernel,) = builds[name][1].kernels
    assert -(-kernel.registers_per_thread // 8) * 8 * warpgroups * 128 <= REGISTERS_PER_SM


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("wgmma_autotuned", {"DOWN": 4, "ACROSS": 1, "GROUP": 1, "HILBERT": 1}),
        ("wgmma_autotuned", {"DOWN": 1, "ACROSS": 2, "GROUP": 16, "HILBERT": 0}),
        ("wgmma_three_consumers", {"CLUSTER": 4, "TALL": 2048}),
    ],
)
def test_settings_far_from_the_default_compile_without_warnings_or_spills(name, setting, kept_builds):
    variant = FAMILY.variant(name)
    assert setting in variant.tune.settings()
    chosen = structs.replace(variant, parameters=variant.tune.parameters(setting))
    folder, record = built(FAMILY, chosen, "sm_90", kept_builds, Kind.RESOURCES)
    assert record.status == "ok", record.reason
    assert "warning" not in (folder / "compile.log").read_text()
    assert sum(kernel.spill_store_bytes for kernel in record.kernels) == 0


@pytest.mark.parametrize("name", ["cublas", "cublas_gemm_ex"])
def test_baselines_need_no_cublas_to_be_built_and_loaded(kept_builds, name):
    folder, record = built(FAMILY, FAMILY.variant(name), "sm_90", kept_builds, Kind.LIBRARY)
    assert record.kernels == ()
    library = ctypes.CDLL(str(folder / "kernel.so"))
    assert library.library_version() == 0 or library.library_version() >= 120000
    assert library.warplog_launch
