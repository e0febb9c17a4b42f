// How wgmma_stream_k divides tiles among clusters: pieces first, then whole tiles, one round at a time.
//
// The pieces: the first `shared` tiles, laid end to end, are a line of shared * steps steps. It is cut into one share
// per cluster, all of the same length to within one step. A share is no shorter than a tile, so each tile is cut at
// most once, and the clusters on both sides of a cut are neighbours: the one before the cut has the first steps of the
// tile, the one after it the last steps.
//
// A cluster processes its share from the last tile to the first one, and forwards within each tile. So the piece that
// the next cluster waits for comes first and waits for nothing; the piece that waits for the previous cluster comes
// last. All clusters begin at the first step of some tile and end their share at the last step of one; in between they
// are at different steps and share less of A and B in L2 than in a round of whole tiles.
#pragma once

#include "tiles.cuh"

namespace {
namespace pieces {

// Steps [begin, end) of a tile.
struct Piece {
    int tile, begin, end;
};

// `extra` clusters have a share of `share` + 1 steps, the others of `share`. Without pieces, `shared`, `share` and
// `extra` are 0.
struct Deal {
    int tiles, steps, clusters, shared, share, extra;

    // Where the share of a cluster begins on the line and the share of the previous cluster ends.
    __host__ __device__ constexpr int begin_of(int cluster) const {
        return cluster * share + tiles::smaller(cluster, extra);
    }
    // Whether this is within a tile.
    __host__ __device__ constexpr bool is_cut(int cluster) const { return begin_of(cluster) % steps != 0; }
};

// What a cluster computes, in order.
class Walk {
   public:
    __host__ __device__ __forceinline__ Walk(const Deal& deal, int cluster)
        : deal_(deal),
          begin_(deal.begin_of(cluster)),
          left_(deal.begin_of(cluster + 1)),
          whole_(deal.shared + cluster) {}

    // The next piece; false if none is left.
    __host__ __device__ __forceinline__ bool next(Piece& piece) {
        if (left_ > begin_) {
            const int tile = (left_ - 1) / deal_.steps, first = tile * deal_.steps;
            const int begin = begin_ > first ? begin_ : first;
            piece = {tile, begin - first, left_ - first};
            left_ = begin;
            return true;
        }
        if (whole_ >= deal_.tiles) return false;
        piece = {whole_, 0, deal_.steps};
        whole_ += deal_.clusters;
        return true;
    }

   private:
    const Deal& deal_;
    int begin_, left_;  // the part of the share that is left
    int whole_;         // the next whole tile
};

// The cost of handing over the sums of a tile, 128 KiB per block in each direction, and of clusters that share rows but
// are no longer at the same step: predicted 6 steps, measured 10 on an H200 (4096 x 4096 x 4096, where 249 steps
// instead of 256 took 1 % more cycles). Cutting must gain more than this.
constexpr int HANDOVER_STEPS = 10;

// Divides `tiles` tiles of `steps` steps among at most `most` clusters. The last full round and the remainder become
// pieces if this takes fewer steps than a round for the remainder; otherwise all tiles are whole.
constexpr Deal deal_out(int tiles, int steps, int most) {
    if (tiles > most) {
        const int whole_rounds = tiles / most - 1, shared = tiles - whole_rounds * most;
        const int share = shared * steps / most, extra = shared * steps % most;
        const int rounds = (tiles - 1) / most + 1;
        if (whole_rounds * steps + share + (extra > 0) + HANDOVER_STEPS < rounds * steps)
            return {tiles, steps, most, shared, share, extra};
    }
    return {tiles, steps, tiles::even_workers(tiles, most), 0, 0, 0};
}

}  // namespace pieces
}  // namespace
