// multicast: every block reads the same array from L2, tile after tile; of a cluster of four, SHARING neighbours load
// a part of each tile each, and multicast writes it to all of them.
//
// Idea         Without multicast, each tile crosses the network from L2 once per SM. If neighbours share the loads,
//              it leaves L2 once for two or four of them. Every block gets the same tiles, in four parts each, into a
//              ring of twelve stages that a warp fills and the others read a word per thread of. A stage is filled
//              again when all who share it have read it. Blocks that share begin at a tile of their own, so that L2
//              gets no requests for the same bytes at the same time, which it may answer together.
// Expected     Without sharing, L2 is the limit: 58 bytes per ns and SM, as for `passes`. With two or four who share,
//              what an SM can receive: 64 bytes per cycle, 127 per ns, of which kernels reach 70 to 90 %. The ring
//              does not limit that: 192 KiB, of which each stage comes round in about 1 us, are 197 bytes per ns.
// Cost         Neighbours wait for one another.
// Constraints  n a multiple of 4096; clusters of four.
// Source       PTX ISA, cp.async.bulk.

#include "bulk.cuh"
#include "planted.cuh"

constexpr int BLOCKS = 128, CLUSTER = 4, STAGES = 12, WARPS = THREADS / LANES;  // of which the last one loads
constexpr int TILE = 4096, PART = TILE / CLUSTER;  // words of a tile, and of a copy
constexpr int READERS = WARPS - 1;

struct Ring {
    int stages[STAGES][TILE];
    uint64_t full[STAGES], empty[STAGES];
};

// To the same place in each block of `mask`, whose barriers must expect the bytes.
__device__ __forceinline__ void load_for(unsigned mask, int* to, const int* from, uint64_t* full) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
        ::"r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(static_cast<int>(PART * sizeof(int))),
        "r"(shared_address(full)), "h"(static_cast<unsigned short>(mask))
        : "memory");
}

__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(THREADS)
    multicast(const int* __restrict__ x, int* __restrict__ y, const int* __restrict__ w, int n) {
    extern __shared__ __align__(128) unsigned char memory[];
    Ring& ring = *reinterpret_cast<Ring*>(memory);
    const int warp = threadIdx.x / LANES, lane = threadIdx.x % LANES, rank = cluster_rank();
    const int first = rank / SHARING * SHARING, tiles = n / TILE;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier::init(&ring.full[s], 1);
            mbarrier::init(&ring.empty[s], READERS * SHARING);
        }
        mbarrier::publish_inits();
    }
    cluster_sync();
    int sum = 0;
    mbarrier::Turn<STAGES> turn;
    if (warp == READERS) {
        int tile = static_cast<int>(blockIdx.x) / SHARING * tiles / (BLOCKS / SHARING);
        const unsigned mask = (1u << SHARING) - 1 << first;
        for (int t = 0; lane == 0 && t < tiles; ++t, turn.advance(), tile = tile + 1 < tiles ? tile + 1 : 0) {
            mbarrier::wait(&ring.empty[turn.stage], turn.parity ^ 1);
            mbarrier::expect(&ring.full[turn.stage], TILE * sizeof(int));
            for (int p = 0; p < CLUSTER; p += SHARING) {
                const int at = (p + rank - first) * PART;
                const int* from = w + tile * TILE + at;
                int* to = ring.stages[turn.stage] + at;
                if (SHARING == 1)
                    bulk::load(to, from, PART * sizeof(int), &ring.full[turn.stage]);
                else
                    load_for(mask, to, from, &ring.full[turn.stage]);
            }
        }
    } else {
        for (int t = 0; t < tiles; ++t, turn.advance()) {
            mbarrier::wait(&ring.full[turn.stage], turn.parity);
            sum += ring.stages[turn.stage][threadIdx.x];
            __syncwarp();
            if (lane < SHARING) mbarrier::signal(mbarrier::address_in(&ring.empty[turn.stage], first + lane));
        }
        const int share = n / gridDim.x, begin = blockIdx.x * share;
        for (int i = threadIdx.x; i < share; i += READERS * LANES) y[begin + i] = x[begin + i] + sum;
    }
    cluster_sync();  // no block ends while another may still arrive at its barriers
}

extern "C" int launch(const int* x, int* y, const int* w, void*, int n, int, int, cudaStream_t stream) {
    const int bytes = sizeof(Ring);
    const cudaError_t error = cudaFuncSetAttribute(multicast, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    multicast<<<BLOCKS, THREADS, bytes, stream>>>(x, y, w, n);
    return cudaGetLastError();
}
