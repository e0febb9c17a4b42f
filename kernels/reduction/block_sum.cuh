// Sums over a warp and a block through registers. See shuffle.cu.
#pragma once

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps, and one warp can add the sums of all");

// The sum over a warp, in lane 0.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) value += __shfl_down_sync(~0u, value, s);
    return value;
}

// The sum over a block, in thread 0.
__device__ __forceinline__ float block_sum(float value) {
    __shared__ float sums[BLOCK / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_sum(value);
    if (lane == 0) sums[warp] = value;
    __syncthreads();
    return warp == 0 ? warp_sum(lane < BLOCK / 32 ? sums[lane] : 0.0f) : 0.0f;
}
