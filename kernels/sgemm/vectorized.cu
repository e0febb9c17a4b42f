// vectorized: blocktile_2d with accesses of four floats.
//
// Idea         Every copy is 16 bytes wide: LDG.128 from global memory, LDS.128 from shared memory, STG.128 for the
//              results, a quarter of the instructions for the same bytes. For A this requires a transposition: a thread
//              needs a column of the tile, so the tile is stored with k as the outer index, transposed on its way into
//              shared memory.
// Expected     1.14 times blocktile_2d on an RTX A6000 (15972 to 18237 GFLOP/s, Boehm), 1.07 times on an RTX 4090.
// Cost         Two-way bank conflicts in the transposing stores of A and the float4 reads of B.
// Constraints  Any M, N, K >= 1, any alignment. Wide accesses require rows aligned to 16 bytes: K and N multiples of 4,
//              aligned arrays. The launcher checks this and otherwise uses the instantiation that copies float by
//              float. With K and N multiples of 4, a group of four is entirely inside or outside the matrix, so that
//              one predicate guards one wide access even at a border. M up to 65535 * BM.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 6 (siboehm.com/articles/22/CUDA-MMM).

#include <cuda_runtime.h>

#include "results.cuh"

constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // float4 of A that a thread copies per step
constexpr int B_QUADS = BK * BN / 4 / THREADS;

static_assert(BM % TM == 0 && BN % TN == 0, "the block is split into whole patches");
static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % 4 == 0, "tiles are moved in groups of four floats");
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(A_QUADS * 4 * THREADS == BM * BK, "the copy of A takes whole steps");
static_assert(B_QUADS * 4 * THREADS == BK * BN, "the copy of B takes whole steps");

template <bool WIDE>
__global__ void __launch_bounds__(THREADS)
    sgemm_vectorized(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                     int K, float alpha, float beta) {
    __shared__ __align__(16) float a_tile[BK][BM];  // transposed: the rows of one k are contiguous
    __shared__ __align__(16) float b_tile[BK][BN];

    const int tid = threadIdx.x;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int c_row = tid / (BN / TN) * TM, c_col = tid % (BN / TN) * TN;
    float sum[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK) {
        // All loads are issued before the first store waits for one.
        float4 a_quad[A_QUADS], b_quad[B_QUADS];
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const int quad = tid + i * THREADS, row = block_row + quad / (BK / 4), k = k0 + quad % (BK / 4) * 4;
            a_quad[i] = load_quad<WIDE>(A + static_cast<size_t>(row) * K + k, row < M ? K - k : 0);
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int quad = tid + i * THREADS, k = k0 + quad / (BN / 4), col = block_col + quad % (BN / 4) * 4;
            b_quad[i] = load_quad<WIDE>(B + static_cast<size_t>(k) * N + col, k < K ? N - col : 0);
        }
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const int quad = tid + i * THREADS, row = quad / (BK / 4), k = quad % (BK / 4) * 4;
            a_tile[k + 0][row] = a_quad[i].x;
            a_tile[k + 1][row] = a_quad[i].y;
            a_tile[k + 2][row] = a_quad[i].z;
            a_tile[k + 3][row] = a_quad[i].w;
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int quad = tid + i * THREADS;
            *reinterpret_cast<float4*>(&b_tile[quad / (BN / 4)][quad % (BN / 4) * 4]) = b_quad[i];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_column[TM], b_row[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4)
                *reinterpret_cast<float4*>(&a_column[i]) = *reinterpret_cast<const float4*>(&a_tile[k][c_row + i]);
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *reinterpret_cast<float4*>(&b_row[j]) = *reinterpret_cast<const float4*>(&b_tile[k][c_col + j]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a_column[i] * b_row[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int row = block_row + c_row + i, col = block_col + c_col + j;
            sgemm::finish_quad<WIDE>(C + static_cast<size_t>(row) * N + col, row < M ? N - col : 0,
                                     make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]), alpha, beta);
        }
    }
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    if (sgemm::rows_on_16_bytes(A, B, C, N, K))
        sgemm_vectorized<true><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    else
        sgemm_vectorized<false><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
