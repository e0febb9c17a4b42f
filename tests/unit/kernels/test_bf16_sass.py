"""What nvcc makes of the bf16 ladder, beyond what family.yaml expects: order, counts and registers."""

import re
from dataclasses import replace

import pytest

from sass_builds import Kind, assert_as_expected, assert_serves, builder, built, code, where
from shipped_families import FAMILIES
from warplog.parsers import sass

FAMILY = FAMILIES["bf16_gemm"]
HOPPER = [v.name for v in FAMILY.variants if v.requires.arch == "sm_90a"]
WITH_PTX_BARRIERS = HOPPER[HOPPER.index("wgmma_ptx_barriers") :]
IN_CLUSTERS = HOPPER[HOPPER.index("wgmma_cluster_fenced") :]

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def build_all(kept_builds):
    return builder(FAMILY, kept_builds)


@pytest.fixture(scope="module")
def builds(build_all):
    return build_all("sm_90")


def count(builds, name, prefix):
    """How often instructions of that prefix stand in the variant's kernels."""
    return sum(sass.matching(kernel["opcodes"], prefix) for kernel in builds[name][1]["kernels"])


@pytest.mark.parametrize("variant", FAMILY.variants, ids=lambda v: v.name)
def test_compiles_to_what_family_yaml_expects(builds, variant):
    assert_as_expected(variant, *builds[variant.name])


def test_the_oldest_gpu_is_served_too(build_all):
    for name, build in build_all("sm_80", Kind.RESOURCES).items():
        assert_serves("sm_80", FAMILY.variant(name), *build)


def test_one_consumer_spills_which_is_its_lesson(builds):
    assert all(kernel["spill_store_bytes"] for kernel in builds["wgmma_one_consumer"][1]["kernels"])


def test_ptx_barriers_read_no_clock_and_never_sleep(builds):
    """libcu++ waits with a time-out: it reads the global timer before it looks a second time, and sleeps."""
    for name in WITH_PTX_BARRIERS:
        assert not where(code(builds[name][0]), "NANOSLEEP")
        assert not where(code(builds[name][0]), "SR_GLOBALTIMERLO")


def test_only_the_fenced_cluster_waits_for_the_whole_gpu_at_every_step(builds):
    fences = {name: count(builds, name, "MEMBAR.ALL.GPU") for name in HOPPER}
    assert [name for name, found in fences.items() if found] == ["wgmma_cluster_fenced", "wgmma_stream_k"]
    instructions = code(builds["wgmma_cluster_fenced"][0])
    last_product = where(instructions, "HGMMA")[-1]
    loop_ends = next(i for i in where(instructions, "BRA") if i > last_product)
    assert where(instructions[last_product:loop_ends], "MEMBAR.ALL.GPU")


def test_partial_sums_pass_sixteen_bytes_at_a_time_between_memory_and_the_registers_of_the_products(builds):
    """Without a move, and without a fence in a consumer: one as a cluster starts, one before the messenger's flag."""
    lines = code(builds["wgmma_stream_k"][0])
    loads, stores = where(lines, "LDG.E.128"), where(lines, "STG.E.128")
    sums = [f"R{first}" for first in range(24, 152, 4)]
    assert [re.search(r"128\S* (R\d+)", lines[i]).group(1) for i in loads] == sums
    assert [re.search(r", (R\d+)$", lines[i]).group(1) for i in stores] == sums
    first_product, producer = where(lines, "HGMMA")[0], where(lines, "USETMAXREG.DEALLOC")[0]
    (met, fence), (flag, cleared) = where(lines, "MEMBAR.ALL.GPU"), where(lines, "ST.E.STRONG.GPU")
    (look,) = where(lines, "LD.E.STRONG.GPU")
    order = [met, *loads, first_product, *stores, producer, fence, flag, look, cleared]
    assert order == sorted(order)


def test_clusters_that_wait_for_each_other_are_numbered_as_they_start(builds):
    """CUDA promises no order of block ids; a cluster may wait only for one that is running."""
    lines = code(builds["wgmma_stream_k"][0])
    (number,) = where(lines, "ATOMG.E.INC")
    assert number < where(lines, "UCGABAR_ARV")[0]


def test_the_producer_keeps_to_the_registers_that_are_left_to_it(builds):
    for name, most in (("wgmma_stmatrix", 24), ("wgmma_stream_k", 40)):
        instructions = code(builds[name][0])
        (given,) = where(instructions, "USETMAXREG.DEALLOC")
        assert int(instructions[given].split()[-1], 16) == most
        last = where(instructions, "EXIT")[-1]  # after it the other halves of loops, of consumers too
        own = instructions[given : last + 1]
        assert max(int(r) for line in own for r in re.findall(r"\bR(\d+)\b", line)) < most


@pytest.mark.parametrize("name", [name for name in IN_CLUSTERS if name != "wgmma_three_consumers"])
def test_a_stage_is_given_back_after_its_products_are_done(builds, name):
    instructions = code(builds[name][0])
    waits = where(instructions, "WARPGROUP.DEPBAR")
    arrivals = where(instructions, "SYNCS.ARRIVE", ".RED.")
    assert len(waits) == len(arrivals) == 2  # in the loop, and after it
    assert where(instructions, "HGMMA")[-1] < waits[0] < arrivals[0] < waits[1] < arrivals[1]


def test_four_blocks_share_a_too(builds):
    for name, shared in (("wgmma_stmatrix", 1), ("wgmma_four_blocks", 2)):
        assert count(builds, name, "UTMALDG.2D.MULTICAST") == shared
        assert count(builds, name, "UTMALDG") == 2


def test_stmatrix_takes_a_quarter_of_the_stores_to_shared_memory(builds):
    assert [count(builds, "wgmma_hilbert", opcode) for opcode in ("STS", "STSM")] == [64, 0]
    assert [count(builds, "wgmma_stmatrix", opcode) for opcode in ("STS", "STSM")] == [0, 16]


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
    chosen = replace(variant, parameters=variant.tune.parameters(setting))
    assert_serves("sm_90", chosen, *built(FAMILY, chosen, "sm_90", kept_builds, Kind.RESOURCES))
