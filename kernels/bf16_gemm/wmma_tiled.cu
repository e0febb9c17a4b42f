// wmma_tiled: tiles of A and B in shared memory, and several fragments per warp.
//
// Idea         A block of BM x BN results loads BM + BN rows of BK terms, 16 bytes per load, and its warps read their
//              fragments from there. A warp holds WM x WN results: (WM + WN) / 16 loaded fragments feed WM * WN / 256
//              products, where wmma_naive loads two fragments per product.
// Expected     Several times wmma_naive; no figure is published for the H200. The warps wait for each other at two
//              barriers per step, and for global memory in between.
// Cost         WM * WN / 32 accumulators per thread. Rows are padded by 16 bytes, so that the eight rows of a fragment
//              lie in different banks.
// Constraints  Any M, N, K >= 1, any alignment. 16-byte loads require rows aligned to 16 bytes: K a multiple of 8,
//              aligned arrays. The launcher checks this and otherwise uses the instantiation that loads element by
//              element. M up to 65535 * BM.
// Source       CUDA C++ Programming Guide, warp matrix functions and shared memory.

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

#include "alignment.cuh"

namespace wmma = nvcuda::wmma;

constexpr int TILE = 16;
constexpr int CHUNK = 8;  // bf16 in 16 bytes
constexpr int PITCH = BK + CHUNK;
constexpr int WARPS_N = BN / WN;
constexpr int WARPS = BM / WM * WARPS_N;
constexpr int THREADS = WARPS * 32;
constexpr int A_CHUNKS = BM * BK / CHUNK / THREADS;  // that a thread copies per step
constexpr int B_CHUNKS = BN * BK / CHUNK / THREADS;

static_assert(BM % WM == 0 && BN % WN == 0 && WM % TILE == 0 && WN % TILE == 0, "tiles are divided into whole tiles");
static_assert(BK % TILE == 0, "a step is whole fragments");
static_assert(THREADS <= 1024, "a block holds at most 1024 threads");
static_assert(A_CHUNKS * CHUNK * THREADS == BM * BK, "the copy of A takes whole steps");
static_assert(B_CHUNKS * CHUNK * THREADS == BN * BK, "the copy of B takes whole steps");

// The first `count` of eight neighbours of a row, the rest zero; WIDE: `count` is at least 8, or nothing is read.
template <bool WIDE>
__device__ __forceinline__ uint4 load_chunk(const __nv_bfloat16* __restrict__ from, int count) {
    uint4 chunk = make_uint4(0, 0, 0, 0);
    if constexpr (WIDE) {
        if (count > 0) chunk = *reinterpret_cast<const uint4*>(from);
    } else {
        uint32_t part[CHUNK / 2] = {};
        const uint16_t* bits = reinterpret_cast<const uint16_t*>(from);
#pragma unroll
        for (int i = 0; i < CHUNK; ++i)
            if (i < count) part[i / 2] |= static_cast<uint32_t>(bits[i]) << (i % 2 * 16);
        chunk = make_uint4(part[0], part[1], part[2], part[3]);
    }
    return chunk;
}

template <bool WIDE>
__global__ void __launch_bounds__(THREADS)
    bf16_gemm_wmma_tiled(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
                         __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(32) __nv_bfloat16 a_tile[BM][PITCH];
    __shared__ __align__(32) __nv_bfloat16 b_tile[BN][PITCH];
    __shared__ __align__(32) float results[WARPS][TILE * TILE];

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;

    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum[WM / TILE][WN / TILE];
#pragma unroll
    for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    for (int k0 = 0; k0 < K; k0 += BK) {
        // All loads are issued before the first store waits for one.
        uint4 a_chunk[A_CHUNKS], b_chunk[B_CHUNKS];
#pragma unroll
        for (int i = 0; i < A_CHUNKS; ++i) {
            const int chunk = tid + i * THREADS, k = k0 + chunk % (BK / CHUNK) * CHUNK;
            const int row = block_row + chunk / (BK / CHUNK);
            a_chunk[i] = load_chunk<WIDE>(A + static_cast<size_t>(row) * K + k, row < M ? K - k : 0);
        }
#pragma unroll
        for (int i = 0; i < B_CHUNKS; ++i) {
            const int chunk = tid + i * THREADS, k = k0 + chunk % (BK / CHUNK) * CHUNK;
            const int col = block_col + chunk / (BK / CHUNK);
            b_chunk[i] = load_chunk<WIDE>(B + static_cast<size_t>(col) * K + k, col < N ? K - k : 0);
        }
#pragma unroll
        for (int i = 0; i < A_CHUNKS; ++i) {
            const int chunk = tid + i * THREADS;
            *reinterpret_cast<uint4*>(&a_tile[chunk / (BK / CHUNK)][chunk % (BK / CHUNK) * CHUNK]) = a_chunk[i];
        }
#pragma unroll
        for (int i = 0; i < B_CHUNKS; ++i) {
            const int chunk = tid + i * THREADS;
            *reinterpret_cast<uint4*>(&b_tile[chunk / (BK / CHUNK)][chunk % (BK / CHUNK) * CHUNK]) = b_chunk[i];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k += TILE) {
            wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __nv_bfloat16, wmma::row_major> a_part[WM / TILE];
            wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __nv_bfloat16, wmma::col_major> b_part[WN / TILE];
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i)
                wmma::load_matrix_sync(a_part[i], &a_tile[warp_row + i * TILE][k], PITCH);
#pragma unroll
            for (int j = 0; j < WN / TILE; ++j)
                wmma::load_matrix_sync(b_part[j], &b_tile[warp_col + j * TILE][k], PITCH);
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
                for (int j = 0; j < WN / TILE; ++j) wmma::mma_sync(sum[i][j], a_part[i], b_part[j], sum[i][j]);
        }
        __syncthreads();
    }

    // The mapping of elements to lanes of a fragment is unspecified, so results pass through shared memory.
#pragma unroll
    for (int i = 0; i < WM / TILE; ++i) {
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j) {
            wmma::store_matrix_sync(results[warp], sum[i][j], TILE, wmma::mem_row_major);
            __syncwarp();
            for (int e = lane; e < TILE * TILE; e += 32) {
                const int row = block_row + warp_row + i * TILE + e / TILE;
                const int col = block_col + warp_col + j * TILE + e % TILE;
                if (row < M && col < N) C[static_cast<size_t>(row) * N + col] = __float2bfloat16(results[warp][e]);
            }
            __syncwarp();  // before the next fragment overwrites it
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    if (K % CHUNK == 0 && on_16_bytes(A) && on_16_bytes(B))
        bf16_gemm_wmma_tiled<true><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K);
    else
        bf16_gemm_wmma_tiled<false><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K);
    return cudaGetLastError();
}
