"""Device memory through the CUDA driver alone: a process that runs no kernel but the one under test.

compute-sanitizer checks every kernel of a process and follows every write, so CuPy's own kernels would cost time
and, left unchecked, look like memory that nobody wrote.
"""

import ctypes
from types import ModuleType
from typing import Any

from warplog.gpu.backend import preload_cublas

Pointer = ctypes.c_uint64


class CUDADriverError(Exception):
    """A driver call failed; the text is the driver's."""


class DriverBackend:
    """The first visible GPU's primary context, with inputs made by NumPy."""

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
        preload_cublas()

    def synchronise(self) -> None:
        """Waits for the device; raises CUDADriverError where a kernel failed."""
        self._call("cuCtxSynchronize")

    def describe(self, code: int) -> str:
        """Text of a launcher's cudaError_t; the driver's own codes have the same numbers where they matter."""
        text = ctypes.c_char_p()
        self._driver.cuGetErrorString(code, ctypes.byref(text))
        return text.value.decode() if text.value else f"CUDA error {code}"

    def facts(self) -> dict[str, Any]:
        """Versions for the provenance."""
        return {"cupy": "", "cuda_runtime": ""}

    def allocate(self, size: int) -> int:
        """Address of `size` bytes (at least one) that nobody has written."""
        pointer = Pointer()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        return int(pointer.value)

    def upload(self, address: int, host_address: int, size: int) -> None:
        """Copies host memory to the device."""
        if size:
            self._call(
                "cuMemcpyHtoD_v2", Pointer(address), ctypes.c_void_p(host_address), ctypes.c_size_t(size)
            )

    def free(self, address: int) -> None:
        """Gives memory back; a lost context has none, so errors are of no interest."""
        self._driver.cuMemFree_v2(Pointer(address))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._driver, name)(*arguments)
        if code:
            raise CUDADriverError(f"{name}: {self.describe(code)}")
