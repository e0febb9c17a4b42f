"""What nvcc makes of tma_swizzle, wmma_row_major and epilogue: no warnings, no spills, and what a variant is about."""

import re
from functools import cache

import pytest

from sass_builds import built, check, compilers
from shipped_families import FAMILIES
from warplog.parsers import sass

NAMES = ("tma_swizzle", "wmma_row_major", "epilogue")
VARIANTS = [(name, variant.name) for name in NAMES for variant in FAMILIES[name].variants]
INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4})\*/\s+(.*?)\s*;", re.MULTILINE)

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def builds(kept_builds):
    """Folder and record of a variant, compiled when it is asked for."""
    compilers()
    return cache(
        lambda family, name: built(FAMILIES[family], FAMILIES[family].variant(name), "sm_90", kept_builds)
    )


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(builds, family, name):
    check(FAMILIES[family].variant(name), *builds(family, name))


@pytest.mark.parametrize("name", [v.name for v in FAMILIES["tma_swizzle"].variants])
def test_each_round_reads_the_tile_again(builds, name):
    code = INSTRUCTION.findall((builds("tma_swizzle", name)[0] / "kernel.sass").read_text())
    reads = [int(at, 16) for at, line in code if line.startswith("LDS.128")]
    loops = [(int(to[1], 16), int(at, 16)) for at, line in code if (to := re.search(r"BRA 0x(\w+)", line))]
    assert len(reads) == 2
    assert any(first <= min(reads) and max(reads) < last for first, last in loops)


def test_wmma_loads_are_generic_unless_their_address_is_one_of_shared_memory(builds):
    def loads(name):
        (kernel,) = builds("wmma_row_major", name)[1].kernels
        return tuple(sass.matching(kernel.opcodes, opcode) for opcode in ("LD.E", "MOVM", "LDSM"))

    assert loads("published") == loads("shared_assumed") == loads("padded") == (64, 32, 0)
    assert loads("shared_pointers") == loads("padded_shared") == (0, 0, 16)


def test_registers_leave_room_for_two_blocks_of_the_published_kernel(builds):
    (kernel,) = builds("wmma_row_major", "published")[1].kernels
    assert 65536 // (128 * -(-kernel.registers_per_thread // 8) * 8) == 2


def test_only_the_fused_gemm_has_steps_of_the_layer(builds):
    def maxima(name):
        kernels = builds("epilogue", name)[1].kernels
        (gemm,) = [k for k in kernels if sass.matching(k.opcodes, "HGMMA")]
        return len(kernels), sass.matching(gemm.opcodes, "FMNMX")

    assert [maxima(name) for name in ("three_passes", "one_pass", "fused")] == [(4, 0), (2, 0), (1, 128)]
