// The kernel of vectorized with a layout of tiles in shared memory that bank_swizzled and bank_padded define.
#pragma once

#include "banks.cuh"
#include "results.cuh"

namespace {
namespace sgemm {

// A Layout defines the places of element (k, row) of the tile of A and (k, column) of that of B: `a_at` and `b_at`, in
// A_FLOATS and B_FLOATS floats. Four neighbours that start at a multiple of 4 stay together.
template <class Layout, int BlockM, int BlockN, int BlockK, int Rows, int Columns>
struct VectorizedTiles {
    static constexpr int THREADS = (BlockM / Rows) * (BlockN / Columns);
    static constexpr int A_QUADS = BlockM * BlockK / 4 / THREADS;  // float4 of A that a thread copies per step
    static constexpr int B_QUADS = BlockK * BlockN / 4 / THREADS;

    static_assert(BlockM % Rows == 0 && BlockN % Columns == 0, "the block is split into whole patches");
    static_assert(Rows % 4 == 0 && Columns % 4 == 0 && BlockK % 4 == 0, "tiles are moved in groups of four floats");
    static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps and at most 1024 threads");
    static_assert(A_QUADS * 4 * THREADS == BlockM * BlockK, "the copy of A takes whole steps");
    static_assert(B_QUADS * 4 * THREADS == BlockK * BlockN, "the copy of B takes whole steps");

    // The float4 number `quad` of A and of B in the copy, and the first row and column of a thread tile.
    __host__ __device__ static constexpr int a_row(int quad) { return quad / (BlockK / 4); }
    __host__ __device__ static constexpr int a_k(int quad) { return quad % (BlockK / 4) * 4; }
    __host__ __device__ static constexpr int b_k(int quad) { return quad / (BlockN / 4); }
    __host__ __device__ static constexpr int b_column(int quad) { return quad % (BlockN / 4) * 4; }
    __host__ __device__ static constexpr int patch_row(int thread) { return thread / (BlockN / Columns) * Rows; }
    __host__ __device__ static constexpr int patch_column(int thread) { return thread % (BlockN / Columns) * Columns; }

    // The worst access of any warp: stores of A (one word per lane) and of B, reads of both (four words per lane).
    static constexpr int worst_ways() {
        int worst = 0, first[32] = {};
        const auto see = [&](int ways) { worst = ways > worst ? ways : worst; };
        for (int warp = 0; warp < THREADS; warp += 32) {
            for (int i = 0; i < 4; ++i) {
                for (int lane = 0; lane < 32; ++lane)
                    first[lane] = Layout::a_at(a_k(warp + lane) + i, a_row(warp + lane));
                see(banks::ways<1>(first));
            }
            for (int lane = 0; lane < 32; ++lane) first[lane] = Layout::b_at(b_k(warp + lane), b_column(warp + lane));
            see(banks::ways<4>(first));
            for (int k = 0; k < BlockK; ++k) {
                for (int i = 0; i < Rows; i += 4) {
                    for (int lane = 0; lane < 32; ++lane) first[lane] = Layout::a_at(k, patch_row(warp + lane) + i);
                    see(banks::ways<4>(first));
                }
                for (int j = 0; j < Columns; j += 4) {
                    for (int lane = 0; lane < 32; ++lane) first[lane] = Layout::b_at(k, patch_column(warp + lane) + j);
                    see(banks::ways<4>(first));
                }
            }
        }
        return worst;
    }
};

template <bool WIDE, class Layout, int BlockM, int BlockN, int BlockK, int Rows, int Columns>
__global__ void __launch_bounds__(VectorizedTiles<Layout, BlockM, BlockN, BlockK, Rows, Columns>::THREADS)
    vectorized_with_layout(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M,
                           int N, int K, float alpha, float beta) {
    using Tiles = VectorizedTiles<Layout, BlockM, BlockN, BlockK, Rows, Columns>;
    __shared__ __align__(16) float a_tile[Layout::A_FLOATS];
    __shared__ __align__(16) float b_tile[Layout::B_FLOATS];

    const int tid = threadIdx.x;
    const int block_row = blockIdx.y * BlockM, block_column = blockIdx.x * BlockN;
    const int c_row = Tiles::patch_row(tid), c_column = Tiles::patch_column(tid);
    float sum[Rows][Columns] = {};

    for (int k0 = 0; k0 < K; k0 += BlockK) {
        // All loads are issued before the first store waits for one.
        float4 a_quad[Tiles::A_QUADS], b_quad[Tiles::B_QUADS];
#pragma unroll
        for (int i = 0; i < Tiles::A_QUADS; ++i) {
            const int quad = tid + i * Tiles::THREADS, row = block_row + Tiles::a_row(quad), k = k0 + Tiles::a_k(quad);
            a_quad[i] = load_quad<WIDE>(A + static_cast<size_t>(row) * K + k, row < M ? K - k : 0);
        }
#pragma unroll
        for (int i = 0; i < Tiles::B_QUADS; ++i) {
            const int quad = tid + i * Tiles::THREADS, k = k0 + Tiles::b_k(quad);
            const int column = block_column + Tiles::b_column(quad);
            b_quad[i] = load_quad<WIDE>(B + static_cast<size_t>(k) * N + column, k < K ? N - column : 0);
        }
#pragma unroll
        for (int i = 0; i < Tiles::A_QUADS; ++i) {
            const int quad = tid + i * Tiles::THREADS, row = Tiles::a_row(quad), k = Tiles::a_k(quad);
            a_tile[Layout::a_at(k + 0, row)] = a_quad[i].x;
            a_tile[Layout::a_at(k + 1, row)] = a_quad[i].y;
            a_tile[Layout::a_at(k + 2, row)] = a_quad[i].z;
            a_tile[Layout::a_at(k + 3, row)] = a_quad[i].w;
        }
#pragma unroll
        for (int i = 0; i < Tiles::B_QUADS; ++i) {
            const int quad = tid + i * Tiles::THREADS;
            *reinterpret_cast<float4*>(&b_tile[Layout::b_at(Tiles::b_k(quad), Tiles::b_column(quad))]) = b_quad[i];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BlockK; ++k) {
            float a_column[Rows], b_row[Columns];
#pragma unroll
            for (int i = 0; i < Rows; i += 4)
                *reinterpret_cast<float4*>(&a_column[i]) =
                    *reinterpret_cast<const float4*>(&a_tile[Layout::a_at(k, c_row + i)]);
#pragma unroll
            for (int j = 0; j < Columns; j += 4)
                *reinterpret_cast<float4*>(&b_row[j]) =
                    *reinterpret_cast<const float4*>(&b_tile[Layout::b_at(k, c_column + j)]);
#pragma unroll
            for (int i = 0; i < Rows; ++i)
#pragma unroll
                for (int j = 0; j < Columns; ++j) sum[i][j] += a_column[i] * b_row[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < Rows; ++i) {
#pragma unroll
        for (int j = 0; j < Columns; j += 4) {
            const int row = block_row + c_row + i, column = block_column + c_column + j;
            finish_quad<WIDE>(C + static_cast<size_t>(row) * N + column, row < M ? N - column : 0,
                              make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]), alpha, beta);
        }
    }
}

template <class Layout, int BlockM, int BlockN, int BlockK, int Rows, int Columns>
cudaError_t start_vectorized(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                             cudaStream_t stream) {
    using Tiles = VectorizedTiles<Layout, BlockM, BlockN, BlockK, Rows, Columns>;
    static_assert(Tiles::worst_ways() == 1, "no access of a warp has a bank conflict");
    const dim3 grid((N - 1) / BlockN + 1, (M - 1) / BlockM + 1);
    if (rows_on_16_bytes(A, B, C, N, K))
        vectorized_with_layout<true, Layout, BlockM, BlockN, BlockK, Rows, Columns>
            <<<grid, Tiles::THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    else
        vectorized_with_layout<false, Layout, BlockM, BlockN, BlockK, Rows, Columns>
            <<<grid, Tiles::THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}

}  // namespace sgemm
}  // namespace
