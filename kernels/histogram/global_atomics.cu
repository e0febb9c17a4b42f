// global_atomics: one atomic addition per key, to a single histogram in global memory.
//
// Idea         The definition of a histogram. The additions are executed where the histogram lies, in L2: 256 counts in
//              8 lines of 128 bytes, to which every thread of the GPU adds. Additions to one address are serialised;
//              the more keys are equal, the longer the queue.
// Expected     10 to 50 times slower than a histogram in shared memory, and slower still with skewed keys.
// Cost         A launch that clears the counts first.
// Constraints  Any n >= 1, any alignment; keys in 0..255.
// Source       N. Sakharnykh, developer.nvidia.com/blog/gpu-pro-tip-fast-histograms-using-shared-atomics-maxwell.

#include <cuda_runtime.h>

constexpr int BINS = 256;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

__global__ void clear(unsigned* counts) { counts[threadIdx.x] = 0; }

__global__ void __launch_bounds__(BLOCK)
    histogram_global_atomics(const int* __restrict__ keys, unsigned* counts, unsigned n) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) atomicAdd(&counts[keys[i]], 1u);
}

extern "C" int launch(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    const int blocks = (n - 1) / BLOCK + 1;
    clear<<<1, BINS, 0, stream>>>(counts);
    histogram_global_atomics<<<blocks, BLOCK, 0, stream>>>(keys, counts, n);
    return cudaGetLastError();
}
