// What the variants from wgmma_ptx_barriers on share: the ring of stages between a producer and its consumers, and the
// products of one tile. Loads, the order of tiles and stores differ between variants.
#pragma once

#include <cstdint>

#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

namespace {

constexpr int BK = tma::BOX_COLUMNS;  // terms per step
constexpr int ROWS = wgmma::M;        // that a consumer, one warpgroup, computes

// The value of a warp's first lane. The compiler then knows that it is the same in all lanes and keeps it in a uniform
// register.
__device__ __forceinline__ uint32_t uniform(uint32_t value) { return __shfl_sync(~0u, value, 0); }

// `Stages` stages, each with 64 rows of A per consumer, then `Columns` rows of B, synchronised as in mbarrier.cuh.
// Every thread has its own turn and walks through the same tiles and steps in the same order.
template <int Consumers, int Columns, int Stages>
struct Ring {
    static_assert(Columns == 64 || Columns == 128 || Columns == 256, "the widths of wgmma.cuh");
    static_assert(Stages >= 2, "a consumer keeps one stage in addition to the one it waits for");
    static constexpr int A_BYTES = Consumers * ROWS * BK * 2, STAGE_BYTES = A_BYTES + Columns * BK * 2;
    static constexpr int BYTES = Stages * STAGE_BYTES;

    struct Barriers {
        uint64_t full[Stages], empty[Stages];
    };

    uint8_t* stages;
    Barriers& barriers;
    mbarrier::Turn<Stages> turn;
    TIMELINE_TRACK(track);

    __device__ Ring(uint8_t* memory, Barriers& shared_barriers) : stages(memory), barriers(shared_barriers) {}

    // By one thread; a stage is given back by `readers` arrivals.
    __device__ __forceinline__ void init(int readers) {
        for (int s = 0; s < Stages; ++s) {
            mbarrier::init(&barriers.full[s], 1);
            mbarrier::init(&barriers.empty[s], readers);
        }
        mbarrier::publish_inits();
    }

    __device__ __forceinline__ uint8_t* a() const { return stages + turn.stage * STAGE_BYTES; }
    __device__ __forceinline__ uint8_t* b() const { return a() + A_BYTES; }
    __device__ __forceinline__ uint64_t* full() const { return &barriers.full[turn.stage]; }
    __device__ __forceinline__ uint64_t* empty() const { return &barriers.empty[turn.stage]; }

    // By the producer's thread, before it loads the stage: waits for its readers and sets what `full` waits for.
    __device__ __forceinline__ void claim(int bytes = STAGE_BYTES) const {
        TIMELINE(track, WAIT);
        mbarrier::wait(empty(), turn.parity ^ 1);
        TIMELINE(track, LOAD);
        mbarrier::expect(full(), bytes);
    }

    // By the producer's thread, before a block of a cluster ends: waits for all arrivals at its barriers.
    __device__ __forceinline__ void drain() {
        TIMELINE(track, WAIT);
        for (int s = 0; s < Stages; ++s, turn.advance()) mbarrier::wait(empty(), turn.parity ^ 1);
    }

    // By a consumer that has no rows in a tile: waits for its stages and gives them back.
    template <typename GiveBack>
    __device__ __forceinline__ void skip(int K, const GiveBack& give_back) {
        for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
            mbarrier::wait(full(), turn.parity);
            give_back(turn.stage);
        }
    }

    // The operands of a consumer's products in the first stage, as low words of descriptors. They are computed once per
    // tile and known to be the same in all lanes, so a product costs only one addition per operand, in uniform
    // registers.
    struct Operands {
        uint32_t a, b;
    };
    __device__ __forceinline__ Operands operands(int consumer) const {
        return {uniform(wgmma::describe_low(stages + consumer * ROWS * BK * 2)),
                uniform(wgmma::describe_low(stages + A_BYTES))};
    }

    // By a consumer: waits for a stage and issues its products, of which the first adds to `sum` if `adds`.
    __device__ __forceinline__ void start(float (&sum)[Columns / 2], Operands first, bool adds) const {
        const uint32_t a_rows = first.a + turn.stage * (STAGE_BYTES / 16);
        const uint32_t b_rows = first.b + turn.stage * (STAGE_BYTES / 16);
        TIMELINE(track, WAIT);
        mbarrier::wait(full(), turn.parity);
        TIMELINE(track, COMPUTE);
        wgmma::fence();
#pragma unroll
        for (int k = 0; k < BK / wgmma::K; ++k)
            wgmma::multiply(sum, wgmma::describe(a_rows + k * wgmma::NEXT_K),
                            wgmma::describe(b_rows + k * wgmma::NEXT_K), adds || k > 0);
        wgmma::commit();
    }

    // By a consumer: the sums of its rows of one tile over K terms. With InFlight = 1 the products of a step are issued
    // before the wait for those of the last step. Every thread calls `give_back(stage)` once per use of a stage, when
    // its warp has read it.
    template <int InFlight, typename GiveBack>
    __device__ __forceinline__ void multiply(float (&sum)[Columns / 2], int consumer, int K,
                                             const GiveBack& give_back) {
        const Operands first = operands(consumer);
        int held = 0;  // the stage whose products may still run
        for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
            start(sum, first, k0 > 0);  // the first product of a tile does not add, so sums are not set to zero
            wgmma::wait<InFlight>();
            if (!InFlight) give_back(turn.stage);
            if (InFlight && k0 > 0) give_back(held);
            held = turn.stage;
        }
        if (InFlight) {
            wgmma::wait<0>();
            give_back(held);
        }
        wgmma::pin(sum);
    }
};

}  // namespace
