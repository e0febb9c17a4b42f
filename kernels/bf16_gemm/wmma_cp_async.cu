// wmma_cp_async: the next tiles are copied while the current ones are multiplied.
//
// Idea         Two stages of A and B in shared memory take turns. cp.async copies the tiles of the next step from
//              global memory without registers, while the warps multiply those of the current step. This hides what
//              wmma_tiled waits for between its two barriers, and leaves one barrier per step.
// Expected     Faster than wmma_tiled, since it hides latency. 60 to 70 % of cuBLAS on an A100 for 128 x 128 x 32 tiles
//              (Deep dive 02, CUDA programming). Less on Hopper, where mma alone cannot keep the tensor cores busy.
// Cost         2 * (BM + BN) * (BK + 8) * 2 bytes of shared memory, 40 KiB. Rows are padded by 16 bytes, so that the
//              eight rows of a fragment lie in different banks.
// Constraints  Any M, N >= 1. K a multiple of 8 and A and B aligned to 16 bytes, since copies are 16 bytes wide. M up
//              to 65535 * BM.
// Source       CUDA C++ Programming Guide, warp matrix functions and asynchronous copies; Deep dive 02, CUDA
//              programming.

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

#include "mma.cuh"

namespace wmma = nvcuda::wmma;

constexpr int TILE = 16;
constexpr int CHUNK = 8;  // bf16 in 16 bytes
constexpr int PITCH = BK + CHUNK;
constexpr int WARPS_N = BN / WN;
constexpr int WARPS = BM / WM * WARPS_N;
constexpr int THREADS = WARPS * 32;
constexpr int ROW_STEP = THREADS / (BK / CHUNK);  // rows that all threads copy at a time
constexpr int STAGE_ELEMENTS = (BM + BN) * PITCH;

static_assert(BM % WM == 0 && BN % WN == 0 && WM % TILE == 0 && WN % TILE == 0, "tiles are divided into whole tiles");
static_assert(BK % TILE == 0, "a step is whole fragments");
static_assert(BM % ROW_STEP == 0 && BN % ROW_STEP == 0, "the copies take whole steps");
static_assert(WARPS * TILE * TILE * sizeof(float) <= 2 * STAGE_ELEMENTS * sizeof(__nv_bfloat16), "results fit in");

__global__ void __launch_bounds__(THREADS)
    bf16_gemm_wmma_cp_async(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
                            __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(128) __nv_bfloat16 stages[2][STAGE_ELEMENTS];  // each has BM rows of A, then BN rows of B

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;

    // The copy: a thread copies the same chunk of every ROW_STEP-th row. Elements outside the matrix become zero and
    // are not read; their address is that of the array, which is valid.
    const int my_row = tid / (BK / CHUNK), my_k = tid % (BK / CHUNK) * CHUNK;
    const __nv_bfloat16* a = A + static_cast<size_t>(block_row + my_row) * K + my_k;
    const __nv_bfloat16* b = B + static_cast<size_t>(block_col + my_row) * K + my_k;
    const int a_rows = M - block_row - my_row, b_rows = N - block_col - my_row;
    const auto fetch = [&](int k0, __nv_bfloat16* stage) {
        const bool k_exists = k0 + my_k < K;
#pragma unroll
        for (int i = 0; i < BM; i += ROW_STEP) {
            const bool exists = k_exists && i < a_rows;
            mma::copy_async(stage + (my_row + i) * PITCH + my_k, exists ? a + static_cast<size_t>(i) * K + k0 : A,
                            exists ? 16 : 0);
        }
#pragma unroll
        for (int i = 0; i < BN; i += ROW_STEP) {
            const bool exists = k_exists && i < b_rows;
            mma::copy_async(stage + (BM + my_row + i) * PITCH + my_k,
                            exists ? b + static_cast<size_t>(i) * K + k0 : B, exists ? 16 : 0);
        }
        mma::commit_copies();
    };

    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum[WM / TILE][WN / TILE];
#pragma unroll
    for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    fetch(0, stages[0]);
    for (int k0 = 0, step = 0; k0 < K; k0 += BK, ++step) {
        // After the barrier the tiles of this step are visible to all threads, and those of the last step, which are
        // filled next, are no longer read.
        mma::wait_copies<0>();
        __syncthreads();
        if (k0 + BK < K) fetch(k0 + BK, stages[(step + 1) % 2]);

        const __nv_bfloat16* a_tile = stages[step % 2] + warp_row * PITCH;
        const __nv_bfloat16* b_tile = stages[step % 2] + (BM + warp_col) * PITCH;
#pragma unroll
        for (int k = 0; k < BK; k += TILE) {
            wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __nv_bfloat16, wmma::row_major> a_part[WM / TILE];
            wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __nv_bfloat16, wmma::col_major> b_part[WN / TILE];
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i) wmma::load_matrix_sync(a_part[i], a_tile + i * TILE * PITCH + k, PITCH);
#pragma unroll
            for (int j = 0; j < WN / TILE; ++j) wmma::load_matrix_sync(b_part[j], b_tile + j * TILE * PITCH + k, PITCH);
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
                for (int j = 0; j < WN / TILE; ++j) wmma::mma_sync(sum[i][j], a_part[i], b_part[j], sum[i][j]);
        }
    }

    // The mapping of elements to lanes of a fragment is unspecified, so results pass through shared memory.
    __syncthreads();  // no thread reads a tile any more
    float* results = reinterpret_cast<float*>(stages) + warp * TILE * TILE;
#pragma unroll
    for (int i = 0; i < WM / TILE; ++i) {
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j) {
            wmma::store_matrix_sync(results, sum[i][j], TILE, wmma::mem_row_major);
            __syncwarp();
            for (int e = lane; e < TILE * TILE; e += 32) {
                const int row = block_row + warp_row + i * TILE + e / TILE;
                const int col = block_col + warp_col + j * TILE + e % TILE;
                if (row < M && col < N) C[static_cast<size_t>(row) * N + col] = __float2bfloat16(results[e]);
            }
            __syncwarp();  // before the next fragment overwrites it
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    bf16_gemm_wmma_cp_async<<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K);
    return cudaGetLastError();
}
