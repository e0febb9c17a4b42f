"""What the reference.py of a family may import."""

from types import ModuleType
from typing import Any

from warplog.measure.worker import encoding


def round_to_bfloat16(xp: ModuleType, values: Any) -> Any:
    """Returns finite values rounded to bfloat16, to nearest with ties to even, as a float32 array.

    `make_inputs` returns such values for a bfloat16 array, so that `reference` and the kernels get the same numbers.

    Args:
        xp: cupy or numpy.
        values: an array of `xp`.
    """
    return encoding.decoded(xp, encoding.encoded(xp, values, "bfloat16"), "bfloat16").astype(xp.float32)
