// The thread tile of the pipelined variants, and the order in which its products are computed.
#pragma once

#include "results.cuh"

namespace {
namespace sgemm {

// The tile of a block is divided into tiles per warp, and those into thread tiles of ROWS x COLUMNS results per lane. A
// thread tile has groups of four, LANE_ROWS * 4 rows and LANE_COLUMNS * 4 columns apart, so that neighbouring lanes
// read neighbouring float4 or the same ones.
template <int BlockM, int BlockN, int WarpM, int WarpN, int LanesM>
struct WarpTile {
    static constexpr int BLOCK_M = BlockM, BLOCK_N = BlockN;
    static constexpr int WARPS_N = BlockN / WarpN;  // warps side by side in a block
    static constexpr int THREADS = BlockM / WarpM * WARPS_N * 32;
    static constexpr int LANE_ROWS = LanesM, LANE_COLUMNS = 32 / LanesM;  // of a warp
    static constexpr int ROWS = WarpM / LANE_ROWS, COLUMNS = WarpN / LANE_COLUMNS;

    static_assert(BlockM % WarpM == 0 && BlockN % WarpN == 0, "the block is split into whole warp tiles");
    static_assert(ROWS % 4 == 0 && COLUMNS % 4 == 0 && ROWS * LANE_ROWS == WarpM && COLUMNS * LANE_COLUMNS == WarpN,
                  "patches consist of whole float4");
    static_assert(LANE_ROWS % 2 == 0 && LANE_COLUMNS % 2 == 0, "lanes are laid out in squares of two by two");
    static_assert(THREADS <= 1024, "a block holds at most 1024 threads");

    int row, column;  // of the thread tile's first result, relative to the block

    // Lanes lie in squares of two by two, where lane bit 0 selects a row and bit 1 a column: LDS.128 then takes 2
    // cycles of shared memory instead of 4.
    __device__ __forceinline__ explicit WarpTile(int thread) {
        const int warp = thread / 32, lane = thread % 32, square = lane / 4;
        row = warp / WARPS_N * WarpM + (square / (LANE_COLUMNS / 2) * 2 + lane % 2) * 4;
        column = warp % WARPS_N * WarpN + (square % (LANE_COLUMNS / 2) * 2 + lane / 2 % 2) * 4;
    }

    // Offsets of result row i and result column j of the thread tile from its first result.
    __device__ static constexpr int row_of(int i) { return i / 4 * LANE_ROWS * 4 + i % 4; }
    __device__ static constexpr int column_of(int j) { return j / 4 * LANE_COLUMNS * 4 + j % 4; }

    // The operands of one k: four rows of A, four columns of B at a time.
    __device__ __forceinline__ static void load_rows(float (&to)[ROWS], const float* from) {
#pragma unroll
        for (int i = 0; i < ROWS; i += 4)
            *reinterpret_cast<float4*>(&to[i]) = *reinterpret_cast<const float4*>(from + row_of(i));
    }
    __device__ __forceinline__ static void load_columns(float (&to)[COLUMNS], const float* from) {
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 4)
            *reinterpret_cast<float4*>(&to[j]) = *reinterpret_cast<const float4*>(from + column_of(j));
    }

    // Calls `visit(i, j, at, count)` for each group of four results of the thread tile. The block's tile starts at
    // (block_row, block_column) of an M x N matrix; `at` is the index of the group in it, and `count` says how many are
    // inside.
    template <class Visit>
    __device__ __forceinline__ void each_quad(int M, int N, int block_row, int block_column, Visit visit) const {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4) {
                const int at_row = block_row + row + row_of(i), at_column = block_column + column + column_of(j);
                visit(i, j, static_cast<size_t>(at_row) * N + at_column, at_row < M ? N - at_column : 0);
            }
        }
    }

    // C = alpha * sum + beta * C for the block's tile.
    template <bool WIDE>
    __device__ __forceinline__ void finish(float* C, int M, int N, int block_row, int block_column,
                                           const float (&sum)[ROWS][COLUMNS], float alpha, float beta) const {
        each_quad(M, N, block_row, block_column, [&](int i, int j, size_t at, int count) {
            const float4 quad = make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
            finish_quad<WIDE>(C + at, count, quad, alpha, beta);
        });
    }
};

// sum += a * b, back and forth along the short side, so that each multiply-add finds one operand of the previous one in
// the reuse cache, and the other two lie in different banks of the register file: two reads per multiply-add.
template <int ROWS, int COLUMNS>
__device__ __forceinline__ void multiply_line_by_line(float (&sum)[ROWS][COLUMNS], const float (&a)[ROWS],
                                                      const float (&b)[COLUMNS]) {
    constexpr int SHORT = ROWS < COLUMNS ? ROWS : COLUMNS;
#pragma unroll
    for (int p = 0; p < ROWS * COLUMNS; ++p) {
        const int line = p / SHORT, there = p % SHORT, step = line % 2 ? SHORT - 1 - there : there;
        const int i = COLUMNS == SHORT ? line : step, j = COLUMNS == SHORT ? step : line;
        sum[i][j] += a[i] * b[j];
    }
}

// sum += a * b, two columns at a time, down the rows and up again. The reuse cache of an operand holds one register of
// each of the two banks, so both columns stay in it, and a row is read once for two multiply-adds: 1.5 register reads
// per multiply-add instead of 2.
template <int ROWS, int COLUMNS>
__device__ __forceinline__ void multiply_by_column_pairs(float (&sum)[ROWS][COLUMNS], const float (&a)[ROWS],
                                                         const float (&b)[COLUMNS]) {
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 2) {
#pragma unroll
        for (int line = 0; line < ROWS; ++line) {
            const int i = j % 4 ? ROWS - 1 - line : line;
            sum[i][j] += a[i] * b[j];
            sum[i][j + 1] += a[i] * b[j + 1];
        }
    }
}

}  // namespace sgemm
}  // namespace
