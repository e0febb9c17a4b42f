// global_atomics: one atomic addition per key, to a single histogram in global memory.
//
// Idea         65536 counts are 256 KiB, more than the shared memory of a block on any GPU so far, so they lie where
//              all blocks reach them: in L2, which executes the additions.
// Expected     The rate of atomics in L2, one sector of 32 bytes per key; slower still where many keys are equal.
// Cost         A launch that clears the counts first.
// Constraints  Any n >= 1, any alignment; keys in 0..BINS - 1.
// Source       N. Sakharnykh, developer.nvidia.com/blog/gpu-pro-tip-fast-histograms-using-shared-atomics-maxwell.

#include <cuda_runtime.h>

#include "bins.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

__global__ void __launch_bounds__(BLOCK)
    dsmem_global_atomics(const int* __restrict__ keys, unsigned* counts, unsigned n) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) atomicAdd(&counts[keys[i]], 1u);
}

extern "C" int launch(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    clear<<<BINS / CLEAR_THREADS, CLEAR_THREADS, 0, stream>>>(counts);
    dsmem_global_atomics<<<(n - 1) / BLOCK + 1, BLOCK, 0, stream>>>(keys, counts, n);
    return cudaGetLastError();
}
