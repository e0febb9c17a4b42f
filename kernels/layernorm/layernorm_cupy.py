"""layernorm_cupy: a RawModule with the idea of `welford`, compiled by NVRTC at the first launch.

Idea         CUDA C++ in a string, compiled at run time for the GPU that is there: a block per row, and counts, means
             and squared differences that are updated by each element and merged through shuffles. bf16 is handled as
             its bits, the upper half of an fp32, so that no header is required.
Expected     As fast as `welford`: the same algorithm, from another compiler.
Cost         About 1 s of NVRTC compilation at the first launch. Launch overhead on the host: about 10 us.
Constraints  Any rows and columns >= 1, any alignment.
Source       docs.cupy.dev, user-defined kernels; B. Welford, Technometrics 4, 1962.
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

struct Moments {
    float count, mean, squares;
};

__device__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count, delta = b.mean - a.mean;
    const float share = count > 0.0f ? b.count / count : 0.0f;
    return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
}

__device__ Moments over_warp(Moments moments) {
    for (int distance = 16; distance > 0; distance /= 2)
        moments = merge(moments, {__shfl_xor_sync(~0u, moments.count, distance),
                                  __shfl_xor_sync(~0u, moments.mean, distance),
                                  __shfl_xor_sync(~0u, moments.squares, distance)});
    return moments;
}

template <typename T>
__global__ void __launch_bounds__(BLOCK)
    layernorm_cupy(const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
                   T* __restrict__ y, int columns, float epsilon) {
    __shared__ Moments part[BLOCK / 32];
    const T* in = x + static_cast<size_t>(blockIdx.x) * columns;
    T* out = y + static_cast<size_t>(blockIdx.x) * columns;
    Moments moments = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        const float value = to_float(in[i]), delta = value - moments.mean;
        moments.count += 1.0f;
        moments.mean += __fdividef(delta, moments.count);
        moments.squares += delta * (value - moments.mean);
    }
    moments = over_warp(moments);
    const int lane = threadIdx.x % 32;
    if (lane == 0) part[threadIdx.x / 32] = moments;
    __syncthreads();
    moments = over_warp(lane < BLOCK / 32 ? part[lane] : Moments{0.0f, 0.0f, 0.0f});
    const float scale = rsqrtf(moments.squares / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += BLOCK)
        store(out + i, (to_float(in[i]) - moments.mean) * scale * to_float(gamma[i]) + to_float(beta[i]));
}
"""


@cache
def kernel(element: str) -> Any:
    """Returns the kernel for `float` or `unsigned short`, the bits of bf16."""
    name = f"layernorm_cupy<{element}>"
    options = ("-std=c++17", f"-DBLOCK={BLOCK}", "-lineinfo")
    return cupy.RawModule(code=SOURCE, options=options, name_expressions=(name,)).get_function(name)


def launch(arrays: dict[str, Any], scalars: dict[str, float], stream: int) -> None:
    """Writes the normalised rows of x to y, on the current stream."""
    element = "float" if scalars["element_bytes"] == 4 else "unsigned short"
    pointers = (arrays[name] for name in ("x", "gamma", "beta", "y"))
    arguments = *pointers, cupy.int32(scalars["columns"]), cupy.float32(scalars["epsilon"])
    kernel(element)((int(scalars["rows"]),), (BLOCK,), arguments)
