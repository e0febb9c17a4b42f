"""Which cases of a family form a series over the problem size, whose points a line may join."""

import re
from collections.abc import Mapping
from itertools import pairwise

_SIZE = re.compile(r"(\d+)(Ki|Mi|Gi)?")
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def series(sizes: Mapping[str, float], headline: str) -> list[str]:
    """Returns the cases that a line may join, by size; none if they are shapes that have no order.

    They are of the headline case's kind: their names differ from its name only in the sizes that they contain, or
    contain none. They have an order if each is larger than the one before and no dimension is smaller: 1024x1024 and
    4096x4096, but not 16384x1024 and 4096x4096. `sizes` has the problem size of each case.
    """
    kind = _SIZE.sub("#", headline)
    comparable = (case for case in sizes if _SIZE.sub("#", case) == kind or not re.search(r"\d", case))
    by_size = sorted(comparable, key=lambda case: sizes[case])
    steps = [(_dimensions(a), _dimensions(b), sizes[a] < sizes[b]) for a, b in pairwise(by_size)]
    ordered = all(
        grows and all(p <= q for p, q in zip(before, after, strict=False)) for before, after, grows in steps
    )
    return by_size if ordered else []


def _dimensions(case: str) -> list[int]:
    return [int(digits) * _UNITS[unit] for digits, unit in _SIZE.findall(case)]
