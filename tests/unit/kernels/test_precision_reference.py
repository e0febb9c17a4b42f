"""The reference of precision_gemm: its tolerances accept the rounding to a type and refuse that to a coarser one."""

from statistics import mean

import numpy as np
import pytest

from shipped_families import FAMILIES
from warplog.catalog.family import Case
from warplog.measure.worker import encoding
from warplog.measure.worker.case_data import CaseData
from warplog.measure.worker.problem import Problem

FAMILY = FAMILIES["precision_gemm"]
TYPES = ("fp32", "tf32", "fp16", "fp16acc16", "bf16", "int8", "fp8")
# The terms of a sum are off by 0.7 times the rounding error of the type in the mean, and 5 times that at the worst of
# some thousand results.
LARGEST = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp8": 2.0**-4}


def products(kind, exact=0):
    """The problem of a type, filled, and its product of the rounded inputs in float64."""
    case = Case(kind, {"M": 96, "N": 72, "K": 512, "type": TYPES.index(kind), "exact": exact})
    data = CaseData(np, FAMILY)
    problem = Problem(np, FAMILY, case, data=data)
    problem.fill(5)
    a, b = (problem.arrays[name].load() for name in "AB")
    return problem, a @ b.T


def verdict(problem, result):
    problem.arrays["C"].store(result)
    return problem.verdict()


@pytest.mark.parametrize("kind", TYPES)
def test_the_product_of_the_rounded_inputs_is_right(kind):
    problem, result = products(kind)
    found = verdict(problem, result.astype(np.float32))
    assert found.reason == ""
    if kind in LARGEST:
        assert 2 * LARGEST[kind] < found.max_error_over_scale < 5 * LARGEST[kind]


@pytest.mark.parametrize(
    ("kind", "coarser"),
    [("fp32", "fp16"), ("tf32", "bf16"), ("fp16", "bf16"), ("bf16", "fp8"), ("int8", "fp8")],
)
def test_that_of_a_coarser_type_is_wrong(kind, coarser):
    problem, _ = products(kind)
    _, coarse = products(coarser)
    unit = 127.0**2 if kind == "int8" else 1.0
    assert "outside the tolerance" in verdict(problem, (unit * coarse).astype(np.float32)).reason


@pytest.mark.parametrize("kind", TYPES)
def test_whole_numbers_are_exact_in_every_type_and_one_more_is_wrong(kind):
    problem, result = products(kind, exact=1)
    assert np.abs(result).max() <= 2048
    found = verdict(problem, result.astype(np.float16))
    assert (found.reason, found.max_error_over_scale) == ("", 0.0)
    result[3, 4] += 1
    assert verdict(problem, result.astype(np.float16)).reason.startswith("C: ")


def test_the_types_get_the_same_unrounded_matrices():
    made = [products(kind)[0].arrays["A32"].load() for kind in TYPES]
    assert all(np.array_equal(made[0], other) for other in made)


def test_int8_counts_in_steps_of_its_largest_value():
    problem, result = products("int8")
    assert problem.arrays["A"].load().max() == 127
    true = problem.arrays["A32"].load() @ problem.arrays["B32"].load().T
    assert mean(abs(result / 127**2 - true).ravel()) < 0.05 * mean(abs(true).ravel())
    assert encoding.stored_dtype(FAMILY.dtype(FAMILY.arguments[4], problem.case)) == np.int32
