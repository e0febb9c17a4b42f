// What the launchers of planted pairs share. All kernels of this family copy x to y; the work that is planted beside
// the copy ends in an addition of 0, which the compiler cannot know: `zero` is an argument.
#pragma once

#include <cuda_runtime.h>

namespace {

constexpr int LANES = 32, THREADS = 256;

cudaError_t sms_of_gpu(int* sms) {
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    return error == cudaSuccess ? cudaDeviceGetAttribute(sms, cudaDevAttrMultiProcessorCount, device) : error;
}

// Dynamic shared memory with which exactly `resident` blocks fit on an SM, none of which needs to use it.
template <class Kernel>
cudaError_t limit_residency(Kernel kernel, int resident, int* bytes) {
    int device = 0, per_sm = 0, reserved = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
    if (error != cudaSuccess) return error;
    *bytes = per_sm / resident - reserved;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, *bytes);
    if (error != cudaSuccess) return error;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
}

// COUNT multiply-adds, each of which needs the result of the one before: v stays as it is.
template <int COUNT>
__device__ __forceinline__ int spin(int v, int zero) {
    const int one = zero + 1;
#pragma unroll 64
    for (int s = 0; s < COUNT; ++s) v = v * one + zero;
    return v;
}

}  // namespace
