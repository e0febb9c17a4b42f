"""The array library and the device that a worker uses: CuPy on a GPU, NumPy for kernels compiled for the host."""

import contextlib
import ctypes
from pathlib import Path
from types import ModuleType
from typing import Any

from warplog.errors import WarplogError
from warplog.toolchain import cublas_library


class LaunchFailed(Exception):
    """The launcher returned an error, or the device reports one; `status` is the record's status."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class NumpyBackend:
    """Launchers that are plain C functions on host memory: the checker's own tests, CPU reference kernels."""

    name = "numpy"
    stream = 0

    def __init__(self) -> None:
        import numpy

        self.xp: ModuleType = numpy

    def synchronise(self) -> None:
        """Host functions are done when they return."""

    def describe(self, code: int) -> str:
        """Text of a launcher's return value."""
        return f"error {code}"

    def facts(self) -> dict[str, Any]:
        """Versions for the provenance."""
        return {"cupy": "", "cuda_runtime": ""}


class CupyBackend:
    """The current CUDA device."""

    name = "cupy"
    stream = 0

    def __init__(self) -> None:
        import cupy

        self.xp: ModuleType = cupy
        preload_cublas()

    def synchronise(self) -> None:
        """Waits for the device; raises CuPy's CUDARuntimeError where a kernel failed."""
        self.xp.cuda.runtime.deviceSynchronize()

    def describe(self, code: int) -> str:
        """Text of a cudaError_t."""
        return str(self.xp.cuda.runtime.CUDARuntimeError(code))

    def facts(self) -> dict[str, Any]:
        """Versions for the provenance."""
        version = self.xp.cuda.runtime.runtimeGetVersion()
        return {"cupy": self.xp.__version__, "cuda_runtime": f"{version // 1000}.{version % 1000 // 10}"}


Backend = NumpyBackend | CupyBackend


def make_backend(name: str) -> Backend:
    """The backend of that name ('cupy' or 'numpy')."""
    return CupyBackend() if name == "cupy" else NumpyBackend()


class Launcher:
    """The compiled launcher of a variant: `int warplog_launch(const void* arguments, cudaStream_t stream)`."""

    def __init__(self, library: Path, backend: Backend) -> None:
        try:
            self.function = ctypes.CDLL(str(library.resolve())).warplog_launch
        except (OSError, AttributeError) as error:
            raise WarplogError(f"{library}: cannot be loaded ({error}); delete it and run again") from None
        self.function.restype = ctypes.c_int
        self.function.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._backend = backend

    def __call__(self, arguments: ctypes.Structure) -> None:
        """Launches and waits.

        Raises:
            LaunchFailed: the launcher or the device reports an error.
        """
        self.enqueue(arguments)
        try:
            self._backend.synchronise()
        except Exception as error:
            raise LaunchFailed(*classify(error)) from None

    def enqueue(self, arguments: ctypes.Structure) -> None:
        """Launches without waiting; raises LaunchFailed where the launcher reports an error."""
        self.check(self.function(ctypes.addressof(arguments), self._backend.stream))

    def check(self, code: int) -> None:
        """Raises LaunchFailed for any code but 0; 2 is cudaErrorMemoryAllocation."""
        if code:
            raise LaunchFailed("out_of_memory" if code == 2 else "crashed", self._backend.describe(code))


def classify(error: Exception) -> tuple[str, str]:
    """Status and reason of an exception that a device operation raised."""
    text = " ".join(str(error).split())[:500]
    memory = type(error).__name__ in ("OutOfMemoryError", "MemoryError") or "MemoryAllocation" in text
    return ("out_of_memory" if memory else "crashed", text or type(error).__name__)
