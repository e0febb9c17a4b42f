// warptile: a tile per warp, between the block tile and the thread tile.
//
// Idea         C is divided into BM x BN per block, this into WM x WN per warp, and this into passes, in each of which
//              the 32 lanes cover one compact rectangle with a thread tile of TM x TN per lane. By the rules for shared
//              memory, vectorized takes 20 cycles for the operands of 64 multiply-adds, since its lanes read 32 bytes
//              apart and conflict. Here neighbouring lanes read neighbouring float4, or the same ones: 8 cycles.
// Expected     1.19 times vectorized on an RTX A6000 (18237 to 21779 GFLOP/s, 93.7 % of cuBLAS, Boehm), 1.06 times on
//              an RTX 4090.
// Cost         Seven interdependent tile parameters. Blocks of 64 x 128 move more bytes through L2 than 128 x 128, but
//              four of them share an SM, so that one computes while another waits at its barrier.
// Constraints  Any M, N, K >= 1, any alignment. Wide accesses require rows aligned to 16 bytes: K and N multiples of 4,
//              aligned arrays. The launcher checks this and otherwise uses the instantiation that copies float by
//              float. M up to 65535 * BM.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 10 (siboehm.com/articles/22/CUDA-MMM); the levels
//              are those of CUTLASS (developer.nvidia.com/blog/cutlass-linear-algebra-cuda). Reads shared by lanes:
//              forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228.

#include "results.cuh"

constexpr int WARPS_N = BN / WN;  // warps side by side in a block
constexpr int THREADS = BM / WM * WARPS_N * 32;
constexpr int WM_PASSES = WM * WN / (32 * TM * TN * WN_PASSES);
constexpr int PASS_M = WM / WM_PASSES;  // rows and columns that the lanes of a warp cover in one pass
constexpr int PASS_N = WN / WN_PASSES;
constexpr int LANES_N = PASS_N / TN;            // lanes side by side in a warp
constexpr int SECTOR = 8;                       // floats in a 32-byte sector
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // float4 of A that a thread copies per step
constexpr int B_QUADS = BK * BN / 4 / THREADS;

static_assert(BM % WM == 0 && BN % WN == 0, "the block is split into whole warp tiles");
static_assert(WM_PASSES >= 1 && WM_PASSES * WN_PASSES * 32 * TM * TN == WM * WN, "the warp tile has whole passes");
static_assert(WM % WM_PASSES == 0 && WN % WN_PASSES == 0, "the warp tile is split into whole passes");
static_assert(PASS_M % TM == 0 && PASS_N % TN == 0 && (PASS_M / TM) * LANES_N == 32, "one patch per lane in each pass");
static_assert(PASS_M / TM % 2 == 0 && LANES_N % 2 == 0, "lanes are laid out in squares of two by two");
static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % SECTOR == 0, "tiles are moved in groups of four floats");
static_assert(THREADS <= 1024, "a block holds at most 1024 threads");
static_assert(A_QUADS * 4 * THREADS == BM * BK, "the copy of A takes whole steps");
static_assert(B_QUADS * 4 * THREADS == BK * BN, "the copy of B takes whole steps");
static_assert(BM % (THREADS / 2) == 0 || THREADS / 2 % BM == 0, "a step of the copy of A has whole rows or sectors");
static_assert(THREADS % (BN / 4) == 0, "a step of the copy of B has whole rows");

struct Place {
    int row, k;
};

// Place of float4 number `quad` of the tile of A: two lanes read a sector, and sixteen pairs of lanes sixteen rows.
__device__ constexpr Place place_in_a(int quad) { return {quad / 2 % BM, quad / 2 / BM * SECTOR + quad % 2 * 4}; }

template <bool WIDE>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sgemm_warptile(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                   float alpha, float beta) {
    __shared__ __align__(16) float a_tile[BK][BM];  // transposed: the rows of one k are contiguous
    __shared__ __align__(16) float b_tile[BK][BN];

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;

    // The copy: the pointers move along K, and the other float4 of the thread lie at offsets known at compile time.
    const Place first = place_in_a(tid);
    const int b_k = tid / (BN / 4), b_col = tid % (BN / 4) * 4;
    const float* a = A + (static_cast<size_t>(block_row) + first.row) * K + first.k;
    const float* b = B + static_cast<size_t>(b_k) * N + block_col + b_col;
    const int rows_left = M - block_row - first.row, cols_left = N - block_col - b_col;

    // The products: lanes lie in squares of two by two, where lane bit 0 selects a row and bit 1 a column. Lanes two
    // apart then read the same part of A and lanes one apart the same part of B, so that LDS.128 takes 2 cycles instead
    // of 4.
    const int square = lane / 4;
    const int lane_row = square / (LANES_N / 2) * 2 + lane % 2;
    const int lane_col = square % (LANES_N / 2) * 2 + lane / 2 % 2;
    const int c_row = warp / WARPS_N * WM + lane_row * TM;  // the thread's first tile, relative to the block
    const int c_col = warp % WARPS_N * WN + lane_col * TN;

    float sum[WM_PASSES * TM][WN_PASSES * TN] = {};

    for (int k_left = K; k_left > 0; k_left -= BK) {
        // All loads are issued before the first store waits for one.
        float4 a_quad[A_QUADS], b_quad[B_QUADS];
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            const int count = step.row < rows_left ? k_left - first.k - step.k : 0;
            a_quad[i] = load_quad<WIDE>(a + static_cast<size_t>(step.row) * K + step.k, count);
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int k = i * (THREADS / (BN / 4));
            b_quad[i] = load_quad<WIDE>(b + static_cast<size_t>(k) * N, b_k + k < k_left ? cols_left : 0);
        }
        a += BK;
        b += static_cast<size_t>(BK) * N;
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            float* to = &a_tile[first.k + step.k][first.row + step.row];
            to[0 * BM] = a_quad[i].x;
            to[1 * BM] = a_quad[i].y;
            to[2 * BM] = a_quad[i].z;
            to[3 * BM] = a_quad[i].w;
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i)
            *reinterpret_cast<float4*>(&b_tile[b_k + i * (THREADS / (BN / 4))][b_col]) = b_quad[i];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_column[WM_PASSES * TM], b_row[WN_PASSES * TN];
#pragma unroll
            for (int i = 0; i < WM_PASSES * TM; i += 4)
                *reinterpret_cast<float4*>(&a_column[i]) =
                    *reinterpret_cast<const float4*>(&a_tile[k][c_row + i / TM * PASS_M + i % TM]);
#pragma unroll
            for (int j = 0; j < WN_PASSES * TN; j += 4)
                *reinterpret_cast<float4*>(&b_row[j]) =
                    *reinterpret_cast<const float4*>(&b_tile[k][c_col + j / TN * PASS_N + j % TN]);
#pragma unroll
            for (int i = 0; i < WM_PASSES * TM; ++i)
#pragma unroll
                for (int j = 0; j < WN_PASSES * TN; ++j) sum[i][j] += a_column[i] * b_row[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < WM_PASSES * TM; ++i) {
#pragma unroll
        for (int j = 0; j < WN_PASSES * TN; j += 4) {
            const int row = block_row + c_row + i / TM * PASS_M + i % TM;
            const int col = block_col + c_col + j / TN * PASS_N + j % TN;
            sgemm::finish_quad<WIDE>(C + static_cast<size_t>(row) * N + col, row < M ? N - col : 0,
                                     make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]), alpha, beta);
        }
    }
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    if (sgemm::rows_on_16_bytes(A, B, C, N, K))
        sgemm_warptile<true><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    else
        sgemm_warptile<false><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
