"""y = factor x, as a raw kernel of CuPy."""

from functools import cache

import cupy

BLOCK = 256
SOURCE = r"""
extern "C" __global__ void scale(const float* x, float* y, int n, float factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
"""


@cache
def kernel():
    return cupy.RawKernel(SOURCE, "scale", options=("-lineinfo",))


def launch(arrays, scalars, stream):
    """Runs on CuPy's current stream, which is `stream`."""
    n = scalars["n"]
    arguments = arrays["x"], arrays["y"], cupy.int32(n), cupy.float32(scalars["factor"])
    kernel()(((n + BLOCK - 1) // BLOCK,), (BLOCK,), arguments)
