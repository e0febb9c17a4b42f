// float4: the two stages with wide loads, several of them in flight.
//
// Idea         A thread issues LOADS loads of 16 bytes before it adds any of them, into separate sums, so that no
//              addition waits for another: a quarter of the load instructions, and 4 * LOADS floats in flight per
//              thread.
// Expected     Faster than `two_stage`; at most the bandwidth of reading, which is higher than that of a copy.
// Cost         Registers: six blocks fit on an SM instead of eight. One more step where the steps do not divide the
//              array evenly.
// Constraints  Any n >= 1. An array not aligned to 16 bytes is read float by float, by the other instantiation. A
//              workspace of one float per block, allocated at the first launch; one stream at a time.
// Source       J. Luitjens, developer.nvidia.com/blog/faster-parallel-reductions-kepler; several loads in flight: V.
//              Volkov.

#include <cuda_runtime.h>

#include "alignment.cuh"
#include "block_sum.cuh"
#include "wide_sum.cuh"

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    reduce_float4(const float* __restrict__ x, float* __restrict__ sums, unsigned n) {
    const float total = block_sum(thread_sum<ALIGNED>(x, n));
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

template <bool ALIGNED>
static cudaError_t reduce(const float* x, float* out, int n, cudaStream_t stream) {
    int blocks = 0;
    float* sums = nullptr;
    const cudaError_t error = deal_out(reduce_float4<ALIGNED>, n, &blocks, &sums);
    if (error != cudaSuccess) return error;
    reduce_float4<ALIGNED><<<blocks, BLOCK, 0, stream>>>(x, sums, n);
    reduce_float4<true><<<1, BLOCK, 0, stream>>>(sums, out, blocks);
    return cudaGetLastError();
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    return on_16_bytes(x) ? reduce<true>(x, out, n, stream)
                                                    : reduce<false>(x, out, n, stream);
}
