// How wgmma_stream_k deals out tiles among clusters: as pieces first, and then whole ones, a round at a time.
//
// The pieces: the first `shared` tiles, laid end to end, are a line of shared * steps steps, cut into one share a
// cluster, all of the same length but for one step. A share is no shorter than a tile. So each tile is cut once at
// most, and the clusters on both sides of a cut are neighbours: the one before it has the tile's first steps, the one
// after it the last.
//
// A cluster goes through its share from the last tile to the first one, and forwards in each of them. So what it leaves
// for the next cluster comes first, and needs nothing of anyone; what needs what the cluster before has left comes
// last. All clusters begin at the first step of some tile, and end their share at the last step of one; in between they
// are at different steps, and share less of A and B in L2 than in a round of whole tiles.
#pragma once

#include "tiles.cuh"

namespace {
namespace pieces {

// Steps [begin, end) of a tile.
struct Piece {
    int tile, begin, end;
};

// `extra` clusters have a share of one step more than `share`. Without pieces `shared`, `share`, `extra` are 0.
struct Deal {
    int tiles, steps, clusters, shared, share, extra;

    // Where the share of a cluster begins on the line, and that of the one before it ends.
    __host__ __device__ constexpr int begin_of(int cluster) const {
        return cluster * share + tiles::smaller(cluster, extra);
    }
    // Whether that is within a tile.
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

    // The next piece; false where none is left.
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
    int begin_, left_;  // of the share, what is still to be done
    int whole_;         // the next whole tile
};

// What leaving the sums of a tile and taking them up again costs, 128 KiB a block each way, and what is lost because
// clusters that share rows are no longer at the same step: predicted 6 steps, measured 10 on an H200 (4096 x 4096 x 4096,
// where 249 steps in place of 256 took 1 % more cycles). Less than this is not worth cutting for.
constexpr int HANDOVER_STEPS = 10;

// `tiles` tiles of `steps` steps for at most `most` clusters. The last full round and the remainder become pieces where
// that takes fewer steps than a round for the remainder; else all tiles are whole ones.
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
