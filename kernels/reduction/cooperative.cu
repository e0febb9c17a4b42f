// cooperative: a barrier for the whole grid takes the place of the second launch.
//
// Idea         The two stages of `two_stage` in one kernel: each block writes its sum, grid.sync() waits for all
//              blocks, and block 0 adds the sums. A barrier between blocks needs all of them to run at the same time,
//              so the launch is a cooperative one (cudaLaunchCooperativeKernel), which refuses a grid that does not
//              fit.
// Expected     Faster than `two_stage` where the second launch counts, as at 64Ki; the same at 64Mi. Slower than
//              `single_launch`, where nobody waits: the last block adds the sums.
// Cost         All blocks wait for the slowest one, and the grid is limited to what the GPU holds at once.
// Constraints  Any n >= 1, any alignment; a device that supports cooperative launches. A workspace of one float per
//              block, allocated at the first launch; one stream at a time.
// Source       CUDA C++ Programming Guide, grid synchronisation; Deep dive 02, CUDA programming.

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "block_sum.cuh"
#include "strided_sum.cuh"

__global__ void __launch_bounds__(BLOCK)
    reduce_cooperative(const float* __restrict__ x, float* sums, float* __restrict__ out, int n) {
    float sum = strided_sum(x, n);
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
    cooperative_groups::this_grid().sync();
    if (blockIdx.x != 0) return;
    sum = 0.0f;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += BLOCK) sum += __ldcg(sums + i);  // L1 may hold older values
    sum = block_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}

// The number of blocks that the current GPU holds at once.
static cudaError_t resident_blocks(int* blocks) {
    int device = 0, sms = 0, per_sm = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, reduce_cooperative, BLOCK, 0);
    *blocks = sms * per_sm;
    return error;
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    int most = 0;
    cudaError_t error = resident_blocks(&most);
    void* memory = nullptr;
    if (error == cudaSuccess) error = workspace(most * sizeof(float), &memory);
    if (error != cudaSuccess) return error;
    float* sums = static_cast<float*>(memory);
    const int blocks = std::min((n - 1) / BLOCK + 1, most);
    void* arguments[] = {&x, &sums, &out, &n};
    return cudaLaunchCooperativeKernel(reduce_cooperative, dim3(blocks), dim3(BLOCK), arguments, 0, stream);
}
