// What the variants from wgmma_cluster on share: Down x Across blocks of a cluster that compute neighbouring tiles and
// load for each other.
//
// Blocks side by side need the same rows of A, blocks below one another the same rows of B. Each block loads its share
// of both, and TMA multicast writes it to all blocks that need it. So the loads of a block reach its `peers`, the
// blocks in its row and its column of the cluster including itself, and only loads of its peers reach it.
//
// Why it cannot deadlock, and why phases cannot be confused: all blocks of a cluster walk through the same tiles of the
// cluster and the same steps. For use u of a stage, in the terms of mbarrier.cuh:
//   - `full` of a block takes one arrival (the claim of its own producer) and STAGE_BYTES, from its own loads and those
//     of its peers. The part of a peer may arrive before the claim: without the claim the phase stays open.
//   - A peer sends its part of use u only after phase u - 1 of its `empty`, which takes an arrival of each warp of each
//     consumer of its peers, including those of this block: they saw phase u - 1 of `full` end here. So bytes of use u
//     never fall into phase u - 1.
//   - A consumer arrives for use u after phase u of its `full`, whose bytes every peer sent after phase u - 1 of its
//     own `empty`. So no arrival for use u falls into phase u - 1 of any `empty`.
// A block does not end before the last arrivals of its peers (drain); by then the peers have its last bytes.
#pragma once

#include <cstdint>

#include "ring.cuh"

namespace {

// Called by a warp of a consumer when it has read a stage: one lane per peer arrives at the `empty` of that peer.
struct GiveBack {
    bool speaks;
    uint32_t peer_empty;  // of the first stage

    __device__ __forceinline__ void operator()(int stage) const {
        if (speaks) mbarrier::signal(peer_empty + stage * sizeof(uint64_t));
    }
};

template <int Down, int Across>
struct Cluster {
    static constexpr int BLOCKS = Down * Across, PEERS = Down + Across - 1;
    static_assert(BLOCKS >= 2 && BLOCKS <= 8, "cluster sizes that every device supports");

    int row, column;  // of this block

    __host__ __device__ explicit Cluster(int rank) : row(rank / Across), column(rank % Across) {}

    // The rank of peer number `i`: first the blocks of this row, then the others of this column.
    __host__ __device__ __forceinline__ int peer(int i) const {
        const int other = i - Across;
        return i < Across ? row * Across + i : (other + (other >= row)) * Across + column;
    }

    // By each thread of a consumer; `empty` are the barriers of its ring.
    __device__ __forceinline__ GiveBack give_back(const uint64_t* empty) const {
        const int lane = threadIdx.x % 32;
        const bool speaks = lane < PEERS;
        return {speaks, mbarrier::address_in(empty, speaks ? peer(lane) : 0)};
    }

    // One bit for the rank of each block in this row, and in this column.
    __host__ __device__ __forceinline__ int row_mask() const { return ((1 << Across) - 1) << row * Across; }
    __host__ __device__ __forceinline__ int column_mask() const {
        int mask = 0;
        for (int r = 0; r < Down; ++r) mask |= 1 << (r * Across + column);
        return mask;
    }

    // By the producer's thread, after its claim: loads this block's shares of the rows of A starting at `a_row` and of
    // the rows of B starting at `b_row`.
    template <int Consumers, int Columns, int Stages>
    __device__ __forceinline__ void load(const Ring<Consumers, Columns, Stages>& ring, const CUtensorMap& a_map,
                                         const CUtensorMap& b_map, int a_row, int b_row, int k0) const {
        constexpr int SHARE = Consumers * ROWS / Across;
        static_assert(SHARE % 8 == 0, "a share has whole atoms of the swizzle");
        load_share<Across>(ring.a() + column * SHARE * BK * 2, a_map, a_row + column * SHARE, k0, ring.full(),
                           row_mask());
        load_b(ring, b_map, b_row, k0);
    }
    template <int Consumers, int Columns, int Stages>
    __device__ __forceinline__ void load_b(const Ring<Consumers, Columns, Stages>& ring, const CUtensorMap& b_map,
                                           int b_row, int k0) const {
        constexpr int SHARE = Columns / Down;
        static_assert(SHARE % 8 == 0, "a share has whole atoms of the swizzle");
        load_share<Down>(ring.b() + row * SHARE * BK * 2, b_map, b_row + row * SHARE, k0, ring.full(), column_mask());
    }

   private:
    // Loads `first_row` and the rows below, as many as the box of the map has, for all blocks in `mask`.
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
