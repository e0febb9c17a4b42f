// single_launch: the block that ends last adds the partial sums, and nothing is launched for it.
//
// Idea         A second launch of one block costs 2 us and more, which is 3 % of 2^26 elements: it starts when the last
//              block has ended, reads its arguments and its few numbers, and ends. Here each block counts itself once
//              its partial sum is visible (a fence, then an atomic increment); who counts last knows that all the others
//              are there, and adds them, in the same order every time. The counter wraps back to 0 for the next launch.
// Expected     2 us less than the parent at any size; at 2^26 elements above CUB, which launches twice.
// Cost         A fence and an atomic addition a block.
// Constraints  As `float4`; a launch that is cut short leaves the counter where it was.
// Source       NVIDIA, CUDA samples, threadFenceReduction.

#include <cuda_runtime.h>

#include <cstdint>

#include "block_sum.cuh"
#include "wide_sum.cuh"

__device__ unsigned ended;  // blocks of this launch that have left their sum

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    reduce_single_launch(const float* __restrict__ x, float* sums, float* out, unsigned n) {
    __shared__ bool last;
    float total = block_sum(thread_sum<ALIGNED>(x, n));
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = total;
        __threadfence();
        last = atomicInc(&ended, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    total = 0.0f;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += BLOCK) total += __ldcg(sums + i);  // L1 may be older
    total = block_sum(total);
    if (threadIdx.x == 0) *out = total;
}

template <bool ALIGNED>
static cudaError_t reduce(const float* x, float* out, int n, cudaStream_t stream) {
    int blocks = 0;
    float* sums = nullptr;
    const cudaError_t error = deal_out(reduce_single_launch<ALIGNED>, n, &blocks, &sums);
    if (error != cudaSuccess) return error;
    reduce_single_launch<ALIGNED><<<blocks, BLOCK, 0, stream>>>(x, sums, out, n);
    return cudaGetLastError();
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    return reinterpret_cast<uintptr_t>(x) % 16 == 0 ? reduce<true>(x, out, n, stream) : reduce<false>(x, out, n, stream);
}
