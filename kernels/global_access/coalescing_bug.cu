// coalescing_bug: the two halves of the index are swapped.
//
// Idea         threadIdx.x * gridDim.x + blockIdx.x numbers all elements, as the usual index does, so that the result
//              is correct and the mistake goes unnoticed. But neighbouring lanes are now a whole grid apart: a warp
//              accesses 32 sectors and uses 4 bytes of each, and the neighbours of its elements belong to other blocks.
// Expected     Several times slower than `coalesced`; 32 sectors per request. L2 recovers part of it: blocks that run
//              at the same time are neighbours and find sectors there that others have loaded.
// Cost         Additional sectors: 32 per request instead of four.
// Constraints  Any n >= 1, any alignment.
// Source       The mistake of many first kernels; NVIDIA, CUDA C++ Best Practices Guide, coalesced access.

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

__global__ void __launch_bounds__(BLOCK)
    copy_coalescing_bug(const float* __restrict__ in, float* __restrict__ out, unsigned n) {
    const unsigned i = threadIdx.x * gridDim.x + blockIdx.x;  // the mistake
    if (i < n) out[i] = in[i];
}

extern "C" int launch(const float* in, float* out, int n, cudaStream_t stream) {
    const int blocks = (n - 1) / BLOCK + 1;
    copy_coalescing_bug<<<blocks, BLOCK, 0, stream>>>(in, out, n);
    return cudaGetLastError();
}
