"""Guarded arrays hold what was stored, tell what was written around them, and round bfloat16 as hardware does."""

import ctypes
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from warplog.measure.worker import problem
from warplog.measure.worker.problem import GUARD_BYTES, GuardedArray


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


class OnDevice(np.ndarray):
    """An array as if it lay on a GPU: `get` brings it to the host, which CuPy's arrays do in no other way."""

    brought: ClassVar[list] = []

    def get(self):
        OnDevice.brought.append(self.dtype)
        return np.array(self)


def on_device(values):
    return np.array(values, dtype=np.float32).view(OnDevice)


class FakePinned:
    """CuPy's pool of page-locked memory, with what was asked of it."""

    asked: ClassVar[list] = []

    @classmethod
    def give(cls, size):
        cls.asked.append(size)
        return bytearray(size)


@pytest.fixture
def device():
    """numpy in the place of cupy: what it makes is on the device."""
    FakePinned.asked.clear()
    cuda = SimpleNamespace(alloc_pinned_memory=FakePinned.give)
    names = {n: getattr(np, n) for n in dir(np) if n[0] != "_"}
    made = {"empty": lambda *a, **k: np.empty(*a, **k).view(OnDevice)}
    made["asarray"] = lambda a: np.asarray(a).view(OnDevice)
    made["ascontiguousarray"] = lambda a, dtype: np.ascontiguousarray(a, dtype=dtype).view(OnDevice)
    return SimpleNamespace(**names | made | {"cuda": cuda})


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_an_array_in_host_memory_takes_and_gives_arrays_of_the_device(device, memory, dtype):
    array = GuardedArray(device, (2, 3), dtype, memory)
    values = np.arange(6).reshape(2, 3)
    OnDevice.brought.clear()
    array.store(on_device(values))
    assert OnDevice.brought == ["uint16" if dtype == "bfloat16" else "float32"], "once, and rounded before"
    assert type(array._raw) is np.ndarray
    assert array.holds(on_device(values))
    assert not array.holds(on_device(values + 1))
    assert len(OnDevice.brought) == 1, "compared on the device"
    assert isinstance(array.load(), OnDevice)
    assert array.load().tolist() == values.tolist()
    assert bool(FakePinned.asked) == (memory == "pinned")


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_host_arrays_are_guarded_and_poisoned_too(device, memory):
    array = GuardedArray(device, (4,), "float32", memory)
    assert array.damage() == ""
    array.poison()
    assert array.never_written() == 4
    body = (ctypes.c_ubyte * 20).from_address(array.pointer())
    body[16] = 0  # as a launcher would write past the end
    assert array.damage() == "1 bytes after its end"
    body[0:16] = bytes(16)
    assert array.never_written() == 0


def test_device_arrays_stay_on_the_device(device):
    array = GuardedArray(device, (4,), "float32")
    array.store(np.ones(4, dtype=np.float32).view(OnDevice))
    assert isinstance(array._raw, OnDevice)
    assert FakePinned.asked == []


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 3 * 4096, 100_003])
def test_reductions_by_rows_see_every_element(size: int) -> None:
    for place in {0, size // 2, size - 1}:
        values = np.zeros(size)
        values[place] = 3.0
        assert problem.over_all(np, "max", values) == 3.0
        assert problem.over_all(np, "any", values)
        assert problem.over_all(np, "sum", values != 0) == 1
        assert not problem.over_all(np, "all", values == 0)
    assert problem.over_all(np, "all", np.zeros(size) == 0)
