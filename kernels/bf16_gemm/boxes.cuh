// What wgmma_tma_store and wgmma_stream_k share: the shape of their blocks, the preparation of a launch, the order of
// tiles, and the stores of results: 64 columns of a consumer's rows at a time, as a box in shared memory that TMA
// stores while the next one is filled.
#pragma once

#include <cstdint>

#include "cluster.cuh"
#include "tiles.cuh"

namespace {

constexpr int CONSUMERS = 2, BM = CONSUMERS * ROWS;
constexpr int CONSUMER_THREADS = CONSUMERS * 128, THREADS = 128 + CONSUMER_THREADS;

using TileRing = Ring<CONSUMERS, BN, STAGES>;
using Neighbours = Cluster<DOWN, ACROSS>;

constexpr int BOX = tma::BOX_COLUMNS, BOX_BYTES = ROWS * BOX * 2;  // results that a consumer stores at a time

// With room for alignment.
constexpr int SHARED_BYTES = TileRing::BYTES + CONSUMERS * BOXES * BOX_BYTES + tma::ATOM_BYTES;

static_assert(BN / BOX % BOXES == 0, "every tile begins with the first box");

// The preparation of a launch. The tiles of a cluster are DOWN x ACROSS neighbours and are counted as one here; those
// outside the matrix are computed but not stored.
struct Tiling {
    tma::Map a, b, c;
    int rows, columns;  // of tiles of clusters
    int clusters;       // that the device holds at once

    template <typename Kernel>
    cudaError_t prepare(Kernel* kernel, const __nv_bfloat16* A, const __nv_bfloat16* B, const __nv_bfloat16* C, int M,
                        int N, int K) {
        rows = (M - 1) / (BM * DOWN) + 1, columns = (N - 1) / (BN * ACROSS) + 1;
        cudaError_t error = a.describe(A, M, K, BM / ACROSS);
        if (error == cudaSuccess) error = b.describe(B, N, K, BN / DOWN);
        if (error == cudaSuccess) error = c.describe(C, M, N, ROWS);
        if (error == cudaSuccess)
            error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
        if (error == cudaSuccess)
            error = resident_clusters(kernel, Neighbours::BLOCKS, THREADS, SHARED_BYTES, &clusters);
        return error;
    }
};

// Writes columns 64 * part to 64 * part + 63 of a warpgroup's results to `box`, as bf16. The 16-byte chunk c of a row
// lies at place c ^ (row % 8), so that the eight rows of 16 bytes that a warp writes at a time lie in different banks.
template <int Count>
__device__ __forceinline__ void fill_box(uint8_t* box, const float (&sum)[Count], int part) {
    using wgmma::pack;
    const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int c = 0; c < BOX / 8; c += 2) {
        const float* s = sum + (part * (BOX / 8) + c) * 4;  // of two chunks: 8 columns have 4 sums
        if constexpr (STMATRIX) {
            // Matrices: chunk c of rows 0-7 and of rows 8-15, then chunk c + 1 of both; lane l addresses matrix l / 8.
            const int row = warp * 16 + lane / 8 % 2 * 8 + lane % 8, chunk = c + lane / 16;
            stmatrix(box + row * 128 + (chunk ^ lane % 8) * 16, pack(s[0], s[1]), pack(s[2], s[3]), pack(s[4], s[5]),
                     pack(s[6], s[7]));
        } else {
            const int row = warp * 16 + lane / 4;  // row % 8 is lane / 4, also for row + 8
            uint8_t* first = box + row * 128 + (c ^ lane / 4) * 16 + lane % 4 * 4;
            uint8_t* second = box + row * 128 + ((c + 1) ^ lane / 4) * 16 + lane % 4 * 4;
            *reinterpret_cast<uint32_t*>(first) = pack(s[0], s[1]);
            *reinterpret_cast<uint32_t*>(first + 8 * 128) = pack(s[2], s[3]);
            *reinterpret_cast<uint32_t*>(second) = pack(s[4], s[5]);
            *reinterpret_cast<uint32_t*>(second + 8 * 128) = pack(s[6], s[7]);
        }
    }
}

// Stores the results of a warpgroup, 64 rows starting at (row, column).
template <int Count>
__device__ __forceinline__ void store(const CUtensorMap& c_map, uint8_t* boxes, const float (&sum)[Count], int consumer,
                                      int row, int column) {
    const bool speaks = threadIdx.x % 128 == 0;
#pragma unroll
    for (int part = 0; part < BN / BOX; ++part) {
        uint8_t* box = boxes + (consumer * BOXES + part % BOXES) * BOX_BYTES;
        if (speaks) tma::wait_stores_read<BOXES - 1>();
        named_sync(1 + consumer, 128);  // the box may be written
        fill_box(box, sum, part);
        tma::publish_writes();
        named_sync(1 + consumer, 128);  // the box is written
        if (speaks) tma::store_streaming(c_map, row, column + part * BOX, box);
    }
}

__device__ __forceinline__ tiles::Tile tile_at(int index, int rows, int columns) {
    return HILBERT ? tiles::along_hilbert(index, rows, columns) : tiles::in_groups(index, rows, columns, GROUP);
}

}  // namespace
