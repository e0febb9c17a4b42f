// What wgmma_tma_store and wgmma_stream_k share: the shape of their blocks, what a launch of them is made of, the order
// of tiles, and how results leave: 64 columns of a consumer's rows at a time, as a box in shared memory that TMA stores
// while the next one is filled.
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

constexpr int SHARED_BYTES = TileRing::BYTES + CONSUMERS * BOXES * BOX_BYTES + tma::ATOM_BYTES;  // with room to align

static_assert(BN / BOX % BOXES == 0, "every tile begins with the first box");

// What a launch is made of. The tiles of a cluster are DOWN x ACROSS neighbours, here counted as one; those outside the
// matrix are computed and not stored.
struct Tiling {
    tma::Map a, b, c;
    int rows, columns;  // of clusters' tiles
    int clusters;       // that the device holds at a time

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

// Columns 64 * part .. 64 * part + 63 of a warpgroup's results as bf16 into `box`. The 16-byte chunk c of a row lies at
// place c ^ (row % 8), so that what a warp writes at a time lies in different banks, eight rows by 16 bytes.
template <int Count>
__device__ __forceinline__ void fill_box(uint8_t* box, const float (&sum)[Count], int part) {
    using wgmma::pack;
    const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int c = 0; c < BOX / 8; c += 2) {
        const float* s = sum + (part * (BOX / 8) + c) * 4;  // of two chunks: 8 columns are 4 sums
        if constexpr (STMATRIX) {
            // Matrices: chunk c of rows 0-7, of rows 8-15, then chunk c + 1 of both; matrix l / 8 is lane l's.
            const int row = warp * 16 + lane / 8 % 2 * 8 + lane % 8, chunk = c + lane / 16;
            stmatrix(box + row * 128 + (chunk ^ lane % 8) * 16, pack(s[0], s[1]), pack(s[2], s[3]), pack(s[4], s[5]),
                     pack(s[6], s[7]));
        } else {
            const int row = warp * 16 + lane / 4;  // row % 8 is lane / 4, of row + 8 too
            uint8_t* first = box + row * 128 + (c ^ lane / 4) * 16 + lane % 4 * 4;
            uint8_t* second = box + row * 128 + ((c + 1) ^ lane / 4) * 16 + lane % 4 * 4;
            *reinterpret_cast<uint32_t*>(first) = pack(s[0], s[1]);
            *reinterpret_cast<uint32_t*>(first + 8 * 128) = pack(s[2], s[3]);
            *reinterpret_cast<uint32_t*>(second) = pack(s[4], s[5]);
            *reinterpret_cast<uint32_t*>(second + 8 * 128) = pack(s[6], s[7]);
        }
    }
}

// The results of a warpgroup, 64 rows from (row, column) on.
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
