// The sum of a thread with loads of 16 bytes, several of them in flight, and the number of blocks. See float4.cu.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "workspace.cuh"

static_assert(LOADS >= 2, "several loads in flight");

__device__ __forceinline__ void add(float4& sum, float4 quad) {
    sum.x += quad.x;
    sum.y += quad.y;
    sum.z += quad.z;
    sum.w += quad.w;
}

// The sum of this thread's part of the first 4 * quads elements of x, which starts on 16 bytes.
__device__ __forceinline__ float sum_quads(const float* __restrict__ x, unsigned quads, unsigned thread,
                                           unsigned threads) {
    const float4* wide = reinterpret_cast<const float4*>(x);
    float4 sum[LOADS] = {};
    unsigned i = thread;
    for (; i + (LOADS - 1) * threads < quads; i += LOADS * threads) {
        float4 quad[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) quad[j] = wide[i + j * threads];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) add(sum[j], quad[j]);
    }
    float4 rest[LOADS - 1] = {};  // the rest of a step, also in flight together
#pragma unroll
    for (int j = 0; j < LOADS - 1; ++j)
        if (i + j * threads < quads) rest[j] = wide[i + j * threads];
#pragma unroll
    for (int j = 0; j < LOADS - 1; ++j) add(sum[j], rest[j]);
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < LOADS; ++j) total += (sum[j].x + sum[j].y) + (sum[j].z + sum[j].w);
    return total;
}

// The sum of this thread's part of x[0..n-1]. ALIGNED: x starts on 16 bytes.
template <bool ALIGNED>
__device__ __forceinline__ float thread_sum(const float* __restrict__ x, unsigned n) {
    const unsigned thread = blockIdx.x * BLOCK + threadIdx.x, threads = gridDim.x * BLOCK;
    float total = ALIGNED ? sum_quads(x, n / 4, thread, threads) : 0.0f;
    const unsigned rest = ALIGNED ? n / 4 * 4 : 0;  // at most three elements follow, or all
    for (unsigned i = rest + thread; i < n; i += threads) total += x[i];
    return total;
}

// The number of blocks of `kernel` that the current GPU holds at once, which registers may limit more than threads do.
template <typename Kernel>
static cudaError_t resident_blocks(Kernel kernel, int* blocks) {
    int device = 0, sms = 0, per_sm = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess) error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, BLOCK, 0);
    *blocks = sms * std::max(1, per_sm);
    return error;
}

// The number of blocks of `kernel` for n elements, at most as many as the GPU holds at once, and space for their sums.
template <typename Kernel>
static cudaError_t deal_out(Kernel kernel, int n, int* blocks, float** sums) {
    int most = 0;
    void* room = nullptr;
    cudaError_t error = resident_blocks(kernel, &most);
    if (error == cudaSuccess) error = workspace(most * sizeof(float), &room);
    *blocks = std::min((n - 1) / (BLOCK * 4) + 1, most);
    *sums = static_cast<float*>(room);
    return error;
}
