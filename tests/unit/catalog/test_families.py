"""For every family and case, the check accepts the reference's own answer and rejects a changed one."""

import numpy as np
import pytest

from shipped_families import FAMILIES
from warplog.measure.worker.case_data import CaseData
from warplog.measure.worker.problem import Problem

MOST_ELEMENTS = 300_000
CASES = [
    (family.name, case)
    for family in FAMILIES.values()
    for case in family.check_cases
    if max(np.prod(family.shape(a, family.check_cases[case])) for a in family.arguments if a.shape)
    <= MOST_ELEMENTS
]


def answered(name: str, case: str) -> Problem:
    """Returns the problem with the reference's own answer, rounded to the output type."""
    family = FAMILIES[name]
    data = CaseData(np, family)
    problem = Problem(np, family, family.check_cases[case], data=data)
    problem.fill(1)
    expected = data.answers(problem.case, 1)
    for argument in problem._of_kind("output", "inout"):
        problem.arrays[argument.name].store(np.asarray(expected[argument.name][0]).astype(np.float32))
    return problem


@pytest.mark.parametrize("name", FAMILIES)
def test_reference_accepts_its_own_answer_and_refuses_a_changed_one(name: str) -> None:
    for case in [case for family, case in CASES if family == name]:
        problem = answered(name, case)
        assert problem.verdict().reason == "", case
        output = problem._of_kind("output", "inout")[0]
        array = problem.arrays[output.name]
        changed = array.load()
        changed.flat[changed.size // 2] += 4 + abs(changed).max()
        array.store(changed.astype(np.float32))
        assert f"{output.name}: " in problem.verdict().reason, case


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_written_is_refused(name: str) -> None:
    family = FAMILIES[name]
    case = next(c for f, c in CASES if f == name)
    problem = Problem(np, family, family.check_cases[case])
    problem.fill(1)
    assert problem.verdict().reason


def test_the_kernels_of_every_variant_that_calls_cublas_are_listed() -> None:
    calling = [
        variant
        for family in FAMILIES.values()
        for variant in family.variants
        if "cublas.cuh" in {path.name for path in variant.headers()}
    ]
    assert {(v.family, v.name) for v in calling} >= {("bf16_gemm", "cublas"), ("sgemm", "cublas")}
    assert [(v.family, v.name) for v in calling if not v.library] == []
