// Tiles of A and B that TMA (sm_90) loads into a ring of stages, and the way of A from there to the operands. See
// tma_pipelined.cu.
#pragma once

#include "mbarrier.cuh"
#include "tma.cuh"
#include "warp_tile.cuh"

namespace {
namespace sgemm {

// The tensor maps of both matrices.
struct TileMaps {
    CUtensorMap a, b;
};

// In shared memory: the stages of A as loaded, those of B, two transposed tiles of A, and one barrier per stage.
template <class Warp, int BlockK, int Stages>
struct TmaTiles {
    static constexpr int ROWS = Warp::BLOCK_M, COLUMNS = Warp::BLOCK_N, THREADS = Warp::THREADS;
    static constexpr int SWIZZLE = BlockK * 4;  // bytes of a row of the tile of A, whose 16-byte chunks TMA swizzles
    static constexpr int A_QUADS = ROWS * BlockK / 4 / THREADS;  // float4 of A that a thread transposes per step
    static constexpr int A_STAGE = ROWS * BlockK, B_STAGE = BlockK * COLUMNS;
    static constexpr int ALIGNMENT = 1024;  // of a tile that TMA swizzles
    static constexpr int SHARED_BYTES = ALIGNMENT + (Stages * (A_STAGE + B_STAGE) + 2 * A_STAGE) * 4 + Stages * 8;

    static_assert(BlockK == 8 || BlockK == 16 || BlockK == 32, "TMA swizzles 32, 64 or 128 bytes");
    static_assert(ROWS % 32 == 0 && ROWS <= 256 && COLUMNS % 32 == 0 && COLUMNS <= 256,
                  "TMA copies at most 256 along a side");
    static_assert(Stages >= 3, "a step waits for a load that was requested one step ago");
    static_assert(SHARED_BYTES <= 227 * 1024, "the stages must fit into an SM");
    static_assert(A_QUADS >= 1 && A_QUADS * 4 * THREADS == ROWS * BlockK, "the transposition takes whole steps");
    static_assert(ROWS % THREADS == 0 || THREADS % ROWS == 0,
                  "the transposition takes whole steps of rows or of chunks");

    float *a_stages, *b_stages, *transposed;
    uint64_t* landed;
    int row, k;                // of the thread's first float4 of A: lanes read the same chunk of neighbouring rows
    float4 quad[A_QUADS];      // between a stage and a transposed tile
    const float *a_from, *b_from;

    __device__ __forceinline__ TmaTiles(float* shared, int thread, Warp warp) {
        a_stages = shared + (ALIGNMENT - shared_address(shared) % ALIGNMENT) % ALIGNMENT / 4;
        b_stages = a_stages + Stages * A_STAGE;
        transposed = b_stages + Stages * B_STAGE;
        landed = reinterpret_cast<uint64_t*>(transposed + 2 * A_STAGE);
        row = row_of(thread), k = k_of(thread);
        a_from = transposed + warp.row, b_from = b_stages + warp.column;
    }

    __device__ static constexpr int row_of(int quad) { return quad % ROWS; }
    __device__ static constexpr int k_of(int quad) { return quad / ROWS * 4; }

    // Place of element (row, k) of a tile of A in its stage: the number of the chunk is changed by bits of the row.
    __device__ __forceinline__ static int swizzled(int row, int k) {
        const int chunk = k / 4 ^ row * SWIZZLE / 128 % (SWIZZLE / 16);
        return row * BlockK + chunk * 4 + k % 4;
    }

    // One thread, before a __syncthreads.
    __device__ __forceinline__ void init_barriers() {
#pragma unroll
        for (int stage = 0; stage < Stages; ++stage) mbarrier::init(&landed[stage], 1);
        mbarrier::publish_inits();
    }

    // One thread requests the tiles of A at (block_row, k) and of B at (k, block_column).
    __device__ __forceinline__ void request(const TileMaps& maps, int stage, int block_row, int block_column, int k) {
        mbarrier::expect(&landed[stage], (A_STAGE + B_STAGE) * 4);  // zeros outside the matrix count as well
        tma::load(a_stages + stage * A_STAGE, maps.a, block_row, k, &landed[stage]);
        tma::load(b_stages + stage * B_STAGE, maps.b, k, block_column, &landed[stage]);
    }

    // Loads this thread's part of a tile of A from its stage ...
    __device__ __forceinline__ void take(int stage) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const int down = row_of(i * THREADS), along = k_of(i * THREADS);
            quad[i] = *reinterpret_cast<const float4*>(a_stages + stage * A_STAGE + down * BlockK +
                                                       swizzled(row, k + along));
        }
    }

    // ... and stores it to a transposed tile.
    __device__ __forceinline__ void transpose(int half) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const int down = row_of(i * THREADS), along = k_of(i * THREADS);
            float* to = transposed + half * A_STAGE + (k + along) * ROWS + row + down;
            to[0 * ROWS] = quad[i].x;
            to[1 * ROWS] = quad[i].y;
            to[2 * ROWS] = quad[i].z;
            to[3 * ROWS] = quad[i].w;
        }
    }

    // The operands of one k.
    __device__ __forceinline__ void load_operands(float (&a)[Warp::ROWS], float (&b)[Warp::COLUMNS], int half,
                                                  int stage, int k) const {
        Warp::load_rows(a, a_from + half * A_STAGE + k * ROWS);
        Warp::load_columns(b, b_from + stage * B_STAGE + k * COLUMNS);
    }

    // Describes A [M, K] and B [K, N]; false if TMA cannot be used: their rows must be aligned to 16 bytes.
    static bool describe(TileMaps* maps, const float* A, const float* B, const float* C, int M, int N, int K) {
        constexpr CUtensorMapSwizzle swizzle = BlockK == 8    ? CU_TENSOR_MAP_SWIZZLE_32B
                                               : BlockK == 16 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                              : CU_TENSOR_MAP_SWIZZLE_128B;
        return rows_on_16_bytes(A, B, C, N, K) && describe_one(&maps->a, A, M, K, ROWS, BlockK, swizzle) &&
               describe_one(&maps->b, B, K, N, BlockK, COLUMNS, CU_TENSOR_MAP_SWIZZLE_NONE);
    }

   private:
    static bool describe_one(CUtensorMap* map, const float* matrix, int rows, int columns, int tile_rows,
                             int tile_columns, CUtensorMapSwizzle swizzle) {
        tma::Encode encode = nullptr;
        if (tma::find_encoder(&encode) != cudaSuccess) {
            cudaGetLastError();
            return false;
        }
        const cuuint64_t size[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
        const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * 4};
        const cuuint32_t tile[] = {static_cast<cuuint32_t>(tile_columns), static_cast<cuuint32_t>(tile_rows)};
        const cuuint32_t every[] = {1, 1};
        return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(matrix), size, pitch, tile, every,
                      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
    }
};

}  // namespace sgemm
}  // namespace
