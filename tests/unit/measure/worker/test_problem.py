"""Guarded arrays return what was stored, detect writes outside, and round bfloat16 to nearest even."""

import ctypes
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from msgspec import structs

from host_family import make_family
from warplog.catalog.contract import Argument, Tolerance
from warplog.measure.worker import problem
from warplog.measure.worker.case_data import CaseData
from warplog.measure.worker.problem import GUARD_BYTES, GuardedArray, Problem


def bfloat16(values: list[float]) -> GuardedArray:
    array = GuardedArray(np, (len(values),), "bfloat16")
    array.store(np.array(values, dtype=np.float32))
    return array


def test_bfloat16_rounds_to_nearest_and_ties_to_even() -> None:
    one, step = 1.0, 2.0**-7
    array = bfloat16([one, one + step / 2, one + 1.5 * step, one + 0.51 * step, -one - step / 2])
    assert array.load().tolist() == [one, one, one + 2 * step, one + step, -one]


def test_bfloat16_keeps_representable_values() -> None:
    values = [0.0, -2.5, 2.0**100, 2.0**-100, float("inf")]
    assert bfloat16(values).load().tolist() == values


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint32"])
def test_array_contains_exactly_what_was_stored(dtype: str) -> None:
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
    ("dtype", "words"),
    [
        ("float32", "never written or come from reads outside an input"),
        ("float8_e4m3", "never written or come from reads outside an input"),
        ("int32", "never written or are -1"),
        ("uint32", "never written or are 4294967295"),
        ("bool", "never written or are 255"),
    ],
)
def test_the_reason_names_the_number_that_an_unwritten_integer_cannot_be_told_from(
    tmp_path: Path, dtype: str, words: str
) -> None:
    family = make_family(tmp_path)
    x, y, *scalars = family.arguments
    family = structs.replace(family, arguments=(x, structs.replace(y, element=dtype), *scalars))
    made = Problem(np, family, family.case("odd"))
    made.fill(1)
    assert made.verdict().reason == f"y: 127 of 127 elements were {words}"


@pytest.mark.parametrize(
    ("offset", "words"), [(-1, "1 bytes before its start"), (16, "1 bytes after its end")]
)
def test_damage_is_found_on_either_side(offset: int, words: str) -> None:
    array = GuardedArray(np, (4,), "float32")
    assert array.damage() == ""
    array._raw[GUARD_BYTES + offset] = 0
    assert array.damage() == words


class OnDevice(np.ndarray):
    """An array that behaves like one on a GPU: only `get` copies it to the host, as for CuPy."""

    brought: ClassVar[list] = []

    def get(self):
        OnDevice.brought.append(self.dtype)
        return np.array(self)


def on_device(values):
    return np.array(values, dtype=np.float32).view(OnDevice)


class FakePinned:
    """CuPy's pool of page-locked memory; records the requested sizes."""

    sizes: ClassVar[list] = []

    @classmethod
    def give(cls, size):
        cls.sizes.append(size)
        return bytearray(size)


@pytest.fixture
def device():
    """Returns numpy in place of cupy: its arrays count as on the device."""
    FakePinned.sizes.clear()
    managed = []
    cuda = SimpleNamespace(
        alloc_pinned_memory=FakePinned.give,
        malloc_managed=lambda size: managed.append(size) or bytearray(size),
    )
    names = {n: getattr(np, n) for n in dir(np) if n[0] != "_"}
    made = {"empty": lambda *a, **k: np.empty(*a, **k).view(OnDevice)}
    made["ndarray"] = lambda count, dtype, memptr: np.frombuffer(memptr, dtype, count).view(OnDevice)
    made["asarray"] = lambda a: np.asarray(a).view(OnDevice)
    made["ascontiguousarray"] = lambda a, dtype: np.ascontiguousarray(a, dtype=dtype).view(OnDevice)
    return SimpleNamespace(**names | made | {"cuda": cuda, "managed": managed})


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_an_array_in_host_memory_stores_and_loads_device_arrays(device, memory, dtype):
    array = GuardedArray(device, (2, 3), dtype, memory)
    values = np.arange(6).reshape(2, 3)
    OnDevice.brought.clear()
    array.store(on_device(values))
    assert OnDevice.brought == ["uint16" if dtype == "bfloat16" else "float32"], "copied once, after rounding"
    assert type(array._raw) is np.ndarray
    assert array.holds(on_device(values))
    assert not array.holds(on_device(values + 1))
    assert len(OnDevice.brought) == 1, "the comparison runs on the device"
    assert isinstance(array.load(), OnDevice)
    assert array.load().tolist() == values.tolist()
    assert bool(FakePinned.sizes) == (memory == "pinned")


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_host_arrays_are_guarded_and_poisoned_too(device, memory):
    array = GuardedArray(device, (4,), "float32", memory)
    assert array.damage() == ""
    array.poison()
    assert array.never_written() == 4
    body = (ctypes.c_ubyte * 20).from_address(array.pointer())
    body[16] = 0  # as if a launcher wrote past the end
    assert array.damage() == "1 bytes after its end"
    body[0:16] = bytes(16)
    assert array.never_written() == 0


@pytest.mark.parametrize("memory", ["device", "managed"])
def test_device_and_managed_arrays_are_written_on_the_device(device, memory):
    array = GuardedArray(device, (4,), "float32", memory)
    array.store(np.ones(4, dtype=np.float32).view(OnDevice))
    assert isinstance(array._raw, OnDevice)
    assert FakePinned.sizes == []
    assert bool(device.managed) == (memory == "managed")


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 3 * 4096, 100_003])
def test_reductions_by_rows_include_every_element(size: int) -> None:
    for place in {0, size // 2, size - 1}:
        values = np.zeros(size)
        values[place] = 3.0
        assert problem.over_all(np, "max", values) == 3.0
        assert problem.over_all(np, "any", values)
        assert problem.over_all(np, "sum", values != 0) == 1
        assert not problem.over_all(np, "all", values == 0)
    assert problem.over_all(np, "all", np.zeros(size) == 0)


def problem_of(tmp_path, dtype="float32", length="1", factor=1, arguments=()):
    """Returns the host family's problem of 64 elements with another tolerance and further arguments."""
    family = make_family(tmp_path)
    rule = Tolerance(dtype=dtype, reduction_length=length, factor=factor)
    changed = structs.replace(family, tolerance=rule, arguments=(*family.arguments, *arguments))
    return Problem(np, changed, changed.case("64"))


@pytest.mark.parametrize(
    ("dtype", "length", "factor", "tolerance"),
    [
        ("float64", "1", 1, 2.0**-53),
        ("float32", "1", 1, 2.0**-24),
        ("float16", "1", 1, 2.0**-11),
        ("bfloat16", "1", 3, 3 / 256),
        ("float32", "N", 1, 2.0**-21),
        ("float32", "N*N", 1, 2.0**-18),
        ("float32", "N/128", 1, 2.0**-24),
    ],
)
def test_the_tolerance_is_half_an_epsilon_times_the_root_of_the_reduction_length(
    tmp_path, dtype, length, factor, tolerance
):
    assert problem_of(tmp_path, dtype, length, factor).tolerance() == tolerance


def test_the_verdict_reports_the_largest_error_of_all_outputs(tmp_path, monkeypatch):
    """The tolerance is 2^-24 times the expected value, so for 1 an error of 2^-26 is a quarter of the tolerance."""
    judged = problem_of(
        tmp_path, arguments=[Argument(name="z", kind="output", element="float64", dimensions=("N",))]
    )
    steps = {"y": np.zeros(64), "z": np.zeros(64)}
    steps["y"][7] = 2.0**-26
    steps["z"][[3, 40]] = 2.0**-25, 2.0**-27
    right = {name: (np.ones(64) - step, np.ones(64)) for name, step in steps.items()}
    monkeypatch.setattr(CaseData, "answers", lambda *_: right)
    judged.fill(1)
    for name in right:
        judged.arrays[name].store(np.ones(64))
    verdict = judged.verdict()
    assert (verdict.reason, verdict.max_abs_error, verdict.max_error_over_tolerance) == ("", 2.0**-25, 0.5)
    assert verdict.max_error_over_scale == 2.0**-25, "the scale is 1"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ({3: 1 - 2.0**-24}, ""),
        (
            {3: 1 + 2.0**-23},
            "1 of 64 elements are outside the tolerance; worst at [3]: 1.00000012 instead of 1",
        ),
        ({3: np.nan}, "1 of 64 elements are NaN or Inf"),
        ({3: np.inf, 5: -np.inf}, "2 of 64 elements are NaN or Inf"),
        (dict.fromkeys(range(64), 0.0), "is all zero"),
    ],
)
def test_a_result_beyond_the_tolerance_or_without_a_number_is_wrong(tmp_path, monkeypatch, written, reason):
    """All results are 1, and the tolerance is 2^-24."""
    judged = problem_of(tmp_path)
    monkeypatch.setattr(CaseData, "answers", lambda *_: {"y": (np.ones(64), np.ones(64))})
    judged.fill(1)
    results = np.ones(64)
    results[list(written)] = list(written.values())
    judged.arrays["y"].store(results)
    assert judged.verdict().reason.removeprefix("y: ").removeprefix("y ") == reason


def test_an_array_whose_type_depends_on_the_case_is_stored_in_the_type_of_the_case(tmp_path):
    family = make_family(tmp_path)
    kept, y, *scalars = family.arguments
    by_case = structs.replace(y, element={"bfloat16": "N == 127", "float32": "N != 127"})
    family = structs.replace(family, arguments=(kept, by_case, *scalars))
    arrays = {name: Problem(np, family, family.case(name)).arrays["y"] for name in ("odd", "even")}
    assert {name: array.nbytes for name, array in arrays.items()} == {"odd": 2 * 127, "even": 4 * 256}
    for array in arrays.values():
        array.store(np.full(array.nbytes // array.dtype.itemsize, 1 + 2.0**-10, dtype=np.float32))
    assert [array.load()[0] for array in arrays.values()] == [1.0, 1 + 2.0**-10]


def test_small_arrays_begin_anywhere_in_a_page_and_keep_their_guard_bands(tmp_path):
    family = make_family(tmp_path)
    found = set()
    for seed in range(20):
        made = Problem(np, family, family.case("64"), offsets=Random(seed))
        again = Problem(np, family, family.case("64"), offsets=Random(seed))
        made.fill(1)
        places = [{name: lead(array) for name, array in one.arrays.items()} for one in (made, again)]
        assert places[0] == places[1], "the seed decides"
        assert all(place % 512 == 0 and place < 2 << 20 for place in places[0].values())
        assert not any(array.damage() for array in made.arrays.values())
        found |= set(places[0].values())
    assert len(found) > 30
    assert {lead(array) for array in Problem(np, family, family.case("64")).arrays.values()} == {0}


def lead(array):
    """Returns how many bytes after the start of its allocation the first guard band begins."""
    return array._raw.ctypes.data - array._raw.base.ctypes.data
