"""Converts numbers and units printed by NVIDIA's profilers to base units: ns, byte, Hz and counts.

Spellings differ between versions (`usecond` and `us`, `hz` and `cycle/second`), and ncu scales what it prints
(`523.71 usecond`, `2.33 Mbyte`) unless it is called with `--print-units base`. A prefix is a power of 1000.
Scaled numbers have only the printed digits: 1,024 bytes printed as `1.02 Kbyte` are read as 1,020 bytes.
"""

import math
import re

from warplog.core.errors import WarplogError

_TIMES_NS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1e9),
    **dict.fromkeys(("ms", "msec", "msecond"), 1e6),
    **dict.fromkeys(("us", "usec", "usecond", "µs", "μs"), 1e3),
    **dict.fromkeys(("ns", "nsec", "nsecond"), 1.0),
}
_PREFIXES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}
_SINGLE = frozenset(
    {"", "%", "hz", "byte", "cycle", "inst", "instruction", "warp", "block", "thread", "sector", "request"}
    | {"register", "sm", "pass", "passes", "wavefront", "conflict", "branch", "branches", "flop", "sample"}
    | {"cluster", "wave", "ratio", "tag", "op", "operation", "access", "accesses", "transaction", "barrier"}
)
_PLAIN = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:[,'\u2019\u00a0\u202f ][0-9]{3})+(?:\.[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:[.'\u2019\u00a0\u202f ][0-9]{3})+),[0-9]+")
_AGGREGATE = re.compile(r"(\S+) [({].*[)}]", re.DOTALL)
_MOST_DIGITS = 64


def number(text: str) -> float | None:
    """Returns the printed number, with or without thousands separators; None for `n/a`, other text or "".

    For a counter printed with its instances, such as `12 (4; 8)`, this is the first number.

    Raises:
        WarplogError: if the number has a decimal comma, which can be mistaken for a thousands separator.
    """
    text = text.strip()
    if aggregate := _AGGREGATE.fullmatch(text):
        text = aggregate[1]
    if len(text) > _MOST_DIGITS:
        return None
    if _GROUPED.fullmatch(text):
        text = re.sub(r"[^0-9.+-]", "", text)
    if _PLAIN.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else None
    if _DECIMAL_COMMA.fullmatch(text):
        raise WarplogError(f"{text}: has a decimal comma; print the report again with LC_ALL=C")
    return None


def to_base(unit: str) -> float | None:
    """Returns the factor from this unit to its base unit; None if the unit is unknown.

    Times are based on ns, rates on 1/s: `Gbyte/s` and `cycle/nsecond` both give 1e9.
    """
    top, *below = unit.strip().lower().split("/")
    factor = _TIMES_NS.get(top) or _count(top)
    for word in below:
        per_second = 1e9 / _TIMES_NS[word] if word in _TIMES_NS else None
        divisor = None if per_second else _count(word)
        if factor is None or (per_second is None and divisor is None):
            return None
        factor = factor * per_second if per_second else factor / (divisor or 1.0)
    return factor


def _count(word: str) -> float | None:
    if _is_single(word):
        return 1.0
    prefix, rest = word[:1], word[1:]
    return _PREFIXES.get(prefix) if len(rest) > 1 and _is_single(rest) else None


def _is_single(word: str) -> bool:
    return word in _SINGLE or (word.endswith("s") and word[:-1] in _SINGLE)
