"""softmax_cupy: a RawModule with the idea of `online`, compiled by NVRTC at the first launch.

Idea         CUDA C++ in a string, compiled at run time for the GPU that is there: a block per row, and pairs of largest
             logit and sum that are updated by each element and combined through shuffles. bf16 is handled as its bits,
             the upper half of an fp32, so that no header is required.
Expected     As fast as `online`: the same algorithm, from another compiler.
Cost         About 1 s of NVRTC compilation at the first launch. Launch overhead on the host: about 10 us.
Constraints  Any rows and columns >= 1, any alignment; a row requires at least one finite logit.
Source       docs.cupy.dev, user-defined kernels; M. Milakov and N. Gimelshein, arXiv:1805.02867.
"""

from functools import cache
from typing import Any

import cupy

BLOCK = 256
SOURCE = r"""
typedef unsigned short bf16;  // its bits

__device__ float to_float(float value) { return value; }
__device__ float to_float(bf16 value) { return __uint_as_float(static_cast<unsigned>(value) << 16); }
__device__ void store(float* to, float value) { *to = value; }
__device__ void store(bf16* to, float value) {
    const unsigned bits = __float_as_uint(value);
    *to = static_cast<bf16>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);  // to nearest, ties to even
}

struct Pair {
    float max, sum;
};

constexpr float LOWEST = -3.402823466e38f;  // not -inf: the difference of two such maxima must be 0, not NaN

__device__ Pair combine(Pair a, Pair b) {
    const float max = fmaxf(a.max, b.max);
    return {max, a.sum * __expf(a.max - max) + b.sum * __expf(b.max - max)};
}

__device__ Pair over_warp(Pair pair) {
    for (int distance = 16; distance > 0; distance /= 2)
        pair = combine(pair, {__shfl_xor_sync(~0u, pair.max, distance), __shfl_xor_sync(~0u, pair.sum, distance)});
    return pair;
}

template <typename T>
__global__ void __launch_bounds__(BLOCK) softmax_cupy(const T* __restrict__ x, T* __restrict__ y, int columns) {
    __shared__ Pair part[BLOCK / 32];
    const T* in = x + static_cast<size_t>(blockIdx.x) * columns;
    T* out = y + static_cast<size_t>(blockIdx.x) * columns;
    Pair pair = {LOWEST, 0.0f};
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        const float logit = to_float(in[i]);
        if (logit > pair.max) {
            pair.sum *= __expf(pair.max - logit);
            pair.max = logit;
        }
        pair.sum += __expf(logit - pair.max);
    }
    pair = over_warp(pair);
    const int lane = threadIdx.x % 32;
    if (lane == 0) part[threadIdx.x / 32] = pair;
    __syncthreads();
    pair = over_warp(lane < BLOCK / 32 ? part[lane] : Pair{LOWEST, 0.0f});
    const float scale = 1.0f / pair.sum;
    for (int i = threadIdx.x; i < columns; i += BLOCK) store(out + i, __expf(to_float(in[i]) - pair.max) * scale);
}
"""


@cache
def kernel(element: str) -> Any:
    """Returns the kernel for `float` or `unsigned short`, the bits of bf16."""
    name = f"softmax_cupy<{element}>"
    options = ("-std=c++17", f"-DBLOCK={BLOCK}", "-lineinfo")
    return cupy.RawModule(code=SOURCE, options=options, name_expressions=(name,)).get_function(name)


def launch(arrays: dict[str, Any], scalars: dict[str, float], stream: int) -> None:
    """Writes the softmax of x to y, on the current stream."""
    element = "float" if scalars["element_bytes"] == 4 else "unsigned short"
    arguments = arrays["x"], arrays["y"], cupy.int32(scalars["columns"])
    kernel(element)((int(scalars["rows"]),), (BLOCK,), arguments)
