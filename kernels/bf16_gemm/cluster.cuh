// What the rungs from wgmma_cluster on share: Down x Across blocks of a cluster that compute neighbouring tiles, and
// load for one another.
//
// Blocks beside one another need the same rows of A, blocks below one another the same rows of B. Each block loads its
// share of both and TMA's multicast writes it into all that need it. So a block's loads reach its `peers`, those of its
// row and its column of the cluster, itself among them, and just those of its peers reach it.
//
// Why it cannot deadlock, and why no phase is mistaken: all blocks of a cluster walk the same tiles of the cluster and
// the same steps. Use u of a stage, in the terms of mbarrier.cuh:
//   - `full` of a block takes one arrival (its own producer's claim) and STAGE_BYTES, of its own loads and its peers'.
//     A peer's part may come before the claim: without that arrival the phase stays open.
//   - A peer sends its part of use u only after phase u - 1 of its `empty`, which has an arrival of each warp of each
//     consumer of its peers, also of those here: they saw phase u - 1 of `full` here end. So bytes of use u never fall
//     into phase u - 1.
//   - A consumer arrives for use u after phase u of its `full`, whose bytes every peer sent after phase u - 1 of its
//     own `empty`. So no arrival for use u falls into phase u - 1 of any `empty`.
// A block stays until its peers' last arrivals have come to it (drain); by then they have its last bytes too.
#pragma once

#include <cstdint>

#include "ring.cuh"

namespace {

// What a consumer's warp calls when it has read a stage: a lane for each peer arrives at that peer's `empty`.
struct GiveBack {
    bool speaks;
    uint32_t peer_empty;  // that of the first stage

    __device__ __forceinline__ void operator()(int stage) const {
        if (speaks) mbarrier::signal(peer_empty + stage * sizeof(uint64_t));
    }
};

template <int Down, int Across>
struct Cluster {
    static constexpr int BLOCKS = Down * Across, PEERS = Down + Across - 1;
    static_assert(BLOCKS >= 2 && BLOCKS <= 8, "what every device can place");

    int row, column;  // of this block

    __host__ __device__ explicit Cluster(int rank) : row(rank / Across), column(rank % Across) {}

    // The rank of peer number `i`: first the blocks of this row, then the others of this column.
    __host__ __device__ __forceinline__ int peer(int i) const {
        const int other = i - Across;
        return i < Across ? row * Across + i : (other + (other >= row)) * Across + column;
    }

    // By each thread of a consumer: for the ring whose barriers `empty` are.
    __device__ __forceinline__ GiveBack give_back(const uint64_t* empty) const {
        const int lane = threadIdx.x % 32;
        const bool speaks = lane < PEERS;
        return {speaks, mbarrier::address_in(empty, speaks ? peer(lane) : 0)};
    }

    // A bit for the rank of each block of this row, and of this column.
    __host__ __device__ __forceinline__ int row_mask() const { return ((1 << Across) - 1) << row * Across; }
    __host__ __device__ __forceinline__ int column_mask() const {
        int mask = 0;
        for (int r = 0; r < Down; ++r) mask |= 1 << (r * Across + column);
        return mask;
    }

    // By the producer's thread, after its claim: this block's shares of the rows of A from `a_row` and of B from
    // `b_row` on that its tile needs.
    template <int Consumers, int Columns, int Stages>
    __device__ __forceinline__ void load(const Ring<Consumers, Columns, Stages>& ring, const CUtensorMap& a_map,
                                         const CUtensorMap& b_map, int a_row, int b_row, int k0) const {
        constexpr int SHARE = Consumers * ROWS / Across;
        static_assert(SHARE % 8 == 0, "a share is whole atoms of the swizzle");
        load_share<Across>(ring.a() + column * SHARE * BK * 2, a_map, a_row + column * SHARE, k0, ring.full(),
                           row_mask());
        load_b(ring, b_map, b_row, k0);
    }
    template <int Consumers, int Columns, int Stages>
    __device__ __forceinline__ void load_b(const Ring<Consumers, Columns, Stages>& ring, const CUtensorMap& b_map,
                                           int b_row, int k0) const {
        constexpr int SHARE = Columns / Down;
        static_assert(SHARE % 8 == 0, "a share is whole atoms of the swizzle");
        load_share<Down>(ring.b() + row * SHARE * BK * 2, b_map, b_row + row * SHARE, k0, ring.full(), column_mask());
    }

   private:
    // A share of `first_row` and the rows below, as many as the map's box has, for all blocks in `mask`.
    template <int Receivers>
    __device__ __forceinline__ static void load_share(void* to, const CUtensorMap& map, int first_row, int k0,
                                                      uint64_t* full, int mask) {
        if constexpr (Receivers == 1)
            tma::load(to, map, first_row, k0, full);
        else
            tma::load_multicast(to, map, first_row, k0, full, static_cast<uint16_t>(mask));
    }
};

}  // namespace
