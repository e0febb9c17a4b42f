// What wgmma_tma_store and the GEMM of epilogue share beyond boxes.cuh: the producer, which loads tile after tile.
#pragma once

#include "boxes.cuh"

namespace {

// 65536 registers for 384 threads: 168 each at the start. (24 + 2 * 240) * 128 registers do not exceed this.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

// By the producer's thread: loads this block's tiles `first`, `first` + `stride`, ... of those of clusters.
__device__ __forceinline__ void load_tiles(TileRing& ring, const Neighbours& neighbours, const CUtensorMap& a_map,
                                           const CUtensorMap& b_map, int first, int stride, int tile_rows,
                                           int tile_columns, int K) {
    for (int index = first; index < tile_rows * tile_columns; index += stride) {
        const tiles::Tile tile = tile_at(index, tile_rows, tile_columns);
        const int row = (tile.row * DOWN + neighbours.row) * BM;
        const int column = (tile.column * ACROSS + neighbours.column) * BN;
        for (int k0 = 0; k0 < K; k0 += BK, ring.turn.advance()) {
            ring.claim();
            neighbours.load(ring, a_map, b_map, row, column, k0);
        }
    }
    ring.drain();
}

}  // namespace
