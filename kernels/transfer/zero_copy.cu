// zero_copy: a kernel reads or writes host memory directly.
//
// Idea         Pinned memory is mapped into the address space of the GPU: what a kernel loads or stores there crosses
//              the bus. Nothing is copied in advance, and a kernel that needs each byte once needs no copy in device
//              memory. Neighbouring threads move neighbouring groups of 16 bytes, so that requests on the bus have 128
//              bytes.
// Expected     As fast as a pinned copy for large n and faster for small n, as a copy engine takes some time to start.
// Cost         Warps wait for the bus; every further access to the same byte crosses it again.
// Constraints  `source`, `target` or both in pinned memory; any n >= 1, any alignment (wide accesses if both are
//              aligned to 16 bytes).
// Source       CUDA C++ Best Practices Guide, zero copy.

#include <cuda_runtime.h>

#include <algorithm>

#include "alignment.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// First `wide` float4, then the elements starting at 4 * wide.
__global__ void __launch_bounds__(BLOCK)
    transfer_zero_copy(const float* __restrict__ source, float* __restrict__ target, size_t wide, size_t n) {
    const size_t first = blockIdx.x * size_t(BLOCK) + threadIdx.x, step = gridDim.x * size_t(BLOCK);
    const float4* from = reinterpret_cast<const float4*>(source);
    float4* to = reinterpret_cast<float4*>(target);
    for (size_t i = first; i < wide; i += step) to[i] = from[i];
    for (size_t i = 4 * wide + first; i < n; i += step) target[i] = source[i];
}

extern "C" int launch(const float* source, float* target, int n, cudaStream_t stream) {
    int device = 0, sms = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    const size_t count = static_cast<size_t>(n);
    const size_t wide = on_16_bytes(source) && on_16_bytes(target) ? count / 4 : 0;
    const size_t work = std::max(wide, count - 4 * wide);
    const int blocks = static_cast<int>(std::min<size_t>((work - 1) / BLOCK + 1, size_t(sms) * BLOCKS_PER_SM));
    transfer_zero_copy<<<blocks, BLOCK, 0, stream>>>(source, target, wide, count);
    return cudaGetLastError();
}
