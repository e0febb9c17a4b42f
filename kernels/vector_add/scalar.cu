// scalar: one thread adds one pair of elements.
//
// Idea         The definition of the sum. Neighbouring lanes take neighbouring elements, so that an access of a warp is
//              128 consecutive bytes, four sectors, all of whose bytes are used. There is 1 FLOP per 12 bytes: memory
//              is the limit, and the block size matters only as far as it determines how many warps are in flight.
// Expected     Near the bandwidth of a copy for arrays much larger than L2; blocks of 128 or 256 threads are no slower
//              than others.
// Cost         A thread has only two loads in flight, so that many warps are needed to hide the latency.
// Constraints  Any n >= 1, any alignment.
// Source       NVIDIA, CUDA C++ Programming Guide; docs.nvidia.com/cuda/cuda-c-best-practices-guide (coalescing).

#include <cuda_runtime.h>

static_assert(BLOCK >= 1 && BLOCK <= 1024, "at most 1024 threads; the last warp may be incomplete");

__global__ void __launch_bounds__(BLOCK)
    vector_add_scalar(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, unsigned n) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}

extern "C" int launch(const float* x, const float* y, float* out, int n, cudaStream_t stream) {
    const int blocks = (n - 1) / BLOCK + 1;
    vector_add_scalar<<<blocks, BLOCK, 0, stream>>>(x, y, out, n);
    return cudaGetLastError();
}
