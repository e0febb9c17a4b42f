"""Formulas take a bounded time, and their results are finite numbers."""

import pytest

from warplog.core import formula
from warplog.core.errors import WarplogError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("((((9**64)**64)**64)**64)**64", "powers are limited to 1023 bits"),
        ("(9**64)**8", "powers are limited to 1023 bits"),
        ("N**65", "exponents are limited to 64"),
        ("1e999", "is not a finite number"),
        ("1e308 * 10", "is not a finite number"),
        ("1 << 9000", "is not a finite number"),
        ("(-8) ** 0.5", "gives complex, not a number"),
        ("(" * 240 + "1" + ")" * 240, "cannot evaluate"),
        ("-" * 499 + "1", "cannot evaluate"),
        ("'%3000000000d' % 1", "str in place of a number"),
        ("'x' * 100000", "str in place of a number"),
        ("b'%3000000000d' % 1", "bytes in place of a number"),
        ("max('ab', 'cd')", "str in place of a number"),
        ("2j", "complex in place of a number"),
        ("N = 2", "cannot evaluate"),
        ("1; 2", "cannot evaluate"),
        ("", "cannot evaluate"),
        ("(" * 900 + "1" + ")" * 900, "the limit is 500"),
    ],
)
def test_a_formula_without_a_finite_number_is_refused_on_one_line(text: str, words: str) -> None:
    with pytest.raises(WarplogError) as error:
        formula.evaluate(text, {"N": 4096}, "family.yaml: work.flops")
    assert str(error.value).startswith("family.yaml: work.flops: ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400], ids=["nan", "inf", "large"])
def test_a_number_in_place_of_a_formula_is_finite(number: float) -> None:
    with pytest.raises(WarplogError, match="is not a finite number"):
        formula.evaluate(number, {}, "family.yaml")


def test_powers_of_sizes_are_exact() -> None:
    assert formula.evaluate("2 * N**3 + 3**20", {"N": 16384}, "") == 2 * 16384 * 16384 * 16384 + 3486784401
