"""The unit of rates follows one rule."""

import math

import pytest

from warplog.core.numbers import rate_unit


@pytest.mark.parametrize(
    ("unit", "rates", "unit_and_factor"),
    [
        ("GFLOP/s", [500.0, 9999.0], ("GFLOP/s", 1.0)),
        ("GFLOP/s", [500.0, math.nan, 10000.0], ("TFLOP/s", 1e-3)),
        ("GFLOP/s", [math.nan], ("GFLOP/s", 1.0)),
        ("GFLOP/s", [], ("GFLOP/s", 1.0)),
        ("GB/s", [20000.0], ("GB/s", 1.0)),
    ],
)
def test_the_largest_rate_chooses_the_unit(unit, rates, unit_and_factor):
    assert rate_unit(unit, rates) == unit_and_factor
