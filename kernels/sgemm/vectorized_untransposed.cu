// vectorized_untransposed: vectorized without the transposition of A in shared memory.
//
// Idea         vectorized transposes A on its way into shared memory, so that a thread reads the rows of one k as
//              float4; in return it stores A float by float. Here the tile keeps the layout of A: it is stored as
//              float4, and the compiler, which sees all k of a step, reads four k of a row at once. The ratio of the
//              two times shows what the transposition costs or gains.
// Expected     The same number of shared loads as vectorized, and two stores per step instead of five. But the two rows
//              that a warp reads at a time are 256 bytes apart, in the same bank: if the compiler reads them float by
//              float, these reads take two wavefronts instead of one.
// Cost         Four k of A in registers at a time. __launch_bounds__ asks for two blocks per SM, as vectorized has,
//              which limits the registers: no spills on sm_75 to sm_90, six registers on sm_120.
// Constraints  K and N multiples of 4 and arrays aligned to 16 bytes, for float4 accesses; M up to 65535 * BM.
// Source       The tile of S. Boehm's kernel 5 (siboehm.com/articles/22/CUDA-MMM) with the accesses of his kernel 6.

#include <cuda_runtime.h>

constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // float4 of A that a thread copies per step
constexpr int B_QUADS = BK * BN / 4 / THREADS;

static_assert(BM % TM == 0 && BN % TN == 0, "the block is split into whole patches");
static_assert(TN % 4 == 0 && BK % 4 == 0, "tiles are moved in groups of four floats");
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(A_QUADS * 4 * THREADS == BM * BK, "the copy of A takes whole steps");
static_assert(B_QUADS * 4 * THREADS == BK * BN, "the copy of B takes whole steps");

__device__ __forceinline__ float4 load_quad(const float* __restrict__ from, bool inside) {
    return inside ? *reinterpret_cast<const float4*>(from) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

__global__ void __launch_bounds__(THREADS, 2)
    sgemm_vectorized_untransposed(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                  int M, int N, int K, float alpha, float beta) {
    __shared__ __align__(16) float a_tile[BM][BK];
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
            a_quad[i] = load_quad(A + static_cast<size_t>(row) * K + k, row < M && k < K);
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int quad = tid + i * THREADS, k = k0 + quad / (BN / 4), col = block_col + quad % (BN / 4) * 4;
            b_quad[i] = load_quad(B + static_cast<size_t>(k) * N + col, k < K && col < N);
        }
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const int quad = tid + i * THREADS;
            *reinterpret_cast<float4*>(&a_tile[quad / (BK / 4)][quad % (BK / 4) * 4]) = a_quad[i];
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
            for (int i = 0; i < TM; ++i) a_column[i] = a_tile[c_row + i][k];
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
        const int row = block_row + c_row + i;
        if (row >= M) return;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = block_col + c_col + j;
            if (col >= N) break;
            float4* c = reinterpret_cast<float4*>(C + static_cast<size_t>(row) * N + col);
            const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *c;  // C may hold NaN: not read
            *c = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                             alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
        }
    }
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    sgemm_vectorized_untransposed<<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
