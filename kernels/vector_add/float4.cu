// float4: one thread adds four pairs of elements with accesses of 16 bytes.
//
// Idea         LDG.128 and STG.128 move four neighbouring floats at once: a quarter of the load and store instructions,
//              of the index arithmetic and of the warps for the same bytes, and four times the bytes in flight per
//              warp.
// Expected     The same bandwidth as one element per thread where that already reaches the limit of memory; little more
//              than a quarter of the instructions.
// Cost         The last thread may have one to three elements left, which it adds one by one.
// Constraints  Any n >= 1. Arrays not aligned to 16 bytes are added element by element, by the other instantiation.
// Source       J. Luitjens, developer.nvidia.com/blog/cuda-pro-tip-increase-performance-with-vectorized-memory-access.

#include <cuda_runtime.h>

#include "alignment.cuh"

constexpr unsigned WIDTH = 4;  // floats per thread

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    vector_add_float4(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, unsigned n) {
    const unsigned first = (blockIdx.x * BLOCK + threadIdx.x) * WIDTH;
    if (ALIGNED && first + WIDTH <= n) {
        const float4 a = *reinterpret_cast<const float4*>(x + first);
        const float4 b = *reinterpret_cast<const float4*>(y + first);
        *reinterpret_cast<float4*>(out + first) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    } else {
#pragma unroll 1  // rare, and at most four elements: no unrolled code
        for (unsigned i = first; i < n && i < first + WIDTH; ++i) out[i] = x[i] + y[i];
    }
}

extern "C" int launch(const float* x, const float* y, float* out, int n, cudaStream_t stream) {
    const int blocks = (n - 1) / int(BLOCK * WIDTH) + 1;
    if (on_16_bytes(x) && on_16_bytes(y) && on_16_bytes(out))
        vector_add_float4<true><<<blocks, BLOCK, 0, stream>>>(x, y, out, n);
    else
        vector_add_float4<false><<<blocks, BLOCK, 0, stream>>>(x, y, out, n);
    return cudaGetLastError();
}
