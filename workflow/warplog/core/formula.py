"""Evaluates formulas and conditions of family.yaml (`2*M*N*K`, `BM % TM == 0`) without Python's eval."""

import ast
import math
import threading
from collections.abc import Mapping
from functools import lru_cache

import simpleeval

from warplog.core.errors import WarplogError

_FUNCTIONS = {"min": min, "max": max, "ceil": lambda x: -int(-x // 1), "abs": abs}
_LONGEST = 500
_MOST_POWER = 64
_MOST_BITS = 1023  # of an exact power, so that it is also a float
_REFUSED = (ast.Attribute, ast.Subscript, ast.JoinedStr, ast.FormattedValue)  # not needed for arithmetic
_MOST_PARSED = 1024  # formulas that are kept, since each is evaluated for every case


def evaluate(text: str | float, values: Mapping[str, float], where: str) -> float:
    """Evaluates `text` with the names in `values`.

    Args:
        text: a number, or an expression of names, numbers, `+ - * / // % **`, min, max, ceil and abs.
        values: the case's parameters by name.
        where: prefix of errors, usually file and key.

    Raises:
        WarplogError: A name is unknown, the syntax is invalid, or the result is not a number or not a finite one.
    """
    result = text if isinstance(text, int | float) else _compute(text, values, where)
    if isinstance(result, bool) or not isinstance(result, int | float):
        raise WarplogError(f"{where}: {text!r} gives {type(result).__name__}, not a number")
    if not _is_finite(result):
        raise WarplogError(f"{where}: {_shortened(text)} is not a finite number")
    return result


def holds(text: str, values: Mapping[str, float], where: str) -> bool:
    """Evaluates a condition such as `BM % TM == 0 and THREADS <= 1024`; otherwise like `evaluate`.

    Raises:
        WarplogError: As for `evaluate`, or the result is not true or false.
    """
    result = _compute(text, values, where)
    if not isinstance(result, bool):
        raise WarplogError(
            f"{where}: {text!r} gives {type(result).__name__}, not true or false; write a comparison"
        )
    return result


def _compute(text: str, values: Mapping[str, float], where: str) -> object:
    if len(text) > _LONGEST:
        raise WarplogError(f"{where}: the formula is {len(text)} characters long, the limit is {_LONGEST}")
    if "^" in text:
        raise WarplogError(f"{where}: {_shortened(text)}: ^ is no power; write ** for one, such as n**2")
    try:
        evaluator = _local.evaluator
        evaluator.names = dict(values)
        result: object = evaluator.eval(text, _parsed(text))
    except Exception as error:  # simpleeval raises many types, including SyntaxError and ZeroDivisionError
        raise WarplogError(
            f"{where}: cannot evaluate {_shortened(text)} ({error}); known names: {', '.join(sorted(values))}"
        ) from None
    return result


def _power(base: float, exponent: float) -> float:
    """Returns a power; an exact one is refused before it is computed if it could have more than _MOST_BITS bits."""
    if abs(exponent) > _MOST_POWER:
        raise ValueError(f"exponents are limited to {_MOST_POWER}")
    if isinstance(base, int) and base.bit_length() * abs(exponent) > _MOST_BITS:
        raise ValueError(f"powers are limited to {_MOST_BITS} bits")
    result: float = base**exponent
    return result


def _number(node: ast.Constant) -> float:
    """Returns a number, true or false; a text is refused, since `%` formats it and `*` repeats it."""
    if not isinstance(node.value, int | float):
        raise ValueError(f"{type(node.value).__name__} in place of a number")
    return node.value


@lru_cache(_MOST_PARSED)
def _parsed(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer that no float can hold
        return False


def _shortened(text: str | float) -> str:
    shown = repr(text)
    return shown if len(shown) <= 80 else f"{shown[:79]}…"


class _Local(threading.local):
    """The evaluator of a thread: to make one takes longer than to evaluate a formula."""

    def __init__(self) -> None:
        self.evaluator = simpleeval.SimpleEval(functions=_FUNCTIONS)
        self.evaluator.operators[ast.Pow] = _power
        self.evaluator.nodes[ast.Constant] = _number
        for kind in _REFUSED:
            self.evaluator.nodes.pop(kind, None)


_local = _Local()
