// blocktile_2d: a thread computes a thread tile of TM x TN results.
//
// Idea         TM elements of A and TN elements of B in registers give TM * TN multiply-adds: an outer product for each
//              k. With 8 x 8 that is 16 shared reads for 64 multiply-adds, 1/4 read per multiply-add instead of the 9/8
//              of blocktile_1d. The larger block halves the loads from global memory, to K/64 elements per result.
// Expected     1.9 times blocktile_1d on an RTX A6000 (8475 to 15972 GFLOP/s, Boehm), 1.7 times on an RTX 4090.
// Cost         TM * TN accumulators and TM + TN operands per thread: well over 100 registers, so two blocks per SM.
// Constraints  Any M, N, K >= 1, any alignment (elements outside count as zero); M up to 65535 * BM.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 5 (siboehm.com/articles/22/CUDA-MMM).

#include <cuda_runtime.h>

constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int A_STEP = THREADS / BK;  // rows of A that the block copies at once
constexpr int B_STEP = THREADS / BN;  // rows of B that the block copies at once

static_assert(BM % TM == 0 && BN % TN == 0, "the block is split into whole patches");
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(THREADS % BK == 0 && BM % A_STEP == 0, "the copy of A takes whole steps");
static_assert(THREADS % BN == 0 && BK % B_STEP == 0, "the copy of B takes whole steps");

__global__ void __launch_bounds__(THREADS)
    sgemm_blocktile_2d(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                       int K, float alpha, float beta) {
    __shared__ float a_tile[BM][BK];
    __shared__ float b_tile[BK][BN];

    const int tid = threadIdx.x;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int a_row = tid / BK, a_k = tid % BK;
    const int b_k = tid / BN, b_col = tid % BN;
    const bool b_inside = block_col + b_col < N;
    const float* a = A + (static_cast<size_t>(block_row) + a_row) * K + a_k;
    const float* b = B + static_cast<size_t>(b_k) * N + block_col + b_col;

    const int c_row = tid / (BN / TN) * TM, c_col = tid % (BN / TN) * TN;
    float sum[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int i = 0; i < BM; i += A_STEP) {
            const bool inside = block_row + a_row + i < M && k0 + a_k < K;
            a_tile[a_row + i][a_k] = inside ? a[static_cast<size_t>(i) * K] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BK; i += B_STEP) {
            const bool inside = b_inside && k0 + b_k + i < K;
            b_tile[b_k + i][b_col] = inside ? b[static_cast<size_t>(i) * N] : 0.0f;
        }
        a += BK;
        b += static_cast<size_t>(BK) * N;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_column[TM], b_row[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a_column[i] = a_tile[c_row + i][k];
#pragma unroll
            for (int j = 0; j < TN; ++j) b_row[j] = b_tile[k][c_col + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a_column[i] * b_row[j];
        }
        __syncthreads();
    }

    const int row = block_row + c_row, col = block_col + c_col;
    float* c = C + static_cast<size_t>(row) * N + col;
#pragma unroll
    for (int i = 0; i < TM; ++i, c += N) {
        if (row + i >= M) return;
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            if (col + j >= N) break;
            c[j] = beta == 0.0f ? alpha * sum[i][j] : alpha * sum[i][j] + beta * c[j];  // beta == 0: C is not read
        }
    }
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    sgemm_blocktile_2d<<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
