"""Array library and device of a worker: CuPy on a GPU, the driver alone, or NumPy for host functions."""

import contextlib
import ctypes
import importlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from types import ModuleType
from typing import TYPE_CHECKING, Any

from warplog.core.errors import WarplogError
from warplog.machine import toolchain
from warplog.measure.results import LaunchFailed
from warplog.records.fields import Status
from warplog.records.measured import Session

if TYPE_CHECKING:
    from warplog.measure.worker.problem import Problem

_Pointer = ctypes.c_uint64
_SPACERS, _LARGEST_SPACER_MIB = 3, 128
# The types of exceptions that a kernel, or too large arrays, may cause.
DEVICE_ERRORS = ("CUDARuntimeError", "CUDADriverError", "OutOfMemoryError", "MemoryError")


class NumpyBackend:
    """Host memory, for launchers that are plain C functions: tests of the checker, CPU reference kernels."""

    name = "numpy"
    stream = 0

    def __init__(self) -> None:
        import numpy

        self.xp: ModuleType = numpy

    def synchronise(self) -> None:
        """Does nothing, since host functions are finished when they return."""

    def describe(self, code: int) -> str:
        """Returns a text for a launcher's return value."""
        return f"error {code}"

    def session(self) -> Session:
        """Versions for the provenance."""
        return Session()


class CupyBackend:
    """The current CUDA device, used through CuPy."""

    name = "cupy"
    stream = 0

    def __init__(self) -> None:
        import cupy

        self.xp: ModuleType = cupy
        _preload_cublas()

    def synchronise(self) -> None:
        """Waits for the device; raises CuPy's CUDARuntimeError if a kernel failed."""
        self.xp.cuda.runtime.deviceSynchronize()

    def describe(self, code: int) -> str:
        """Returns the text of a cudaError_t."""
        return str(self.xp.cuda.runtime.CUDARuntimeError(code))

    def session(self) -> Session:
        """Versions for the provenance."""
        version = self.xp.cuda.runtime.runtimeGetVersion()
        runtime = f"{version // 1000}.{version % 1000 // 10}"
        return Session(cupy=self.xp.__version__, cuda_runtime=runtime)


class CUDADriverError(Exception):
    """A driver call failed; the text is from the driver."""


class DriverBackend:
    """The first visible GPU, used through the driver with inputs from NumPy: only the launcher runs kernels.

    compute-sanitizer checks every kernel of a process and tracks every write: CuPy's kernels would cost time if
    they were checked, and if they were not, the memory that they write would appear uninitialised.
    """

    name = "driver"
    stream = 0

    def __init__(self) -> None:
        import numpy

        self.xp: ModuleType = numpy
        self._driver = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        _preload_cublas()

    def synchronise(self) -> None:
        """Waits for the device; raises CUDADriverError if a kernel failed."""
        self._call("cuCtxSynchronize")

    def describe(self, code: int) -> str:
        """Returns the text of a launcher's cudaError_t; the relevant driver codes have the same numbers."""
        text = ctypes.c_char_p()
        self._driver.cuGetErrorString(code, ctypes.byref(text))
        return text.value.decode() if text.value else f"CUDA error {code}"

    def session(self) -> Session:
        """Versions for the provenance."""
        return Session()

    def allocate(self, size: int, managed: bool = False) -> int:
        """Allocates `size` bytes (at least one) of uninitialised device or managed memory and returns the address."""
        pointer, bytes_ = _Pointer(), ctypes.c_size_t(max(size, 1))
        if managed:
            attach = 1  # CU_MEM_ATTACH_GLOBAL
            self._call("cuMemAllocManaged", ctypes.byref(pointer), bytes_, attach)
        else:
            self._call("cuMemAlloc_v2", ctypes.byref(pointer), bytes_)
        return int(pointer.value)

    def upload(self, address: int, host_address: int, size: int) -> None:
        """Copies `size` bytes of host memory to the device."""
        if size:
            self._call(
                "cuMemcpyHtoD_v2", _Pointer(address), ctypes.c_void_p(host_address), ctypes.c_size_t(size)
            )

    def free(self, address: int) -> None:
        """Frees device memory; ignores errors, since a lost context has already lost its memory."""
        self._driver.cuMemFree_v2(_Pointer(address))

    def pin(self, host_address: int, size: int) -> None:
        """Page-locks host memory and maps it for kernels at the same address."""
        flags = 2  # CU_MEMHOSTREGISTER_DEVICEMAP
        self._call("cuMemHostRegister_v2", ctypes.c_void_p(host_address), ctypes.c_size_t(size), flags)

    def unpin(self, host_address: int) -> None:
        """Undoes `pin`; ignores errors, as `free` does."""
        self._driver.cuMemHostUnregister(ctypes.c_void_p(host_address))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code:
            raise CUDADriverError(f"{name}: {self.describe(code)}")


Backend = NumpyBackend | CupyBackend | DriverBackend
_BACKENDS: Mapping[str, Callable[[], Backend]] = {
    "numpy": NumpyBackend,
    "cupy": CupyBackend,
    "driver": DriverBackend,
}


def _preload_cublas() -> None:
    """Loads the cuBLAS that CuPy uses, so that launchers that look for it in the process find this copy.

    A launcher's own copy, if it is loaded already, is the one of the process.
    """
    if cublas := toolchain.library("cublas"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(cublas.name, mode=ctypes.RTLD_GLOBAL | os.RTLD_NOLOAD)
            return
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(cublas), mode=ctypes.RTLD_GLOBAL)


def import_arrays(name: str) -> None:
    """Imports the array library of the backend `name`, which takes about a second and does not use the GPU.

    The parts of it that are otherwise imported at their first use are included: a process that is forked then need not
    import them while it holds the GPU.
    """
    parts = (
        ("cupy", "cupyx", "numpy.ma", "numpy.random", "pynvml") if name == CupyBackend.name else ("numpy",)
    )
    for part in parts:
        importlib.import_module(part)


def make_backend(name: str) -> Backend:
    """Returns the backend `name`: 'cupy', 'numpy' or 'driver'."""
    return _BACKENDS[name]()


@contextlib.contextmanager
def scattered(backend: Backend, name: str) -> Iterator[int]:
    """Holds memory of random sizes meanwhile, so that arrays have other addresses in each process; yields the seed.

    The time of some kernels depends on where their arrays lie: the addresses decide which slices of L2 and which
    channels of memory are used at the same time. Arrays smaller than a page are moved within it (`Problem`).
    """
    seed = zlib.crc32(name.encode())
    random = Random(seed)  # noqa: S311 - no secret
    held: list[Any] = []
    if isinstance(backend, CupyBackend):
        memory = backend.xp.cuda.runtime
        sizes = [random.randrange(1, _LARGEST_SPACER_MIB) << 20 for _ in range(_SPACERS)]
        if sum(sizes) < memory.memGetInfo()[0] // 4:
            held = [memory.malloc(size) for size in sizes]
    try:
        yield seed
    finally:
        for address in held:
            memory.free(address)


class Launcher:
    """The compiled launcher of a variant: `int warplog_launch(const void* arguments, cudaStream_t stream)`.

    Attributes:
        function: the C function, for the timing core.
        prepared_us: host time of `prepare` in microseconds; None if it did nothing.
        needs_no_graph: whether launches that cannot be captured in a CUDA graph are timed without one.
    """

    function: Any
    prepared_us: float | None = None
    needs_no_graph = False

    def __init__(self, library: Path, backend: Backend) -> None:
        try:
            self.function = ctypes.CDLL(str(library.resolve())).warplog_launch
        except (OSError, AttributeError) as error:
            raise WarplogError(f"{library}: cannot be loaded ({error}); delete it and run again") from None
        self.function.restype = ctypes.c_int
        self.function.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._backend = backend

    def prepare(self, problem: "Problem", seed: int) -> None:
        """Does nothing: a library is compiled, and its arguments are all that it requires."""

    def release(self) -> None:
        """Does nothing: a library holds no memory of a problem."""

    def failure(self) -> LaunchFailed | None:
        """Returns None: the code that the launcher returned says all that is known about a failure."""
        return None

    def host_us(self, measured_us: Sequence[float]) -> Sequence[float]:
        """Returns the host times of launches, given those that the timing core measured."""
        return measured_us

    def __call__(self, arguments: ctypes.Structure) -> None:
        """Launches and waits until the device has finished.

        Raises:
            LaunchFailed: The launcher or the device reports an error.
        """
        self.enqueue(arguments)
        try:
            self._backend.synchronise()
        except Exception as error:
            raise LaunchFailed(*classify(error)) from None

    def enqueue(self, arguments: ctypes.Structure) -> None:
        """Launches without waiting; raises LaunchFailed if the launcher reports an error."""
        self.check(self.function(ctypes.addressof(arguments), self._backend.stream))

    def check(self, code: int) -> None:
        """Raises LaunchFailed for any code except 0; 2 is cudaErrorMemoryAllocation."""
        if code:
            raise LaunchFailed("out_of_memory" if code == 2 else "crashed", self._backend.describe(code))


def classify(error: Exception) -> tuple[Status, str]:
    """Returns status and reason for an exception that a device operation raised."""
    text = " ".join(str(error).split())[:500]
    memory = type(error).__name__ in ("OutOfMemoryError", "MemoryError") or "MemoryAllocation" in text
    return ("out_of_memory" if memory else "crashed", text or type(error).__name__)
