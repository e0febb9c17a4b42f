// stride: neighbouring lanes copy elements that lie STRIDE apart.
//
// Idea         The array is gone over STRIDE times; in round r the threads take the elements r, r + STRIDE, r + 2
//              STRIDE and so on. All elements are copied once, so that the answer and the bytes are those of
//              `coalesced`. But a warp touches STRIDE times as many sectors, 32 at most, and uses one part of STRIDE of
//              them. The rounds are the y axis of the grid, which starts last: between two visits of a sector lies a
//              whole round.
// Expected     STRIDE times the traffic up to 8, where a sector holds one element a visit; from 8 on always 32 sectors
//              a request. Arrays that fit into L2 pay there, others in the memory.
// Cost         All of it in sectors.
// Constraints  Any n >= 1, any alignment.
// Source       M. Harris, developer.nvidia.com/blog/how-access-global-memory-efficiently-cuda-c-kernels.

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");
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
