"""The reference of the sgemm family: right, and with a tolerance that tells rounding from a fault."""

from pathlib import Path

import numpy as np
import pytest

import shipped_families
from warplog.catalog import family
from warplog.measure.worker.case_data import CaseData
from warplog.measure.worker.problem import Problem

WRONG = Path(__file__).parents[2] / "data" / "wrong_kernels"
FAMILIES = {**shipped_families.FAMILIES, **family.load([WRONG])}
SGEMM = FAMILIES["sgemm"]
SHAPES = [(1, 1, 1), (1, 129, 127), (127, 1, 33), (129, 127, 1), (65, 70, 97), (64, 32, 16)]


@pytest.fixture(params=["sgemm", "wrong_sgemm"])
def reference(request):
    return FAMILIES[request.param].reference()


def case_of(m, n, k, alpha=1.0, beta=0.0):
    return {"M": m, "N": n, "K": k, "alpha": alpha, "beta": beta}


def over_tolerance(answer, case, seed):
    """What the check says of `answer`'s answer: the largest error as a share of what it allows."""
    data = CaseData(np, SGEMM)
    problem = Problem(np, SGEMM, family.Case("", case), data=data)
    problem.fill(seed)
    problem.arrays["C"].store(answer(data.inputs(problem.case, seed)))
    share = problem.verdict().max_error_over_tolerance
    return np.inf if share is None else share  # an answer of zeros is refused without a look at its error


# Eight times 2^-24, half the distance of 1 to the next float32, times the square root of K.
@pytest.mark.parametrize(("k", "tolerance"), [(1, 2.0**-21), (1024, 2.0**-16), (4096, 2.0**-15)])
def test_the_tolerance_grows_with_the_square_root_of_k(k, tolerance):
    problem = Problem(np, SGEMM, family.Case("", case_of(2, 2, k)))
    assert problem.tolerance() == tolerance


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (0.5, 3.0), (-2.0, -1.0), (0.0, 2.0)])
def test_answer_is_the_definition(reference, m, n, k, alpha, beta):
    case = case_of(m, n, k, alpha, beta)
    inputs = reference.make_inputs(np, np.random.default_rng(3), case)
    expected, scale = reference.reference(np, inputs, case)["C"]
    a, b, c = (inputs[name].astype(np.float64) for name in "ABC")
    products = a[:, :, None] * b[None, :, :]
    want = alpha * products.sum(axis=1) + (beta * c if beta else 0.0)
    bound = abs(alpha) * np.abs(products).sum(axis=1) + (abs(beta * c) if beta else 0.0)
    assert expected.dtype == scale.dtype == np.float64
    np.testing.assert_allclose(expected, want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(scale, bound, rtol=1e-12)
    assert (scale > 0).all()


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_inputs_have_the_shapes_and_types_of_the_contract(reference, m, n, k):
    inputs = reference.make_inputs(np, np.random.default_rng(1), case_of(m, n, k, beta=1.0))
    for argument in SGEMM.arguments:
        if argument.kind != "scalar":
            array = inputs[argument.name]
            assert array.shape == SGEMM.shape(argument, family.Case("", case_of(m, n, k)))
            assert array.dtype == argument.dtype
            assert np.abs(array).max() <= 1


def test_seed_decides_the_inputs(reference):
    case = case_of(8, 8, 8, beta=1.0)
    first, same, other = (reference.make_inputs(np, np.random.default_rng(s), case) for s in (1, 1, 2))
    assert all((first[name] == same[name]).all() for name in "ABC")
    assert all((first[name] != other[name]).any() for name in "ABC")


def test_c_is_nan_and_does_not_enter_where_beta_is_zero(reference):
    case = case_of(33, 17, 9)
    inputs = reference.make_inputs(np, np.random.default_rng(5), case)
    expected, scale = reference.reference(np, inputs, case)["C"]
    assert np.isnan(inputs["C"]).all()
    assert np.isfinite(expected).all()
    assert np.isfinite(scale).all()


@pytest.mark.parametrize("name", list(SGEMM.check_cases))
def test_tolerance_accepts_fp32_and_refuses_a_dropped_product(name):
    case = SGEMM.check_cases[name].values

    def product(inputs, used):
        old = inputs["C"] if case["beta"] else np.float32(0)
        sums = inputs["A"][:, :used] @ inputs["B"][:used]
        return np.float32(case["alpha"]) * sums + np.float32(case["beta"]) * old

    assert over_tolerance(lambda inputs: product(inputs, case["K"]), case, seed=11) < 1
    assert over_tolerance(lambda inputs: product(inputs, case["K"] - 1), case, seed=11) > 100


@pytest.mark.parametrize("k", [128, 1024, 4096])
def test_tolerance_accepts_the_slowest_growing_sum(k):
    """One accumulator that runs over all of K, as in the naive kernel, rounds the most."""

    def one_by_one(inputs):
        total = np.zeros((16, 16), dtype=np.float32)
        for i in range(k):
            total += np.outer(inputs["A"][:, i], inputs["B"][i])
        return total

    assert over_tolerance(one_by_one, case_of(16, 16, k), seed=13) < 1


def test_tolerance_refuses_tf32():
    case = FAMILIES["wrong_sgemm"].check_cases["65x70x97"].values

    def in_tf32(inputs):
        a, b = (((inputs[n].view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for n in "AB")
        return np.float32(case["alpha"]) * (a @ b) + np.float32(case["beta"]) * inputs["C"]

    assert over_tolerance(in_tf32, case, seed=17) > 3
