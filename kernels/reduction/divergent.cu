// divergent: a tree over neighbours, in which the adding threads lie further apart with each step.
//
// Idea         Each block adds BLOCK elements in shared memory: pairs of neighbours, then pairs of pairs. A thread
//              stays active while its number is a multiple of 2, 4, 8 ..., which is the deliberate mistake. The active
//              threads are spread over all warps, so that every warp is issued in every step, with fewer and fewer
//              lanes, and the test is a remainder of a division.
// Expected     The slowest of the ladder; few active lanes per instruction. No bank conflicts: the active lanes of a
//              warp lie 2*s words apart (s is the stride of the step), and there are at most 32 / (2*s) of them.
// Cost         log2(BLOCK) + 1 barriers per block (nine with 256 threads); a launch per pass.
// Constraints  Any n >= 1, any alignment. A workspace of n / BLOCK floats, allocated at the first launch; one stream at
//              a time.
// Source       M. Harris, Optimizing parallel reduction in CUDA, NVIDIA 2007, kernel 1.

#include <cuda_runtime.h>

#include "passes.cuh"

static_assert(BLOCK >= 64 && BLOCK <= 1024 && (BLOCK & (BLOCK - 1)) == 0, "the tree halves the block down to one");

// One partial sum of BLOCK elements per block.
__global__ void __launch_bounds__(BLOCK)
    reduce_divergent(const float* __restrict__ x, float* __restrict__ sums, unsigned n) {
    __shared__ float part[BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * BLOCK + tid;
    part[tid] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (unsigned s = 1; s < BLOCK; s *= 2) {
        if (tid % (2 * s) == 0) part[tid] += part[tid + s];  // the mistake: every warp, fewer and fewer lanes
        __syncthreads();
    }
    if (tid == 0) sums[blockIdx.x] = part[0];
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    return in_passes(x, out, n, [=](const float* from, float* to, int count, int blocks) {
        reduce_divergent<<<blocks, BLOCK, 0, stream>>>(from, to, count);
    });
}
