// cg_reduce, cg_block: cooperative groups add, instead of shuffles in the source.
//
// Idea         The two stages of `two_stage`; only the sum over a block is written differently.
//              cg_reduce (TILE = 32): cg::reduce over tiles of 32 threads replaces the loop of shuffles. A tile knows
//              its size at compile time, so the call should become the same five shuffles and additions.
//              cg_block (TILE = BLOCK): one call for the whole block, a tile of eight warps. The library passes the
//              sums of the warps through shared memory (block_tile_memory; from sm_80 on in the KiB that the system
//              reserves anyway).
// Expected     As fast as `two_stage`: a thread adds hundreds of elements before it takes part in one sum over its
//              block.
// Cost         None at run time; longer to compile.
// Constraints  Any n >= 1, any alignment. A workspace of one float per block, allocated at the first launch; one stream
//              at a time.
// Source       CUDA C++ Programming Guide, cooperative groups; Deep dive 02, CUDA programming.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

#include "strided_sum.cuh"

namespace cg = cooperative_groups;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps, and one warp can add the sums of all");
static_assert(TILE == 32 || TILE == BLOCK, "a tile is a warp or a block");

// The sum over a block, in thread 0.
__device__ __forceinline__ float group_sum(float value) {
    if constexpr (TILE == BLOCK) {
        __shared__ cg::block_tile_memory<BLOCK> memory;
        const auto tile = cg::tiled_partition<TILE>(cg::this_thread_block(memory));
        return cg::reduce(tile, value, cg::plus<float>());
    } else {
        __shared__ float sums[BLOCK / 32];
        const auto block = cg::this_thread_block();
        const auto warp = cg::tiled_partition<TILE>(block);
        value = cg::reduce(warp, value, cg::plus<float>());
        if (warp.thread_rank() == 0) sums[warp.meta_group_rank()] = value;
        block.sync();
        if (warp.meta_group_rank() != 0) return 0.0f;
        const unsigned lane = warp.thread_rank();
        return cg::reduce(warp, lane < BLOCK / 32 ? sums[lane] : 0.0f, cg::plus<float>());
    }
}

__global__ void __launch_bounds__(BLOCK)
    reduce_cooperative_groups(const float* __restrict__ x, float* __restrict__ sums, int n) {
    const float sum = group_sum(strided_sum(x, n));
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    int blocks = 0;
    float* sums = nullptr;
    const cudaError_t error = deal_out(n, &blocks, &sums);
    if (error != cudaSuccess) return error;
    reduce_cooperative_groups<<<blocks, BLOCK, 0, stream>>>(x, sums, n);
    reduce_cooperative_groups<<<1, BLOCK, 0, stream>>>(sums, out, blocks);
    return cudaGetLastError();
}
