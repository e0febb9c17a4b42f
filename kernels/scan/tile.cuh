// A tile of a scan: what a block loads, scans in registers and stores. See shuffle.cu.
#pragma once

#include <cuda_runtime.h>

constexpr unsigned SEGMENT = 32 * 4 * QUADS;           // consecutive elements of a warp
constexpr unsigned TILE = SEGMENT * (BLOCK / 32);      // elements of a block

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// The four floats starting at `first`, 0 beyond n; ALIGNED: x starts on 16 bytes.
template <bool ALIGNED>
__device__ __forceinline__ float4 load_quad(const float* x, unsigned first, unsigned n) {
    if (ALIGNED && first + 4 <= n) return *reinterpret_cast<const float4*>(x + first);
    float4 quad = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (first + 0 < n) quad.x = x[first + 0];
    if (first + 1 < n) quad.y = x[first + 1];
    if (first + 2 < n) quad.z = x[first + 2];
    if (first + 3 < n) quad.w = x[first + 3];
    return quad;
}

template <bool ALIGNED>
__device__ __forceinline__ void store_quad(float* out, unsigned first, unsigned n, float4 quad) {
    if (ALIGNED && first + 4 <= n) {
        *reinterpret_cast<float4*>(out + first) = quad;
        return;
    }
    if (first + 0 < n) out[first + 0] = quad.x;
    if (first + 1 < n) out[first + 1] = quad.y;
    if (first + 2 < n) out[first + 2] = quad.z;
    if (first + 3 < n) out[first + 3] = quad.w;
}

// First element of this thread's first quad in a tile; its next quads follow every 128 elements.
__device__ __forceinline__ unsigned first_of(unsigned tile) {
    return tile * TILE + threadIdx.x / 32 * SEGMENT + threadIdx.x % 32 * 4;
}

template <bool ALIGNED>
__device__ __forceinline__ void load_tile(const float* x, unsigned tile, unsigned n, float4 (&quad)[QUADS]) {
#pragma unroll
    for (int q = 0; q < QUADS; ++q) quad[q] = load_quad<ALIGNED>(x, first_of(tile) + q * 128, n);
}

template <bool ALIGNED>
__device__ __forceinline__ void store_tile(float* out, unsigned tile, unsigned n, float before,
                                           const float4 (&quad)[QUADS]) {
#pragma unroll
    for (int q = 0; q < QUADS; ++q)
        store_quad<ALIGNED>(out, first_of(tile) + q * 128, n,
                            make_float4(before + quad[q].x, before + quad[q].y, before + quad[q].z,
                                        before + quad[q].w));
}

// Scans a tile in place, each warp its segment, and returns the sum of the warps before this one. `total` is the sum of
// the tile, in all threads.
__device__ __forceinline__ float scan_tile(float4 (&quad)[QUADS], float* total) {
    __shared__ float sums[BLOCK / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float carry = 0.0f;  // the sum of the previous quads, the same in all lanes
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        quad[q].y += quad[q].x;
        quad[q].z += quad[q].y;
        quad[q].w += quad[q].z;
        float up_to = quad[q].w;
#pragma unroll
        for (int s = 1; s < 32; s *= 2) {
            const float other = __shfl_up_sync(~0u, up_to, s);
            if (lane >= s) up_to += other;
        }
        const float left = __shfl_up_sync(~0u, up_to, 1);
        const float before = carry + (lane > 0 ? left : 0.0f);
        carry += __shfl_sync(~0u, up_to, 31);
        quad[q].x += before;
        quad[q].y += before;
        quad[q].z += before;
        quad[q].w += before;
    }
    if (lane == 0) sums[warp] = carry;
    __syncthreads();
    float before = 0.0f;
    *total = 0.0f;
#pragma unroll
    for (int w = 0; w < BLOCK / 32; ++w) {
        if (w == warp) before = *total;
        *total += sums[w];
    }
    return before;
}
