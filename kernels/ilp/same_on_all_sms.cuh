// Launches a kernel with as many warps on each SM, all SMs with the same elements.
#pragma once

#include <cuda_runtime.h>

constexpr int MOST_THREADS = 1024;  // of a block

// kernel(x, y, fmas, one, blocks_per_sm) with `warps` warps per SM: one block, or two of half as many.
template <typename Kernel>
static cudaError_t on_all_sms(Kernel* kernel, const float* x, float* y, int warps, int fmas, float one,
                              cudaStream_t stream) {
    int device = 0, sms = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    const int per_sm = (32 * warps - 1) / MOST_THREADS + 1;
    kernel<<<sms * per_sm, 32 * warps / per_sm, 0, stream>>>(x, y, fmas, one, per_sm);
    return cudaGetLastError();
}
