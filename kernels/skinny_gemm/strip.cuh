// What swapped, split_k and split_k_cluster share: BN rows of W, as the 16-row operand of mma, times all rows of A.
//
// The rows of A are padded to `Columns`, a multiple of 16, and are the columns of the results here: C^T = W A^T. cp.async
// copies up to STAGES - 1 steps of 64 terms ahead, so that (STAGES - 1) * BN * 128 bytes of W are in flight per block. In
// shared memory, the 16-byte chunk c of a row lies at place c ^ (row % 8), so that the eight rows of a matrix of ldmatrix
// lie in different banks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "mma.cuh"

// Internal to each shared object, as in workspace.cuh.
namespace {

constexpr int BK = 64, CHUNK = 8, CHUNKS = BK / CHUNK;  // terms of a step, and of 16 bytes
constexpr int THREADS = BN / 16 * 32;                   // a warp for 16 rows of W
constexpr int LINES = THREADS / CHUNKS;                 // rows that all threads copy at a time

static_assert(BN % LINES == 0 && 16 % LINES == 0 && LINES % 8 == 0, "the copies take whole steps");
static_assert(STAGES >= 2 && BN <= 64, "one stage is read while another is filled, also if few fit");

constexpr int MOST_BYTES = 96 << 10;  // of shared memory, which a block gets on every GPU since sm_80
template <int Columns>
constexpr int stage_elements = (BN + Columns) * BK;
// STAGES, or as many as fit.
template <int Columns>
constexpr int stages_of = STAGES * stage_elements<Columns> * 2 <= MOST_BYTES ? STAGES
                                                                             : MOST_BYTES / (stage_elements<Columns> * 2);
template <int Columns>
constexpr int shared_bytes = stages_of<Columns> * stage_elements<Columns> * 2;

__device__ __forceinline__ int steps_of(int K) { return (K - 1) / BK + 1; }

// By all threads: the products of rows [first, first + BN) of W and all rows of A over steps [begin, end), in the layout
// of mma.cuh: sum[j] are 16 rows of a warp times columns 8 * j to 8 * j + 7. Rows and terms that do not exist count as
// zero.
template <int Columns>
__device__ __forceinline__ void multiply(float (&sum)[Columns / 8][4], __nv_bfloat16* stages, const __nv_bfloat16* A,
                                         const __nv_bfloat16* W, int M, int N, int K, int first, int begin, int end) {
    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    constexpr int COUNT = stages_of<Columns>;
    const auto place = [](int row, int chunk) { return row * BK + (chunk ^ row % 8) * CHUNK; };

    // A thread copies the same chunk of every LINES-th row, and commits one group per step, also an empty one, so that
    // groups count steps.
    const int line = tid / CHUNKS, my_k = tid % CHUNKS * CHUNK, to = place(line, tid % CHUNKS);
    const auto copy = [&](__nv_bfloat16* stage, const __nv_bfloat16* from, int row, int rows, int k) {
        const bool exists = row < rows && k < K;
        mma::copy_async(stage, exists ? from + static_cast<size_t>(row) * K + k : from, exists ? 16 : 0);
    };
    const auto fetch = [&](int step) {
        if (step < end) {
            __nv_bfloat16* const stage = stages + (step - begin) % COUNT * stage_elements<Columns> + to;
            const int k = step * BK + my_k;
#pragma unroll
            for (int i = 0; i < BN; i += LINES) copy(stage + i * BK, W, first + line + i, N, k);
#pragma unroll
            for (int i = 0; i < Columns; i += LINES) copy(stage + (BN + i) * BK, A, line + i, M, k);
        }
        mma::commit_copies();
    };

    for (int step = begin; step < begin + COUNT - 1; ++step) fetch(step);
    for (int step = begin; step < end; ++step) {
        mma::wait_copies<COUNT - 2>();
        __syncthreads();  // the step has arrived, and the stage that is filled next has been read
        fetch(step + COUNT - 1);
        const __nv_bfloat16* const w = stages + (step - begin) % COUNT * stage_elements<Columns>;
        const __nv_bfloat16* const a = w + BN * BK;
#pragma unroll
        for (int k = 0; k < CHUNKS; k += 2) {  // two chunks are 16 terms
            uint32_t rows[4], columns[Columns / 16][4];
            // Matrices: rows 0-7, rows 8-15, then both 8 terms further.
            mma::load_matrices(rows, w + place(warp * 16 + lane % 16, k + lane / 16));
#pragma unroll
            for (int j = 0; j < Columns / 16; ++j)  // columns 0-7, the same 8 terms further, then columns 8-15
                mma::load_matrices(columns[j], a + place(j * 16 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
#pragma unroll
            for (int j = 0; j < Columns / 8; ++j)
                mma::multiply(sum[j], rows, columns[j / 2][j % 2 * 2], columns[j / 2][j % 2 * 2 + 1]);
        }
    }
}

// Calls use(row of W within the block, column, sum) for each sum of this thread.
template <int Columns, typename Use>
__device__ __forceinline__ void for_each_sum(const float (&sum)[Columns / 8][4], const Use& use) {
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < Columns / 8; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) use(row + i / 2 * 8, j * 8 + column + i % 2, sum[j][i]);
}

// Calls start(std::integral_constant<int, Columns>) with the fewest columns for M rows of A.
template <typename Start>
cudaError_t with_columns(int M, const Start& start) {
    if (M <= 16) return start(std::integral_constant<int, 16>{});
    if (M <= 32) return start(std::integral_constant<int, 32>{});
    if (M <= 64) return start(std::integral_constant<int, 64>{});
    return start(std::integral_constant<int, 128>{});
}

}  // namespace
