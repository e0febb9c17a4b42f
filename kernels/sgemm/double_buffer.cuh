// The loop of double_buffered. split_k uses it for a part of K, and the variants with TMA use it for matrices that TMA
// cannot read. See double_buffered.cu.
#pragma once

#include "tiles.cuh"
#include "warp_tile.cuh"

namespace {
namespace sgemm {

struct Place {
    int row, k;
};

// How the threads of a block copy a tile of A, transposed (two lanes read a sector, and sixteen pairs of lanes sixteen
// rows), and a tile of B, unchanged.
template <class Warp, int BlockK>
struct TileCopy {
    static constexpr int THREADS = Warp::THREADS, ROWS = Warp::BLOCK_M, COLUMNS = Warp::BLOCK_N;
    static constexpr int SECTOR = 8;                          // floats in a 32-byte sector
    static constexpr int A_PITCH = ROWS + 4;                  // puts the two halves of a sector into different banks
    static constexpr int A_STAGE = BlockK * A_PITCH, B_STAGE = BlockK * COLUMNS;
    static constexpr int A_QUADS = ROWS * BlockK / 4 / THREADS;  // float4 of A that a thread copies per step
    static constexpr int B_QUADS = BlockK * COLUMNS / 4 / THREADS;
    static constexpr int B_ROWS = THREADS / (COLUMNS / 4);  // rows of B that the block copies at once

    static_assert(BlockK % SECTOR == 0, "A is copied in whole sectors");
    static_assert(A_QUADS >= 1 && A_QUADS * 4 * THREADS == ROWS * BlockK, "the copy of A takes whole steps");
    static_assert(B_QUADS >= 1 && B_QUADS * 4 * THREADS == BlockK * COLUMNS, "the copy of B takes whole steps");
    static_assert(ROWS % (THREADS / 2) == 0 || THREADS / 2 % ROWS == 0,
                  "a step of the copy of A has whole rows or whole sectors");
    static_assert(THREADS % (COLUMNS / 4) == 0, "a step of the copy of B has whole rows");

    // Place of float4 number `quad` of the tile of A.
    __device__ static constexpr Place place_in_a(int quad) {
        return {quad / 2 % ROWS, quad / 2 / ROWS * SECTOR + quad % 2 * 4};
    }

    // Stores a float4 of A to the transposed tile; `to` is the place of the thread's first element.
    __device__ __forceinline__ static void transpose(float* to, Place step, float4 quad) {
        to += step.k * A_PITCH + step.row;
        to[0 * A_PITCH] = quad.x;
        to[1 * A_PITCH] = quad.y;
        to[2 * A_PITCH] = quad.z;
        to[3 * A_PITCH] = quad.w;
    }
};

template <class Warp, int BlockK>
struct DoubleBuffer {
    using Copy = TileCopy<Warp, BlockK>;
    static constexpr int SHARED_BYTES = 2 * (Copy::A_STAGE + Copy::B_STAGE) * 4;

    // sum += A * B for the block's tile at (block_row, block_column) and k_size products, starting at k_begin. `shared`
    // holds two stages of A, transposed, then two of B.
    template <bool WIDE>
    __device__ __forceinline__ static void multiply(float (&sum)[Warp::ROWS][Warp::COLUMNS], float* shared,
                                                    const float* __restrict__ A, const float* __restrict__ B, int M,
                                                    int N, int K, int block_row, int block_column, int k_begin,
                                                    int k_size, Warp warp) {
        // The copy: the pointers move along K.
        const int tid = threadIdx.x;
        const Place first = Copy::place_in_a(tid);
        const int b_k = tid / (Copy::COLUMNS / 4), b_column = tid % (Copy::COLUMNS / 4) * 4;
        const float* a = A + (static_cast<size_t>(block_row) + first.row) * K + k_begin + first.k;
        const float* b = B + (static_cast<size_t>(k_begin) + b_k) * N + block_column + b_column;
        const int rows_left = M - block_row - first.row, columns_left = N - block_column - b_column;
        float* const a_to = shared + first.k * Copy::A_PITCH + first.row;
        float* const b_to = shared + 2 * Copy::A_STAGE + b_k * Copy::COLUMNS + b_column;
        const float* const a_from = shared + warp.row;
        const float* const b_from = shared + 2 * Copy::A_STAGE + warp.column;

        float4 a_quad[Copy::A_QUADS], b_quad[Copy::B_QUADS];
        const auto load_tiles = [&](int k_left) {
#pragma unroll
            for (int i = 0; i < Copy::A_QUADS; ++i) {
                const Place step = Copy::place_in_a(i * Copy::THREADS);
                const int count = step.row < rows_left ? k_left - first.k - step.k : 0;
                a_quad[i] = load_quad<WIDE>(a + static_cast<size_t>(step.row) * K + step.k, count);
            }
#pragma unroll
            for (int i = 0; i < Copy::B_QUADS; ++i) {
                const int k = i * Copy::B_ROWS;
                b_quad[i] = load_quad<WIDE>(b + static_cast<size_t>(k) * N, b_k + k < k_left ? columns_left : 0);
            }
            a += BlockK;
            b += static_cast<size_t>(BlockK) * N;
        };
        const auto store_tiles = [&](int stage) {
#pragma unroll
            for (int i = 0; i < Copy::A_QUADS; ++i)
                Copy::transpose(a_to + stage * Copy::A_STAGE, Copy::place_in_a(i * Copy::THREADS), a_quad[i]);
#pragma unroll
            for (int i = 0; i < Copy::B_QUADS; ++i)
                *reinterpret_cast<float4*>(b_to + stage * Copy::B_STAGE + i * Copy::B_ROWS * Copy::COLUMNS) = b_quad[i];
        };
        float a_column[2][Warp::ROWS], b_row[2][Warp::COLUMNS];
        const auto load_operands = [&](int to, int stage, int k) {
            Warp::load_rows(a_column[to], a_from + stage * Copy::A_STAGE + k * Copy::A_PITCH);
            Warp::load_columns(b_row[to], b_from + stage * Copy::B_STAGE + k * Copy::COLUMNS);
        };

        load_tiles(k_size);
        store_tiles(0);
        __syncthreads();
        load_operands(0, 0, 0);

        int stage = 0;
        for (int k_left = k_size; k_left > 0; k_left -= BlockK) {
#pragma unroll
            for (int k = 0; k < BlockK; ++k) {
                if (k == BlockK - 1) {
                    // The other stage is free: its last operands were read before the barrier of the previous step.
                    store_tiles(stage ^ 1);
                    __syncthreads();
                    stage ^= 1;
                }
                load_operands((k + 1) % 2, stage, (k + 1) % BlockK);
                if (k == 0) load_tiles(k_left - BlockK);  // beyond K nothing is read: zeros
                multiply_line_by_line(sum, a_column[k % 2], b_row[k % 2]);
            }
        }
    }
};

// One block per tile of C; tiles are taken in groups of `Group` rows.
template <class Warp, int BlockK, int BlocksPerSm, int Group, bool WIDE>
__global__ void __launch_bounds__(Warp::THREADS, BlocksPerSm)
    double_buffered(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                    int K, float alpha, float beta) {
    extern __shared__ __align__(16) float shared[];

    const tiles::Tile tile =
        tiles::in_groups(blockIdx.x, (M - 1) / Warp::BLOCK_M + 1, (N - 1) / Warp::BLOCK_N + 1, Group);
    const int block_row = tile.row * Warp::BLOCK_M, block_column = tile.column * Warp::BLOCK_N;
    const Warp warp(threadIdx.x);
    float sum[Warp::ROWS][Warp::COLUMNS] = {};
    DoubleBuffer<Warp, BlockK>::template multiply<WIDE>(sum, shared, A, B, M, N, K, block_row, block_column, 0, K,
                                                        warp);
    warp.template finish<WIDE>(C, M, N, block_row, block_column, sum, alpha, beta);
}

template <class Warp, int BlockK, int BlocksPerSm, int Group, bool WIDE>
cudaError_t start_double_buffered(const float* A, const float* B, float* C, int M, int N, int K, float alpha,
                                  float beta, cudaStream_t stream) {
    constexpr int SHARED_BYTES = DoubleBuffer<Warp, BlockK>::SHARED_BYTES;
    const cudaError_t error = cudaFuncSetAttribute(double_buffered<Warp, BlockK, BlocksPerSm, Group, WIDE>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const int tiles = ((N - 1) / Warp::BLOCK_N + 1) * ((M - 1) / Warp::BLOCK_M + 1);
    double_buffered<Warp, BlockK, BlocksPerSm, Group, WIDE>
        <<<tiles, Warp::THREADS, SHARED_BYTES, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}

// For any matrices, including those that TMA cannot read.
inline cudaError_t start_unaligned(const float* A, const float* B, float* C, int M, int N, int K, float alpha,
                                   float beta, cudaStream_t stream) {
    return start_double_buffered<WarpTile<128, 128, 64, 64, 4>, 16, 2, 1, false>(A, B, C, M, N, K, alpha, beta, stream);
}

}  // namespace sgemm
}  // namespace
