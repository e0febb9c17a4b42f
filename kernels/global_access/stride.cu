// stride: neighbouring lanes copy elements that lie STRIDE apart.
//
// Idea         The array is copied in STRIDE rounds; in round r the threads take the elements r, r + STRIDE, r + 2
//              STRIDE and so on. All elements are copied once, so that the result and the bytes are those of
//              `coalesced`. But a warp accesses STRIDE times as many sectors, 32 at most, and uses 1 / STRIDE of the
//              bytes of each, 4 at least. The rounds are the y axis of the grid, so that a whole round usually lies
//              between two accesses to a sector.
// Expected     STRIDE times the traffic of `coalesced` up to 8, where one element of a sector is used per access; from
//              8 on always 32 sectors per request. If the array fits into L2, this is traffic of L2, otherwise of DRAM.
// Cost         Additional sectors, up to 32 per request.
// Constraints  Any n >= 1, any alignment.
// Source       M. Harris, developer.nvidia.com/blog/how-access-global-memory-efficiently-cuda-c-kernels.

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(STRIDE >= 1 && STRIDE <= 65535, "the rounds are the y axis of the grid");

__global__ void __launch_bounds__(BLOCK)
    copy_stride(const float* __restrict__ in, float* __restrict__ out, unsigned n) {
    const unsigned i = (blockIdx.x * BLOCK + threadIdx.x) * STRIDE + blockIdx.y;
    if (i < n) out[i] = in[i];
}

extern "C" int launch(const float* in, float* out, int n, cudaStream_t stream) {
    const int elements = (n - 1) / STRIDE + 1;  // of the longest round
    const dim3 grid((elements - 1) / BLOCK + 1, STRIDE);
    copy_stride<<<grid, BLOCK, 0, stream>>>(in, out, n);
    return cudaGetLastError();
}
