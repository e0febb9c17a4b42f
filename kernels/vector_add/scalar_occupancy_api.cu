// scalar_occupancy_api: `scalar` with the block size that the runtime proposes.
//
// Idea         cudaOccupancyMaxPotentialBlockSize returns the block size with the highest occupancy for a kernel, by
//              its registers and shared memory. If several sizes reach it, the function returns the largest one.
// Expected     As fast as scalar_block_1024: this kernel reaches full occupancy with every size from 64 to 1024 that
//              divides the threads of an SM. So the proposal is not the fastest size: with large blocks an SM waits for
//              the slowest warp of each before it starts the next one.
// Cost         A call of the runtime at the first launch.
// Constraints  Any n >= 1, any alignment.
// Source       M. Harris, developer.nvidia.com/blog/cuda-pro-tip-occupancy-api-simplifies-launch-configuration; Deep
//              dive 02, CUDA programming.

#include <cuda_runtime.h>

__global__ void vector_add_occupancy_api(const float* __restrict__ x, const float* __restrict__ y,
                                         float* __restrict__ out, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}

namespace {

struct Proposal {
    int least_blocks = 0, block = 0;
    cudaError_t error = cudaOccupancyMaxPotentialBlockSize(&least_blocks, &block, vector_add_occupancy_api);
};

}  // namespace

extern "C" int launch(const float* x, const float* y, float* out, int n, cudaStream_t stream) {
    static const Proposal proposal;
    if (proposal.error != cudaSuccess) return proposal.error;
    const int blocks = (n - 1) / proposal.block + 1;
    vector_add_occupancy_api<<<blocks, proposal.block, 0, stream>>>(x, y, out, n);
    return cudaGetLastError();
}
