// Known traffic: bytes of device memory, sectors per request. Every thread writes x + 1.
#pragma once

#include <cuda_runtime.h>

#include "patterns.cuh"

// Each byte is read once and written once. n is a multiple of 4.
__global__ void copy_known_bytes(const float4* __restrict__ x, float4* __restrict__ y, int quads) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    const float4 v = x[i];
    y[i] = make_float4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
}

// Every load and every store of a warp accesses SECTORS sectors. n is 8 * SECTORS per warp.
template <int SECTORS>
__global__ void touch_sectors(const float* __restrict__ x, float* __restrict__ y) {
    static_assert(SECTORS >= 1 && 32 % SECTORS == 0, "1, 2, 4, 8, 16 or 32");
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < patterns::steps(SECTORS); ++step) {
        const int i = warp * 8 * SECTORS + patterns::sector_word(lane, step, SECTORS);
        y[i] = x[i] + 1;
    }
}

// Neighbouring lanes access neighbouring words, but each warp starts one word late: five sectors. The last thread takes
// word 0.
__global__ void touch_misaligned(const float* __restrict__ x, float* __restrict__ y, int n) {
    const int next = blockIdx.x * blockDim.x + threadIdx.x + 1;
    const int i = next == n ? 0 : next;
    y[i] = x[i] + 1;
}
