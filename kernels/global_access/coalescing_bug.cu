// coalescing_bug: the two halves of the index have changed places.
//
// Idea         threadIdx.x * gridDim.x + blockIdx.x numbers the elements just as completely as the right index, so that
//              the answer is right and nobody looks. But neighbouring lanes are now a whole grid apart: a warp touches
//              32 sectors, of which it uses 4 bytes each, and its neighbours in memory are in other blocks.
// Expected     Several times slower than `coalesced`; 32 sectors a request. L2 saves part of it: the blocks of one
//              moment are neighbours, and find sectors there that others have fetched.
// Cost         All of it in sectors.
// Constraints  Any n >= 1, any alignment.
// Source       The mistake of many first kernels; NVIDIA, CUDA C++ Best Practices Guide, coalesced access.

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");

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
