// interleaved: the tree of divergent with the first threads of the block active.
//
// Idea         The same pairs, but thread t takes the t-th of them, the elements 2*s*t and 2*s*t + s (s is the stride
//              of the step). The active threads are the first ones, so that whole warps drop out and the others are
//              full. Now neighbouring lanes access words that are 2*s apart: bank conflicts of 2 to 8 ways with 256
//              threads.
// Expected     Faster than `divergent`; full warps, but excess wavefronts, which `divergent` does not have.
// Cost         log2(BLOCK) + 1 barriers per block (nine with 256 threads); a launch per pass.
// Constraints  Any n >= 1, any alignment. A workspace of n / BLOCK floats, allocated at the first launch; one stream at
//              a time.
// Source       M. Harris, Optimizing parallel reduction in CUDA, NVIDIA 2007, kernel 2.

#include <cuda_runtime.h>

#include "passes.cuh"

static_assert(BLOCK >= 64 && BLOCK <= 1024 && (BLOCK & (BLOCK - 1)) == 0, "the tree halves the block down to one");

// One partial sum of BLOCK elements per block.
__global__ void __launch_bounds__(BLOCK)
    reduce_interleaved(const float* __restrict__ x, float* __restrict__ sums, unsigned n) {
    __shared__ float part[BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * BLOCK + tid;
    part[tid] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (unsigned s = 1; s < BLOCK; s *= 2) {
        const unsigned first = 2 * s * tid;
        if (first < BLOCK) part[first] += part[first + s];
        __syncthreads();
    }
    if (tid == 0) sums[blockIdx.x] = part[0];
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    return in_passes(x, out, n, [=](const float* from, float* to, int count, int blocks) {
        reduce_interleaved<<<blocks, BLOCK, 0, stream>>>(from, to, count);
    });
}
