// stores: each block takes tile after tile: compute it, put it into shared memory, store it from there by a bulk
// copy, and go on when at most PENDING of its stores are under way.
//
// Idea         A bulk copy runs in the background. A block that waits for each one pays for computing and for the way
//              to L2 and back, one that goes on for computing alone. All else is the same: four buffers, the same
//              copies and barriers, one block per SM, whose warps all wait. Tiles of 1 KiB leave device memory half
//              idle, and are loaded eight tiles ahead, so that no load is waited for; by bulk copies as well, since
//              waiting for stores must not wait for other kinds of copies.
// Expected     From spin + store to the spin. SPIN multiply-adds, two barriers and the copies take 0.28 to 0.42 us,
//              a store of 1 KiB 0.2 to 0.45 us: between a load from L2 and a write with a fence.
// Cost         Three more buffers.
// Constraints  n a multiple of 256.
// Source       PTX ISA, cp.async.bulk.

#include "bulk.cuh"
#include "planted.cuh"

constexpr int WORKERS = 64, BUFFERS = 4, STAGES = 8;  // threads of a block, tiles to be stored, and loaded ones
constexpr int BYTES = WORKERS * sizeof(int4);

static_assert(PENDING < BUFFERS, "the next buffer is free");

__device__ __forceinline__ void store(int4* to, const int4* from) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(shared_address(from)), "r"(BYTES)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

template <int MOST>
__device__ __forceinline__ void wait_for_stores() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(MOST) : "memory");
}

__global__ void __launch_bounds__(WORKERS)
    stores(const int4* __restrict__ x, int4* __restrict__ y, int count, int zero) {
    __shared__ __align__(128) int4 stages[STAGES][WORKERS], buffers[BUFFERS][WORKERS];
    __shared__ uint64_t full[STAGES];
    const int t = threadIdx.x, step = gridDim.x;
    const auto load = [&](int stage, int tile) {
        if (tile >= count) return;
        mbarrier::expect(&full[stage], BYTES);
        bulk::load(stages[stage], x + tile * WORKERS, BYTES, &full[stage]);
    };
    if (t == 0) {
        for (int s = 0; s < STAGES; ++s) mbarrier::init(&full[s], 1);
        mbarrier::publish_inits();
        for (int s = 0; s < STAGES; ++s) load(s, blockIdx.x + s * step);
    }
    __syncthreads();
    int use = 0;
    mbarrier::Turn<STAGES> turn;
#pragma unroll 1
    for (int tile = blockIdx.x; tile < count; tile += step, ++use, turn.advance()) {
        mbarrier::wait(&full[turn.stage], turn.parity);
        int4 v = stages[turn.stage][t];
        v.x = spin<SPIN>(v.x, zero);
        int4* buffer = buffers[use % BUFFERS];
        buffer[t] = v;
        bulk::publish_writes();
        __syncthreads();
        if (t == 0) {
            load(turn.stage, tile + STAGES * step);
            store(y + tile * WORKERS, buffer);
            wait_for_stores<PENDING>();
        }
        __syncthreads();
    }
    if (t == 0) wait_for_stores<0>();
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    int sms = 0;
    const cudaError_t error = sms_of_gpu(&sms);
    if (error != cudaSuccess) return error;
    stores<<<sms, WORKERS, 0, stream>>>(reinterpret_cast<const int4*>(x), reinterpret_cast<int4*>(y), n / 4 / WORKERS,
                                        zero);
    return cudaGetLastError();
}
