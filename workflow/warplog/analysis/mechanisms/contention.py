"""How many atomics of a kernel are on one address of global memory, by the traced addresses of a small case."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warplog.core.columns import Row, number, text
from warplog.metrics.kernels import of_name

Cases = Mapping[str, Mapping[str, float]]  # the values of each case of a family
_Variant = tuple[str, str]  # family, variant


@dataclass(frozen=True)
class Traced:
    """The atomics of one traced kernel.

    Attributes:
        case: that was traced.
        kernel: name of the kernel.
        requests: warp-wide atomics on global memory.
        same_address: operations by lanes on the address that most of them are on; NaN if unknown, or without atomics.
    """

    case: str
    kernel: str
    requests: float
    same_address: float


def traced(accesses: Iterable[Row], kernels: Iterable[Row]) -> Mapping[_Variant, Sequence[Traced]]:
    """Returns the kernels of each variant that was traced, by the tables `accesses` and `traced_kernels`."""
    requests: dict[tuple[object, ...], float] = defaultdict(float)
    for row in accesses:
        is_atomic = row["status"] == "ok" and row["space"] == "global" and row["kind"] == "atomic"
        requests[_launch(row)] += number(row, "requests") if is_atomic else 0.0
    found: dict[_Variant, list[Traced]] = defaultdict(list)
    for row in kernels:
        if (launch := _launch(row)) in requests:
            found[text(row, "family"), text(row, "variant")].append(
                Traced(text(row, "case"), text(row, "kernel"), requests[launch], number(row, "same_address"))
            )
    return found


def per_request(kernels: Sequence[Traced], cases: Cases, case: str, kernel: str) -> float | None:
    """Returns how many operations the address with the most of them receives per warp-wide atomic of a kernel.

    That is the share of all operations by lanes that it receives, times the lanes of a request. Both are taken to be
    those of the traced case that has most values in common with `case`, all if it is the same, and then most atomics.
    One case does not tell how they depend on the grid or the data: they stay if all blocks add to one word, while the
    share of a block's own word falls with the number of blocks, and that of the fullest bin of a histogram depends on
    the keys.

    Args:
        kernels: those of the variant that were traced; several of one name count together.
        cases: of the family, as far as they are known.
        kernel: its name, as a profiler prints it.

    Returns:
        NaN if the trace does not tell; None if the kernel was not traced.
    """
    named = of_name(kernels, kernel)
    if not named:
        return None
    values = cases.get(case, {}).items()
    nearest = max(named, key=lambda one: (len(values & cases.get(one.case, {}).items()), one.requests)).case
    own = [one for one in named if one.case == nearest and one.requests]
    return sum(one.same_address for one in own) / sum(one.requests for one in own) if own else math.nan


def _launch(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("family", "variant", "case", "launch"))
