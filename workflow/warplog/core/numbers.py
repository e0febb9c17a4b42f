"""Formats numbers for people: three significant digits, a unit and a suitable scale."""

import math
from collections.abc import Iterable

LARGE_GFLOPS = 1e4


def rate_unit(unit: str, rates: Iterable[float]) -> tuple[str, float]:
    """Returns the unit to print `rates` in (given in `unit`) and the factor that converts to it.

    GFLOP/s becomes TFLOP/s if the largest rate is at least 10,000; other units are kept. NaN is ignored.
    """
    largest = max((rate for rate in rates if not math.isnan(rate)), default=0.0)
    return ("TFLOP/s", 1e-3) if unit == "GFLOP/s" and largest >= LARGE_GFLOPS else (unit, 1.0)


def rate_digits(rate: float) -> str:
    """Formats a rate: whole units from 100 on, otherwise three digits."""
    return f"{rate:.0f}" if rate >= 99.95 or rate == 0 else f"{rate:#.3g}"


def percent_digits(ratio: float) -> str:
    """Formats a ratio in percent with one decimal, or without any from 1000 % on."""
    return f"{100 * ratio:.{0 if ratio >= 10 else 1}f}"


def signed_percent(ratio: float) -> str:
    """Formats a ratio as a signed change: "+2.00 %" for 1.02."""
    return f"{100 * (ratio - 1):+.2f} %"


def short_number(value: float) -> str:
    """Formats three significant digits with the suffix k, M, G or T: "285 M"; "n/a" for NaN and infinity."""
    if not math.isfinite(value):
        return "n/a"
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= 0.9995 * size:
            return f"{value / (1e3 if letter == ' k' else size):.3g}{letter}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"


# Countable units, which have a plural.
_COUNTED = frozenset(
    (
        "barrier",
        "block",
        "byte",
        "conflict",
        "cycle",
        "element",
        "register",
        "request",
        "sector",
        "thread",
        "warp",
        "wave",
        "wavefront",
    )
)


def with_unit(value: float, unit: str) -> str:
    """Formats a value with three digits and its unit: "32 registers", "285 M wavefronts", "1.00 x"; "" for NaN."""
    if math.isnan(value):
        return ""
    digits = f"{value:.0f}" if value == round(value) else f"{value:#.3g}".rstrip(".")
    number = digits if abs(value) < 1e4 and "e" not in digits else short_number(value)
    return f"{number} {_plural(unit, value)}".strip().replace("-", "\u2212", 1 if value < 0 else 0)


def _plural(unit: str, value: float) -> str:
    """Puts a countable unit into the plural: 32 registers, 4 sectors/request, 1 block; keeps us, % and x."""
    counted, slash, rest = unit.partition("/")
    return f"{counted}s{slash}{rest}" if value != 1 and counted in _COUNTED else unit
