"""What nvcc makes of precision_gemm and skinny_gemm: the instructions of each type, wide accesses, no atomics."""

from functools import cache

import pytest

from sass_builds import built, check, compilers
from shipped_families import FAMILIES

NAMES = ("precision_gemm", "skinny_gemm")
VARIANTS = [(name, v.name) for name in NAMES for v in FAMILIES[name].variants if not v.library]
PRODUCTS = ("HGMMA", "IGMMA", "QGMMA", "HMMA", "IMMA")

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def builds(kept_builds):
    """Folder and record of a variant, compiled when it is asked for."""
    compilers()
    return cache(
        lambda family, name: built(FAMILIES[family], FAMILIES[family].variant(name), "sm_90", kept_builds)
    )


def kernels(builds, family, name):
    return builds(family, name)[1].kernels


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_compiles_without_a_warning_and_keeps_what_family_yaml_expects(builds, family, name):
    check(FAMILIES[family].variant(name), *builds(family, name))


@pytest.mark.parametrize("name", ["wmma", "wgmma"])
def test_each_kernel_multiplies_in_one_type_alone(builds, name):
    kinds = [
        {opcode for opcode in kernel.opcodes if opcode.startswith(PRODUCTS)}
        for kernel in kernels(builds, "precision_gemm", name)
    ]
    assert all(len(kind) == 1 for kind in kinds), kinds
    assert len(set.union(*kinds)) == len(kinds)


def test_sums_in_fp16_need_half_of_the_registers_of_the_sums(builds):
    by_type = {
        next(opcode for opcode in kernel.opcodes if opcode.startswith(PRODUCTS)): kernel.registers_per_thread
        for kernel in kernels(builds, "precision_gemm", "wgmma")
    }
    others = {registers for opcode, registers in by_type.items() if not opcode.endswith("x16.F16")}
    assert len(others) == 1, "only the instruction differs"
    assert by_type["HGMMA.64x256x16.F16"] <= min(others) - 64


@pytest.mark.parametrize(("family", "name"), VARIANTS)
def test_results_do_not_depend_on_the_order_of_atomics(builds, family, name):
    opcodes = {opcode for kernel in kernels(builds, family, name) for opcode in kernel.opcodes}
    assert not [opcode for opcode in opcodes if opcode.startswith(("RED.", "ATOM", "REDG"))]
