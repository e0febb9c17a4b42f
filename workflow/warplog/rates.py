"""The unit that rates are told in: one rule for figures, pages, notes and terminals; tables keep GFLOP/s."""

import math
from collections.abc import Iterable

LARGE_GFLOPS = 1e4


def told_in(unit: str, rates: Iterable[float]) -> tuple[str, float]:
    """The unit for all `rates`, which are in `unit`, and the factor that brings them into it.

    GFLOP/s become TFLOP/s where the largest rate reaches 10,000; other units stay. NaN does not count.
    """
    largest = max((rate for rate in rates if not math.isnan(rate)), default=0.0)
    return ("TFLOP/s", 1e-3) if unit == "GFLOP/s" and largest >= LARGE_GFLOPS else (unit, 1.0)
