// offset: warps copy 32 neighbouring elements, starting OFFSET elements into a line of 128 bytes.
//
// Idea         Thread t takes element t - (32 - OFFSET): the same elements as `coalesced`, shifted against the warps.
//              Unless OFFSET is a multiple of 8, the 128 bytes of a warp now begin and end within a sector, so that it
//              accesses five sectors instead of four and shares those at its ends with the previous and the next warp.
// Expected     At most a few percent slower than `coalesced` for loads: the shared sectors come from L1 or L2 and are
//              not read from memory twice. Stores of partial sectors are merged in L2.
// Cost         A quarter more sectors between L1 and L2.
// Constraints  Any n >= 1. OFFSET counts from the start of the array, which must be aligned to 128 bytes for OFFSET to
//              be exact.
// Source       M. Harris, developer.nvidia.com/blog/how-access-global-memory-efficiently-cuda-c-kernels.

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(OFFSET >= 0 && OFFSET < 32, "the offset lies within a warp's 32 elements");

constexpr unsigned BEFORE = (32 - OFFSET) % 32;  // threads before the first element

__global__ void __launch_bounds__(BLOCK)
    copy_offset(const float* __restrict__ in, float* __restrict__ out, unsigned n) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x - BEFORE;  // before the start this wraps to far beyond n
    if (i < n) out[i] = in[i];
}

extern "C" int launch(const float* in, float* out, int n, cudaStream_t stream) {
    const unsigned blocks = (n - 1u + BEFORE) / BLOCK + 1;
    copy_offset<<<blocks, BLOCK, 0, stream>>>(in, out, n);
    return cudaGetLastError();
}
