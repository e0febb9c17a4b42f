"""Guarded arrays hold what was stored, tell what was written around them, and round bfloat16 as hardware does."""

import numpy as np
import pytest

from warplog.gpu.problem import GUARD_BYTES, GuardedArray


def bfloat16(values: list[float]) -> GuardedArray:
    array = GuardedArray(np, (len(values),), "bfloat16")
    array.store(np.array(values, dtype=np.float32))
    return array


def test_bfloat16_rounds_to_nearest_and_ties_to_even() -> None:
    one, step = 1.0, 2.0**-7
    array = bfloat16([one, one + step / 2, one + 1.5 * step, one + 0.51 * step, -one - step / 2])
    assert array.load().tolist() == [one, one, one + 2 * step, one + step, -one]


def test_bfloat16_keeps_what_fits_exactly() -> None:
    values = [0.0, -2.5, 2.0**100, 2.0**-100, float("inf")]
    assert bfloat16(values).load().tolist() == values


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint32"])
def test_array_holds_exactly_what_was_stored(dtype: str) -> None:
    values = np.arange(6).reshape(2, 3)
    array = GuardedArray(np, (2, 3), dtype)
    array.store(values.astype(np.float32) if dtype == "bfloat16" else values)
    assert array.holds(values)
    assert not array.holds(values + 1)
    assert array.load().tolist() == values.tolist()


def test_poison_counts_as_never_written_until_it_is_overwritten() -> None:
    array = GuardedArray(np, (4,), "uint32")
    array.poison()
    assert array.never_written() == 4
    array.store(np.array([1, 2, 3, 2**32 - 1], dtype=np.uint32))
    assert array.never_written() == 1


@pytest.mark.parametrize(
    ("offset", "words"), [(-1, "1 bytes before its start"), (16, "1 bytes after its end")]
)
def test_damage_is_found_on_either_side(offset: int, words: str) -> None:
    array = GuardedArray(np, (4,), "float32")
    assert array.damage() == ""
    array._raw[GUARD_BYTES + offset] = 0
    assert array.damage() == words
