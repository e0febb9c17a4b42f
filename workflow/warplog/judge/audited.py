"""What the audit compares: a place on a page, a printed number or comparison, and whether it agrees with the tables."""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from warplog.judge.evidence import Evidence

_SCALES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
US = {"µs": 1.0, "ms": 1e3}
N = r"([−-]?\d[\d.]*(?:e[+-]?\d+)?)"  # a number
Q = r"([−-]?\d[\d.]*(?:e[+-]?\d+)?(?: [kMGT](?=B?\b))?)"  # a number with a suffix
V = r"([A-Za-z_]\w*)"  # a variant
UNIT = r"(TFLOP/s|GFLOP/s|GB/s|µs)"
TIME = rf"{N} (µs|ms)"
_SIGNIFICANT = 3


@dataclass(frozen=True)
class Check:
    """One printed number or comparison: `truth` is a number, or the words that the tables support.

    `least` is a half unit of the last digit of the format where the printed text has fewer digits.
    """

    printed: str
    truth: float | str
    exact: bool = False


@dataclass
class Place:
    """The place of a line: its page's tables, the variant it is about, its heading, and the header of its table."""

    known: Evidence
    variant: str = ""
    section: str = ""
    header: list[str] = field(default_factory=list)


Checks = Iterator[Check]
Rule = tuple[str, Callable[..., Checks]]


def agrees(check: Check) -> bool:
    """Returns whether a printed number is the truth, rounded to its last digit or to three digits if it has fewer."""
    if isinstance(check.truth, str):
        return check.printed == check.truth
    digits, _, suffix = check.printed.replace("−", "-").partition(" ")
    try:
        value, scale = float(digits), _SCALES.get(suffix, 1.0)
    except ValueError:
        return check.printed in ("n/a", "") and math.isnan(check.truth)
    if math.isnan(check.truth):
        return False
    mantissa = digits.partition("e")[0]
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0**-decimals * (10.0 ** int(digits.partition("e")[2] or 0))
    if (
        not check.exact and value and "." not in mantissa and "e" not in digits
    ):  # zeros after the point are not printed
        unit = min(unit, 10.0 ** (math.floor(math.log10(abs(value))) - _SIGNIFICANT + 1))
    return abs(value * scale - check.truth) <= 0.501 * unit * scale + 1e-9 * abs(check.truth)


def number(value: object) -> float:
    """Returns the value as a number; minus infinity if it is missing."""
    return float(value) if isinstance(value, (int, float)) and not math.isnan(value) else -math.inf


def is_number(text: str) -> bool:
    """Returns whether the text is a number, and not a status."""
    return bool(re.fullmatch(N, text))
