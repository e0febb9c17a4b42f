// A copy by a kernel: neighbouring threads move neighbouring groups of 16 bytes. One of the arrays is in host memory.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "alignment.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// First `wide` float4, then the elements starting at 4 * wide.
__global__ void __launch_bounds__(BLOCK)
    transfer_by_kernel(const float* __restrict__ source, float* __restrict__ target, size_t wide, size_t n) {
    const size_t first = blockIdx.x * size_t(BLOCK) + threadIdx.x, step = gridDim.x * size_t(BLOCK);
    const float4* from = reinterpret_cast<const float4*>(source);
    float4* to = reinterpret_cast<float4*>(target);
    for (size_t i = first; i < wide; i += step) to[i] = from[i];
    for (size_t i = 4 * wide + first; i < n; i += step) target[i] = source[i];
}

// Launches the copy with BLOCKS_PER_SM blocks per SM, or fewer if they would have nothing to do.
static cudaError_t copy_by_kernel(const float* source, float* target, size_t n, cudaStream_t stream) {
    int device = 0, sms = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    const size_t wide = on_16_bytes(source) && on_16_bytes(target) ? n / 4 : 0;
    const size_t work = std::max(wide, n - 4 * wide);
    const int blocks = static_cast<int>(std::min<size_t>((work - 1) / BLOCK + 1, size_t(sms) * BLOCKS_PER_SM));
    transfer_by_kernel<<<blocks, BLOCK, 0, stream>>>(source, target, wide, n);
    return cudaGetLastError();
}
