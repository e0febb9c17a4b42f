"""Guarded arrays in device or host memory, packed launcher arguments, and the verdict on a launch."""

import ctypes
import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

import numpy as np

from warplog.catalog.contract import Argument, Case
from warplog.catalog.family import Family
from warplog.measure.worker import encoding
from warplog.measure.worker.case_data import CaseData

# Every byte of a guard band is 0xFF, which is NaN in every floating-point type: a kernel that reads past its
# input gets NaN, and one that writes past its output changes the band. Arithmetic does not produce this NaN
# (it produces 0x7FFF..), so it also marks elements that were never written.
GUARD_BYTES = 64 << 10
GUARD_VALUE = 0xFF
_ROW = 4096
HOST = ("pinned", "pageable")  # kinds of memory that NumPy reads and writes
_PAGE, _ALIGNMENT = 2 << 20, 512  # bytes of device memory: a page, and how allocations are aligned

SCALARS: Mapping[str, type[Any]] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int8": ctypes.c_int8,
    "uint8": ctypes.c_uint8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "uint32": ctypes.c_uint32,
    "int64": ctypes.c_int64,
    "bool": ctypes.c_bool,
}
_EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float8_e4m3": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}


@dataclass(frozen=True)
class Verdict:
    """Verdict on the results of a launch: `reason` is '' if they are right, else the first error found."""

    reason: str
    max_abs_error: float | None = None
    max_error_over_tolerance: float | None = None
    max_error_over_scale: float | None = None


def launcher_type(family: Family) -> type[ctypes.Structure]:
    """Returns the C structure of the launcher's packed arguments, in the order of family.yaml."""
    fields = [(a.name, SCALARS[a.dtype] if a.kind == "scalar" else ctypes.c_void_p) for a in family.arguments]
    return type("LauncherArguments", (ctypes.Structure,), {"_fields_": fields})


class GuardedArray:
    """An array between two guard bands, in one allocation, `lead` bytes after its start.

    Values are stored and loaded as arrays of `xp`, whether the array is in device, managed, pinned or pageable memory.
    """

    def __init__(
        self, xp: ModuleType, shape: tuple[int, ...], dtype: str, memory: str = "device", lead: int = 0
    ) -> None:
        self._caller = xp
        self._xp = np if memory in HOST else xp
        self._type = dtype
        self.dtype = encoding.stored_dtype(dtype)
        self.nbytes = int(np.prod(shape, dtype=np.int64)) * self.dtype.itemsize
        self._raw = _allocate(xp, lead + self.nbytes + 2 * GUARD_BYTES, memory)[lead:]
        self._raw[:GUARD_BYTES] = GUARD_VALUE
        self._raw[GUARD_BYTES + self.nbytes :] = GUARD_VALUE
        self._body = self._raw[GUARD_BYTES : GUARD_BYTES + self.nbytes]
        self._values = self._body.view(self.dtype).reshape(shape)

    def pointer(self) -> int:
        """Returns the address of the first element."""
        data = self._body.data
        return int(data.ptr) if hasattr(data, "ptr") else int(self._body.ctypes.data)

    def store(self, values: Any) -> None:
        """Fills the array; values of a bfloat16 or float8 array are rounded to nearest even."""
        encoded = encoding.encoded(self._caller, values, self._type)
        self._values[...] = encoded.get() if self._xp is np and hasattr(encoded, "get") else encoded

    def load(self) -> Any:
        """Returns the array's values as float64, or complex128."""
        return encoding.decoded(self._caller, self._caller.asarray(self._values), self._type)

    def holds(self, values: Any) -> bool:
        """Returns whether the array contains exactly the bits that `store` writes for these values."""
        xp = self._caller  # comparing on the host takes longer than copying to the device
        bits = np.dtype(f"u{self.dtype.itemsize}")
        encoded = encoding.encoded(xp, values, self._type)
        expected = xp.ascontiguousarray(encoded, dtype=self.dtype).reshape(-1).view(bits)
        return bool(over_all(xp, "all", xp.asarray(self._body).view(bits) == expected))

    def poison(self) -> None:
        """Fills the array with the value that marks elements as never written, see `poison_value`."""
        self._body[:] = GUARD_VALUE

    def never_written(self) -> int:
        """Returns the number of elements that still contain the poison."""
        rows = self._body.reshape(-1, self.dtype.itemsize)
        return int((rows == GUARD_VALUE).all(axis=1).sum())

    def poison_value(self) -> Any:
        """Returns the value of an element that was never written: NaN, or -1 or the largest one of an integer type."""
        bits = np.full(self.dtype.itemsize, GUARD_VALUE, np.uint8).view(self.dtype)
        return encoding.decoded(np, bits, self._type)[0]

    def damage(self) -> str:
        """Returns '' if both guard bands are intact, else how many bytes were written and where."""
        for band, where in (
            (self._raw[:GUARD_BYTES], "before its start"),
            (self._raw[GUARD_BYTES + self.nbytes :], "after its end"),
        ):
            changed = band != GUARD_VALUE
            count = int(over_all(self._xp, "sum", changed))
            if count:
                return f"{count} bytes {where}"
        return ""


def over_all(xp: ModuleType, how: str, values: Any) -> Any:
    """Reduces by rows first: CuPy uses one block per result, so that reducing all at once runs at 1 GB/s.

    Args:
        xp: cupy or numpy.
        how: name of the reduction: all, any, sum or max.
        values: the array.
    """
    flat = values.reshape(-1)
    whole = flat.size // _ROW * _ROW
    if whole:
        rest = flat[whole:]
        rows = getattr(flat[:whole].reshape(-1, _ROW), how)(axis=1)
        flat = xp.concatenate((rows, getattr(rest.reshape(1, -1), how)(axis=1))) if rest.size else rows
    return getattr(flat, how)()


def _allocate(xp: ModuleType, count: int, memory: str) -> Any:
    """Allocates `count` bytes of memory of this kind; with numpy, everything is host memory."""
    if memory == "pageable" or not hasattr(xp, "cuda"):
        return np.empty(count, dtype=np.uint8)
    if memory == "device":
        return xp.empty(count, dtype=xp.uint8)
    if memory == "managed":
        return xp.ndarray(count, dtype=xp.uint8, memptr=xp.cuda.malloc_managed(count))
    # From CuPy's pool, since pinning 1 GB takes half a second. Kernels can access it (unified addressing).
    return np.frombuffer(xp.cuda.alloc_pinned_memory(count), dtype=np.uint8, count=count)


class Problem:
    """Inputs, outputs and packed arguments of one case, with new random inputs for each seed.

    Args:
        xp: cupy or numpy.
        family: the family, which defines the arguments.
        case: the case, which defines shapes and scalars.
        memory: kind of memory by name of array: "pinned", "pageable" or "managed" (default "device").
        data: inputs and answers to share with other problems; by default, they are not shared.
        offsets: where in a page of device memory a smaller array begins; by default, it begins an allocation.
    """

    def __init__(
        self,
        xp: ModuleType,
        family: Family,
        case: Case,
        memory: Mapping[str, str] | None = None,
        data: CaseData | None = None,
        offsets: Random | None = None,
    ) -> None:
        self._xp = xp
        self.family = family
        self.case = case
        self.memory = memory or {}
        self._data = data or CaseData(xp, family)
        self.arrays = {a.name: self._array(a, offsets) for a in family.arguments if a.kind != "scalar"}
        self._seed = 0
        self.arguments = launcher_type(family)()
        for a in family.arguments:
            scalar = case.values[a.name] if a.kind == "scalar" else None
            value = self.arrays[a.name].pointer() if scalar is None else _as_scalar(a, scalar)
            setattr(self.arguments, a.name, value)

    def _array(self, argument: Argument, offsets: Random | None) -> GuardedArray:
        shape, dtype = self.family.shape(argument, self.case), self.family.dtype(argument, self.case)
        is_small = math.prod(shape) * encoding.stored_dtype(dtype).itemsize < _PAGE
        lead = offsets.randrange(0, _PAGE, _ALIGNMENT) if offsets and is_small else 0
        return GuardedArray(self._xp, shape, dtype, self.memory.get(argument.name, "device"), lead)

    def fill(self, seed: int) -> None:
        """Stores the random inputs of `seed` and poisons the outputs and workspaces."""
        self._seed = seed
        self._store("input")
        self.restore()

    def restore(self) -> None:
        """Restores what launches may change: poisons outputs and workspaces, and stores the inout arrays again."""
        self._store("inout")
        for argument in self._of_kind("output", "workspace"):
            self.arrays[argument.name].poison()

    def _store(self, kind: str) -> None:
        inputs = self._data.inputs(self.case, self._seed)
        for argument in self._of_kind(kind):
            self.arrays[argument.name].store(inputs[argument.name])

    def verdict(self) -> Verdict:
        """Checks guard bands and inputs after a launch, then compares every output with the reference."""
        for name, array in self.arrays.items():
            if damage := array.damage():
                return Verdict(f"wrote outside {name}: {damage}")
        inputs = self._data.inputs(self.case, self._seed)
        for argument in self._of_kind("input"):
            if not self.arrays[argument.name].holds(inputs[argument.name]):
                return Verdict(f"changed its input {argument.name}")
        expected = self._data.answers(self.case, self._seed)
        verdicts = [self._judge(a, *expected[a.name]) for a in self._of_kind("inout", "output")]
        bad = [v for v in verdicts if v.reason]
        return bad[0] if bad else max(verdicts, key=lambda v: v.max_error_over_tolerance or 0.0)

    def _of_kind(self, *kinds: str) -> list[Argument]:
        return [a for a in self.family.arguments if a.kind in kinds]

    def _judge(self, argument: Argument, expected: Any, scale: Any) -> Verdict:
        xp, name = self._xp, argument.name
        array = self.arrays[name]
        got = array.load()
        bound = self.tolerance(name)
        tolerance = bound * scale
        error = xp.abs(got - expected)
        bad = ~(error <= tolerance)
        count = int(over_all(xp, "sum", bad))
        largest, worst = 0.0, 0.0
        if error.size:
            largest = float(over_all(xp, "max", error))
            worst = float(over_all(xp, "max", error / xp.maximum(tolerance, 1e-300)))
        if count == 0:
            return Verdict("", largest, worst, worst * bound)
        if left := array.never_written():
            poison = array.poison_value()
            other = "come from reads outside an input" if np.isnan(poison) else f"are {poison:.0f}"
            return Verdict(f"{name}: {left} of {got.size} elements were never written or {other}")
        if not bool(over_all(xp, "any", got)):
            return Verdict(f"{name} is all zero")
        if odd := int(over_all(xp, "sum", ~xp.isfinite(got))):
            return Verdict(f"{name}: {odd} of {got.size} elements are NaN or Inf")
        where = tuple(int(i) for i in xp.unravel_index(xp.argmax(error), error.shape))
        return Verdict(
            f"{name}: {count} of {got.size} elements are outside the tolerance; worst at {list(where)}: "
            f"{_shown(got[where])} instead of {_shown(expected[where])}",
            largest,
            worst,
        )

    def tolerance(self, output: str = "") -> float:
        """Returns the bound of the rounding error of an output, relative to the reference's scale.

        factor * (eps/2) * sqrt(reduction length): a random walk of unit round-offs (Higham, Accuracy and Stability
        of Numerical Algorithms, 2.8 and 3.1), times the family's safety factor.
        """
        rule = self.family.tolerance_of(output, self.case)
        length = self.family.value(rule.reduction_length, self.case)
        return float(rule.factor * _EPSILON[rule.dtype] / 2 * max(length, 1.0) ** 0.5)


def _shown(value: Any) -> str:
    number = complex(value)
    imaginary = f"{number.imag:+.9g}i" if number.imag or value.dtype.kind == "c" else ""
    return f"{number.real:.9g}{imaginary}"


def _as_scalar(argument: Argument, value: float) -> float | int:
    return float(value) if argument.dtype.startswith("float") else int(value)
