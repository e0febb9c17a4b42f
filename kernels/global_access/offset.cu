// offset: warps copy 32 neighbouring elements, but start OFFSET elements after a line of 128 bytes.
//
// Idea         Thread t takes element t - (32 - OFFSET): the same elements as `coalesced`, moved against the warps.
//              Unless OFFSET is a multiple of 8, a warp's 128 bytes now begin and end within a sector, so that it
//              touches five sectors instead of four; the two at its ends it shares with the warps before and after it.
// Expected     A few percent slower at most for loads: the shared sectors come from L1 or L2, not from the memory
//              twice. Stores of part of a sector are put together in L2.
// Cost         A quarter more sectors between L1 and L2.
// Constraints  Any n >= 1. OFFSET counts from the start of the array; only on 128 bytes is it what it says.
// Source       M. Harris, developer.nvidia.com/blog/how-access-global-memory-efficiently-cuda-c-kernels.

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");
static_assert(OFFSET >= 0 && OFFSET < 32, "the offset lies within a warp's 32 elements");

constexpr unsigned BEFORE = (32 - OFFSET) % 32;  // threads before the first element

__global__ void __launch_bounds__(BLOCK)
    copy_offset(const float* __restrict__ in, float* __restrict__ out, unsigned n) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x - BEFORE;  // wraps round to far beyond n before the start
    if (i < n) out[i] = in[i];
}

extern "C" int launch(const float* in, float* out, int n, cudaStream_t stream) {
    const unsigned blocks = (n - 1u + BEFORE) / BLOCK + 1;
    copy_offset<<<blocks, BLOCK, 0, stream>>>(in, out, n);
    return cudaGetLastError();
}
