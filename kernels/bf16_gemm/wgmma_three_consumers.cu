// wgmma_three_consumers: a larger tile than a block with a producer can hold.
//
// Idea         Shared memory moves 128 bytes a cycle, and 128 x 256 tiles need all of them when the tensor cores are
//              busy: each of 8 products a step reads 10 KiB in 128 cycles, 80 a cycle, and TMA writes 48 KiB in 1024
//              cycles, 48 a cycle. 192 x 256 results write 56 KiB in 1536 cycles: 117 a cycle, and a fifth fewer bytes from
//              L2. Their 384 sums of 128 threads leave no registers for a producer warpgroup: with 512 threads nvcc
//              grants 128 each, with 416 there are 152, and this wgmma needs 154. So there are three consumers and
//              nobody else, and one thread of the first loads, a step after it has read what it replaces: by then the
//              others have read it too.
// Expected     Our own, not published. 42 rounds of 192 x 256 at 16384 are as much work as 63 of 128 x 256, at 8192 3 %
//              more than 16 of them, at 4096 12 % more: better than wgmma_stmatrix only at 16384, perhaps at 8192, if
//              shared memory is what limits it.
// Cost         No room for boxes: results leave from registers, 16 bytes of a row at a time. Tiles are coarser.
// Constraints  K and N multiples of 8 (TMA's rows start on 16 bytes), arrays on 16 bytes; any M.
// Source       PTX ISA; otherwise our own.
//
// Why it cannot deadlock: see cluster.cuh, with a loader in the place of the producer. It waits for the readers of a step
// only after its own warpgroup has read that step and the next one. What the others, here and in the cluster, need to
// read a step was loaded before: by loaders that waited for earlier steps only.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "cluster.cuh"
#include "tiles.cuh"

constexpr int CONSUMERS = 3, BM = CONSUMERS * ROWS;
constexpr int THREADS = CONSUMERS * 128;

using TileRing = Ring<CONSUMERS, BN, STAGES>;
using Neighbours = Cluster<CLUSTER, 1>;
constexpr int SHARED_BYTES = TileRing::BYTES + tma::ATOM_BYTES;  // with room to align

static_assert(STAGES >= 3, "one is read, one waits for its last readers, one is on its way");

// Tiles as blocks of a cluster take them: CLUSTER tiles below one another; one below the last row is not stored.
struct Walk {
    int index, rows, columns;

    __device__ __forceinline__ bool goes_on() const { return index < rows * columns; }
    __device__ __forceinline__ tiles::Tile tile() const { return tiles::along_hilbert(index, rows, columns); }
    __device__ __forceinline__ void advance() { index += gridDim.x / CLUSTER; }
};

// The loader's place in the same walk, STAGES steps ahead at first.
struct Loader {
    TileRing ring;
    Walk walk;
    tiles::Tile tile;
    int k0;

    __device__ Loader(const TileRing& start, const Walk& first)
        : ring(start), walk(first), tile(first.tile()), k0(0) {}

    // Loads one more step, where there is one, once its stage has been given back.
    __device__ __forceinline__ void advance(const Neighbours& neighbours, const CUtensorMap& a_map,
                                            const CUtensorMap& b_map, int K) {
        if (!walk.goes_on()) return;
        ring.claim();
        neighbours.load(ring, a_map, b_map, (tile.row * CLUSTER + neighbours.row) * BM, tile.column * BN, k0);
        ring.turn.advance();
        k0 += BK;
        if (k0 < K) return;
        k0 = 0;
        walk.advance();
        tile = walk.tile();
    }
};

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_three_consumers(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                                    __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    TileRing ring(tma::align(shared), barriers);  // at the same place in every block
    if (threadIdx.x == 0) {
        tma::prefetch(a_map), tma::prefetch(b_map);
        ring.init(Neighbours::PEERS * CONSUMERS * 4);
    }
    cluster_meet();

    const Neighbours neighbours(cluster_rank());
    Walk walk = {static_cast<int>(blockIdx.x) / CLUSTER, (M - 1) / (BM * CLUSTER) + 1, (N - 1) / BN + 1};
    Loader loader(ring, walk);
    const bool loads = threadIdx.x == 0;
    if (loads)
        for (int s = 0; s < STAGES; ++s) loader.advance(neighbours, a_map, b_map, K);

    const int consumer = threadIdx.x / 128, lane = threadIdx.x % 32;
    const bool speaks = lane < Neighbours::PEERS;  // a lane for each block
    const uint32_t peer_empty = mbarrier::address_in(barriers.empty, speaks ? neighbours.peer(lane) : 0);
    bool is_first = true;
    const auto give_back = [&](int stage) {
        if (speaks) mbarrier::signal(peer_empty + stage * sizeof(uint64_t));
        if (loads && !is_first) loader.advance(neighbours, a_map, b_map, K);  // the stage given back before this one
        is_first = false;
    };
    for (; walk.goes_on(); walk.advance()) {
        const tiles::Tile tile = walk.tile();
        float sum[BN / 2];
        ring.multiply<1>(sum, consumer, K, give_back);
        const int row = (tile.row * CLUSTER + neighbours.row) * BM + consumer * ROWS;
        wgmma::store<true>(sum, C, row, tile.column * BN, M, N);
    }
    if (loads) loader.ring.drain();
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map;
    int clusters = 0;
    cudaError_t error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN / CLUSTER);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(bf16_gemm_wgmma_three_consumers, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     SHARED_BYTES);
    if (error == cudaSuccess)
        error = resident_clusters(bf16_gemm_wgmma_three_consumers, CLUSTER, THREADS, SHARED_BYTES, &clusters);
    if (error != cudaSuccess) return error;
    const int tile_count = ((M - 1) / (BM * CLUSTER) + 1) * ((N - 1) / BN + 1);
    clusters = tiles::even_workers(tile_count, clusters);
    bf16_gemm_wgmma_three_consumers<<<clusters * CLUSTER, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C,
                                                                                           M, N, K);
    return cudaGetLastError();
}
