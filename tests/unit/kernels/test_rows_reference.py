"""The references of softmax and layernorm: they accept what fp32 arithmetic gives, and refuse the usual faults."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from shipped_families import FAMILIES
from warplog.measure.worker.case_data import CaseData
from warplog.measure.worker.problem import Problem

Array = NDArray[np.float32]
Answer = Callable[[dict[str, Array], int, float], Array]
SMALL = [
    (name, case.name)
    for name in ("softmax", "layernorm")
    for case in FAMILIES[name].check_cases.values()
    if case.values["rows"] * case.values["columns"] <= 200_000
]
FLOAT = np.float32


def softmax(inputs: dict[str, Array], used: int, epsilon: float) -> Array:
    """In fp32; only the first `used` columns enter the sum."""
    powers = np.exp(inputs["x"] - inputs["x"].max(axis=1, keepdims=True))
    return powers / powers[:, :used].sum(axis=1, keepdims=True, dtype=FLOAT)


def layernorm(inputs: dict[str, Array], used: int, epsilon: float) -> Array:
    """In fp32; only the first `used` columns enter mean and variance."""
    x = inputs["x"]
    mean = x[:, :used].mean(axis=1, keepdims=True, dtype=FLOAT)
    variance = np.square(x[:, :used] - mean).mean(axis=1, keepdims=True, dtype=FLOAT)
    return (x - mean) / np.sqrt(variance + FLOAT(epsilon)) * inputs["gamma"] + inputs["beta"]


ANSWERS: dict[str, Answer] = {"softmax": softmax, "layernorm": layernorm}


def reason(name: str, case: str, answer: Answer, dropped: int = 0, truncated: bool = False) -> str:
    """What the check says of an answer that leaves out the last `dropped` columns; '' if it is right."""
    family = FAMILIES[name]
    data = CaseData(np, family)
    problem = Problem(np, family, family.check_cases[case], data=data)
    problem.fill(1)
    values = problem.case.values
    with np.errstate(all="ignore"):
        given = answer(
            data.inputs(problem.case, 1), int(values["columns"]) - dropped, values.get("epsilon", 0.0)
        )
    given = given.astype(FLOAT)
    if truncated:
        given = (given.view(np.uint32) & np.uint32(0xFFFF0000)).view(FLOAT)
    problem.arrays["y"].store(given)
    return problem.verdict().reason


@pytest.mark.parametrize("family", ANSWERS)
def test_fp32_arithmetic_is_accepted(family: str) -> None:
    for case in [case for name, case in SMALL if name == family]:
        assert reason(family, case, ANSWERS[family]) == "", case


@pytest.mark.parametrize("family", ANSWERS)
def test_a_row_whose_last_column_is_left_out_of_the_sums_is_refused(family: str) -> None:
    refused = []
    for case in [case for name, case in SMALL if name == family]:
        values = FAMILIES[family].check_cases[case].values
        if not (
            values["columns"] == 1 or values.get("constant") or values.get("masked")
        ):  # else, as without it
            assert "outside the tolerance" in reason(family, case, ANSWERS[family], dropped=1), case
            refused.append(case)
    assert refused


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("case", ["9x1000-bf16", "5x4097-bf16"])
def test_truncation_to_bf16_is_refused(name: str, case: str) -> None:
    assert "outside the tolerance" in reason(name, case, ANSWERS[name], truncated=True)


@pytest.mark.parametrize("case", ["large", "large-bf16", "negative"])
def test_exponentials_of_logits_without_their_largest_are_refused(case: str) -> None:
    def naive(inputs: dict[str, Array], used: int, epsilon: float) -> Array:
        powers = np.exp(inputs["x"])
        return powers / powers.sum(axis=1, keepdims=True)

    assert reason("softmax", "9x1000", naive) == ""
    assert "NaN or Inf" in reason("softmax", case, naive)


@pytest.mark.parametrize("case", ["masked", "masked-long"])
def test_a_part_of_a_row_that_is_masked_must_not_give_nan(case: str) -> None:
    def halves(inputs: dict[str, Array], used: int, epsilon: float) -> Array:
        """Each half relative to its own largest logit, as two blocks would; -inf - -inf is NaN."""
        x = inputs["x"]
        tops = [half.max(axis=1, keepdims=True) for half in np.array_split(x, 2, axis=1)]
        sums = [
            np.exp(half - top).sum(axis=1, keepdims=True)
            for half, top in zip(np.array_split(x, 2, axis=1), tops, strict=True)
        ]
        top = np.maximum(*tops)
        return np.exp(x - top) / (sums[0] * np.exp(tops[0] - top) + sums[1] * np.exp(tops[1] - top))

    assert reason("softmax", "9x1000", halves) == ""
    assert "NaN or Inf" in reason("softmax", case, halves)


@pytest.mark.parametrize("case", ["offset", "offset-odd", "offset-long"])
def test_a_variance_from_squares_of_large_numbers_is_refused(case: str) -> None:
    def cancelling(inputs: dict[str, Array], used: int, epsilon: float) -> Array:
        x = inputs["x"]
        mean = x.mean(axis=1, keepdims=True, dtype=FLOAT)
        variance = np.square(x).mean(axis=1, keepdims=True, dtype=FLOAT) - np.square(mean)
        return (x - mean) / np.sqrt(variance + FLOAT(epsilon)) * inputs["gamma"] + inputs["beta"]

    assert reason("layernorm", "9x1000", cancelling) == ""
    assert reason("layernorm", case, cancelling) != ""


@pytest.mark.parametrize("case", ["constant", "constant-bf16", "constant-long"])
def test_a_variance_of_zero_without_epsilon_is_refused(case: str) -> None:
    def without(inputs: dict[str, Array], used: int, epsilon: float) -> Array:
        return layernorm(inputs, used, 0.0)

    assert "NaN or Inf" in reason("layernorm", case, without)
