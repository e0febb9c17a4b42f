"""What a Python launcher is called with: arrays over a problem's memory, scalars, and the current stream."""

import contextlib
import ctypes
import importlib
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from warplog.measure.worker.backend import Backend, NumpyBackend
from warplog.measure.worker.encoding import Arrays, stored_dtype
from warplog.measure.worker.problem import Problem

Scalars = dict[str, int | float]
_TORCH_NAMES = {"float8_e4m3": "float8_e4m3fn"}


class Caller(Protocol):
    """Makes the arrays of a language, and its stream the current one."""

    def array(self, address: int, shape: tuple[int, ...], dtype: str) -> Any:
        """Returns an array over the memory at `address`."""

    def on(self, stream: int) -> contextlib.AbstractContextManager[Any]:
        """Returns a context in which the CUDA stream with this handle is the current one."""


class HostCaller:
    """NumPy arrays over host memory, for tests without a GPU; bfloat16 and float8 as their bits (uint16, uint8)."""

    def array(self, address: int, shape: tuple[int, ...], dtype: str) -> Any:
        """Returns an array over the memory at `address`."""
        kind, count = stored_dtype(dtype), int(np.prod(shape, dtype=np.int64))
        if not count:
            return np.empty(shape, dtype=kind)
        memory = (ctypes.c_uint8 * (count * kind.itemsize)).from_address(address)
        return np.frombuffer(memoryview(memory), dtype=kind).reshape(shape)

    def on(self, stream: int) -> contextlib.AbstractContextManager[Any]:
        """Returns a context that does nothing."""
        return contextlib.nullcontext()


class CupyCaller:
    """CuPy arrays over device memory; bfloat16 and float8 as their bits (uint16, uint8)."""

    def __init__(self) -> None:
        import cupy

        self._cupy = cupy

    def array(self, address: int, shape: tuple[int, ...], dtype: str) -> Any:
        """Returns an array over the memory at `address`."""
        cuda, kind = self._cupy.cuda, stored_dtype(dtype)
        size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
        memory = cuda.UnownedMemory(address, size, None, device_id=cuda.Device().id)
        return self._cupy.ndarray(shape, kind, cuda.MemoryPointer(memory, 0))

    def on(self, stream: int) -> contextlib.AbstractContextManager[Any]:
        """Returns a context in which the CUDA stream with this handle is the current one."""
        found: contextlib.AbstractContextManager[Any] = self._cupy.cuda.ExternalStream(stream)
        return found


class TorchCaller:
    """PyTorch tensors over device memory, with their true type, for Triton and PyTorch."""

    def __init__(self) -> None:
        self._torch = importlib.import_module("torch")
        self._torch.cuda.init()

    def array(self, address: int, shape: tuple[int, ...], dtype: str) -> Any:
        """Returns a tensor over the memory at `address`."""
        kind = getattr(self._torch, _TORCH_NAMES.get(dtype, dtype))
        if 0 in shape:
            return self._torch.empty(shape, dtype=kind, device="cuda")
        bits = np.dtype(f"i{stored_dtype(dtype).itemsize}")  # every version of PyTorch has the signed types
        tensor = self._torch.as_tensor(_Memory(address, shape, bits.str), device="cuda")
        return tensor.view(kind)

    @contextlib.contextmanager
    def on(self, stream: int) -> Iterator[None]:
        """Makes the CUDA stream with this handle the current one."""
        cuda = self._torch.cuda
        with cuda.stream(cuda.ExternalStream(stream) if stream else cuda.default_stream()):
            yield


class _Memory:
    """Device memory for any library that reads the CUDA array interface, version 3 (Numba's documentation)."""

    def __init__(self, address: int, shape: tuple[int, ...], kind: str) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": kind,
            "data": (address, False),
            "version": 3,
        }


def make_caller(language: str, backend: Backend) -> Caller:
    """Returns the caller for a language: CuPy arrays for `cupy`, tensors for others, NumPy arrays on the host."""
    if isinstance(backend, NumpyBackend):
        return HostCaller()
    return CupyCaller() if language == "cupy" else TorchCaller()


def arguments_of(problem: Problem, caller: Caller) -> tuple[Arrays, Scalars]:
    """Returns arrays over the memory that the packed arguments point to, and the scalars, by name."""
    arrays: Arrays = {}
    scalars: Scalars = {}
    for argument in problem.family.arguments:
        value = getattr(problem.arguments, argument.name)
        if argument.kind == "scalar":
            scalars[argument.name] = value
        else:
            shape = problem.family.shape(argument, problem.case)
            dtype = problem.family.dtype(argument, problem.case)
            arrays[argument.name] = caller.array(value or 0, shape, dtype)
    return arrays, scalars
