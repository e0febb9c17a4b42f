// atomics: one pass, in which each block adds its sum to the result.
//
// Idea         The blocks of `shuffle` without further passes: thread 0 of each block adds the sum of the block to the
//              result with an atomic addition, which L2 executes. A launch of one thread clears the result first.
// Expected     Between `shuffle` and `grid_stride`: n / BLOCK additions to one address are serialised.
// Cost         The order of the atomic additions is not defined and fp32 addition is not associative, so the last bits
//              may differ from run to run.
// Constraints  Any n >= 1, any alignment.
// Source       J. Luitjens, developer.nvidia.com/blog/faster-parallel-reductions-kepler.

#include <cuda_runtime.h>

#include "block_sum.cuh"

__global__ void clear(float* out) { *out = 0.0f; }

__global__ void __launch_bounds__(BLOCK) reduce_atomics(const float* __restrict__ x, float* out, unsigned n) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    const float sum = block_sum(i < n ? x[i] : 0.0f);
    if (threadIdx.x == 0) atomicAdd(out, sum);
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    const int blocks = (n - 1) / BLOCK + 1;
    clear<<<1, 1, 0, stream>>>(out);
    reduce_atomics<<<blocks, BLOCK, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}
