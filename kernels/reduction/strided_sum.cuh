// The sum of a thread that takes every gridDim.x * BLOCK-th element, and the number of blocks. See two_stage.cu.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "workspace.cuh"

// The sum of this thread's part of x[0..n-1].
__device__ __forceinline__ float strided_sum(const float* __restrict__ x, int n) {
    float sum = 0.0f;
    // Signed on purpose: since an unsigned index may wrap, the compiler would not unroll, and only one load of a thread
    // would be in flight.
    const long long step = gridDim.x * BLOCK;
    for (long long i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += step) sum += x[i];
    return sum;
}

// The number of blocks for n elements, at most as many as the current GPU holds at once, and space for their sums.
inline cudaError_t deal_out(int n, int* blocks, float** sums) {
    int device = 0, sms = 0, threads = 0;
    void* room = nullptr;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    const int most = sms * std::max(1, threads / BLOCK);
    if (error == cudaSuccess) error = workspace(most * sizeof(float), &room);
    *blocks = std::min((n - 1) / BLOCK + 1, most);
    *sums = static_cast<float*>(room);
    return error;
}
