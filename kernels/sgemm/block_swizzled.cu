// block_swizzled: double_buffered with an order of blocks that reuses more of A and B in L2.
//
// Idea         Blocks usually start in the order of their numbers, and those that run at the same time read the rows of
//              A and the columns of B of their tiles. Row by row, 264 tiles of 128 x 128 at 8192 are about 4 rows of 64
//              tiles: 8700 rows and columns are read, where a square of 16 x 16 tiles needs 4100. Here tiles are taken
//              in groups of GROUP rows, column by column.
// Expected     0 to 3 % faster than double_buffered at 8192 and 16384; no gain below, where the rows and columns that
//              blocks read at the same time fit in L2 in any order. Boehm saw no gain. DRAM traffic should fall by up
//              to half; less DRAM power may allow a higher clock under the power limit.
// Cost         One division per block.
// Constraints  As double_buffered.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, work in progress (siboehm.com/articles/22/CUDA-MMM); the
//              order is that of the matmul tutorial of Triton (triton-lang.org).

#include "double_buffer.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;

static_assert(GROUP >= 1, "a group has at least one row; with one row, the order is that of double_buffered");

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const auto start = sgemm::rows_on_16_bytes(A, B, C, N, K)
                           ? sgemm::start_double_buffered<Warp, BK, BLOCKS_PER_SM, GROUP, true>
                           : sgemm::start_double_buffered<Warp, BK, BLOCKS_PER_SM, GROUP, false>;
    return start(A, B, C, M, N, K, alpha, beta, stream);
}
