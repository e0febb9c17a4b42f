// block_swizzled: double_buffered, with the blocks in an order that L2 likes.
//
// Idea         Blocks start in the order of their number, and those that run at the same time read the rows of A and
//              the columns of B of their tiles. Row by row, 264 tiles of 128 x 128 are 4 rows and all 64 columns at
//              8192: 8.7 thousand rows and columns are read where a square of 16 x 16 tiles needs 4.1 thousand. Here
//              the tiles are gone through in groups of GROUP rows, column by column.
// Expected     0 to 3 % more at 8192 and 16384, nothing below, where all of A and B stays in L2 anyway. Boehm saw
//              nothing. What must fall are DRAM's bytes, by up to a half; and since DRAM's bytes cost power, there may
//              be some clock to gain where the board's limit holds it down.
// Cost         A division a block.
// Constraints  Those of double_buffered.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, work in progress (siboehm.com/articles/22/CUDA-MMM); the
//              order is that of the matmul tutorial of Triton (triton-lang.org).

#include "double_buffer.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;

static_assert(GROUP >= 1, "a group has at least one row; with one, the order is that of double_buffered");

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const auto start = sgemm::rows_on_16_bytes(A, B, C, N, K)
                           ? sgemm::start_double_buffered<Warp, BK, BLOCKS_PER_SM, GROUP, true>
                           : sgemm::start_double_buffered<Warp, BK, BLOCKS_PER_SM, GROUP, false>;
    return start(A, B, C, M, N, K, alpha, beta, stream);
}
