// wgmma_three_consumers: a larger tile than a block with a producer can hold.
//
// Idea         Shared memory moves 128 bytes per cycle, and tiles of 128 x 256 need all of them when the tensor cores
//              are busy: a product of 64 x 256 reads 10 KiB in 128 cycles, 80 bytes per cycle, and TMA writes 48 KiB
//              per step of 1024 cycles, 48 bytes per cycle. Tiles of 192 x 256 write 56 KiB in 1536 cycles, 117 bytes
//              per cycle with the reads, and need a fifth fewer bytes from L2.
//              Their sums leave no registers for a producer: with four warpgroups a thread could have 128 registers,
//              with three and one warp 152, and this product needs 154. (setmaxnreg does not help: ptxas rejects a
//              product that does not fit the registers of the launch, C7602.) So there are three consumers and no
//              producer. One thread of the third consumer loads, one step after it has read what the load replaces: by
//              then the others have read it too, or will soon.
//              As 192 divides few sizes, a block takes a strip of 512 rows at a time, in tiles of 192, 192 and 128
//              rows; in the last one the third consumer only loads. With TALL = 2048, a strip has 2048 rows: ten tiles
//              of 192, then one of 128. Where such strips leave too many blocks without work, they are a quarter as
//              long, down to 128 rows.
// Expected     No figure is published for this variant, which is our own. If shared memory is what limits
//              wgmma_stmatrix, 3 to 6 % faster from 4096 on, and no gain below.
// Cost         No room for boxes: results are stored from registers, after the threads of a quad have exchanged their
//              parts of 32 columns. Work is divided into larger pieces.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M.
// Source       PTX ISA; otherwise our own.

// Why it cannot deadlock: see cluster.cuh, with a loader in place of the producer. It waits for the readers of a step
// only after its own warpgroup has read that step and the next one. What the other consumers, in this block and in the
// cluster, need in order to read a step was loaded earlier, by loaders that waited only for previous steps.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "cluster.cuh"
#include "tiles.cuh"

constexpr int CONSUMERS = 3, BM = CONSUMERS * ROWS;
constexpr int THREADS = CONSUMERS * 128, LOADER = 2 * 128;  // the first thread of the third consumer
constexpr int LOW = 128;  // rows of the last tile of a strip, and of the shortest strip

using TileRing = Ring<CONSUMERS, BN, STAGES>;
using Neighbours = Cluster<CLUSTER, 1>;
constexpr int SHARED_BYTES = TileRing::BYTES + tma::ATOM_BYTES;  // with room for alignment

static_assert(STAGES >= 3, "one is read, one waits for its last readers, one is loaded");
static_assert((TALL == 512 || TALL == 2048) && TALL % BM == LOW && LOW == 2 * ROWS,
              "the rest of a strip, and of a quarter of it, has the rows of two consumers");

// How C is divided: strips of `strip` rows and the columns of a tile; the strips of a cluster's blocks lie below one
// another.
struct Strips {
    int strip, down, across;
};

// The path of a cluster through the strips: along a Hilbert curve, and each strip from the top, BM rows at a time.
// Tiles that lie below C for every block are skipped. It lies in shared memory, so it has no constructor.
struct Walk {
    int index, row, column;  // of the cluster's strips
    int top;                 // of the tile within the strip

    __device__ __forceinline__ void start(int at, const Strips& strips) {
        index = at;
        if (!goes_on(strips)) return;
        const tiles::Tile tile = tiles::along_hilbert(at, strips.down, strips.across);
        row = tile.row, column = tile.column, top = 0;
    }
    __device__ __forceinline__ bool goes_on(const Strips& strips) const { return index < strips.down * strips.across; }
    __device__ __forceinline__ int first_row(const Strips& strips) const { return row * CLUSTER * strips.strip + top; }
    __device__ __forceinline__ int rows(const Strips& strips) const { return min(BM, strips.strip - top); }
    __device__ __forceinline__ void advance(const Strips& strips, int M) {
        top += BM;
        if (top >= strips.strip || first_row(strips) >= M) start(index + gridDim.x / CLUSTER, strips);
    }
};

// The position of the loader, STAGES steps ahead at first. Only one thread uses it, but a register for one thread is a
// register for all, so it lies in shared memory.
struct Loader {
    Walk walk;
    int k0, stage, parity;
};

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_three_consumers(const __grid_constant__ CUtensorMap a_map,
                                    const __grid_constant__ CUtensorMap low_a_map,
                                    const __grid_constant__ CUtensorMap b_map, __nv_bfloat16* __restrict__ C, int M,
                                    int N, int K, const __grid_constant__ Strips strips) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    __shared__ Loader loader;
    TileRing ring(tma::align(shared), barriers);  // at the same address in every block
    const Neighbours neighbours(cluster_rank());
    const int cluster = blockIdx.x / CLUSTER;
    const bool loads = threadIdx.x == LOADER;
    if (loads) {
        tma::prefetch(a_map), tma::prefetch(low_a_map), tma::prefetch(b_map);
        ring.init(Neighbours::PEERS * CONSUMERS * 4);
        loader.walk.start(cluster, strips);
        loader.k0 = loader.stage = loader.parity = 0;
    }
    cluster_meet();

    // Loads one more step, if there is one, once its stage has been given back.
    const auto load_next = [&] {
        // Keeps the reads of `loader` in the branch of the calling thread: the compiler would let all threads read it.
        asm volatile("" ::: "memory");
        if (!loader.walk.goes_on(strips)) return;
        TileRing ahead = ring;
        ahead.turn.stage = loader.stage, ahead.turn.parity = loader.parity;
        const int row = loader.walk.first_row(strips) + neighbours.row * strips.strip, rows = loader.walk.rows(strips);
        ahead.claim(TileRing::STAGE_BYTES - (BM - rows) * BK * 2);
        tma::load(ahead.a(), rows == BM ? a_map : low_a_map, row, loader.k0, ahead.full());
        neighbours.load_b(ahead, b_map, loader.walk.column * BN, loader.k0);
        ahead.turn.advance();
        loader.stage = ahead.turn.stage, loader.parity = ahead.turn.parity;
        loader.k0 += BK;
        if (loader.k0 < K) return;
        loader.k0 = 0;
        loader.walk.advance(strips, M);
    };
    if (loads)
        for (int s = 0; s < STAGES; ++s) load_next();

    const int consumer = threadIdx.x / 128;
    const GiveBack to_peers = neighbours.give_back(barriers.empty);
    bool is_first = true;
    const auto give_back = [&](int stage) {
        to_peers(stage);
        if (loads && !is_first) load_next();  // the stage given back before this one
        is_first = false;
    };
    Walk walk;
    for (walk.start(cluster, strips); walk.goes_on(strips); walk.advance(strips, M)) {
        if (consumer * ROWS >= walk.rows(strips)) {
            ring.skip(K, give_back);
            continue;
        }
        float sum[BN / 2];
        ring.multiply<1>(sum, consumer, K, give_back);
        const int row = walk.first_row(strips) + neighbours.row * strips.strip + consumer * ROWS;
        wgmma::store_wide(sum, C, row, walk.column * BN, M, N);
    }
    if (loads) {
        ring.turn.stage = loader.stage, ring.turn.parity = loader.parity;
        ring.drain();
    }
}

// The longest strips that keep `clusters` clusters busy in nearly all of their rounds, or else the shortest.
static Strips deal_out(int M, int N, int clusters) {
    constexpr double NEARLY_ALL = 0.9;
    for (int strip = TALL;; strip /= 4) {
        const Strips strips = {strip, (M - 1) / (strip * CLUSTER) + 1, (N - 1) / BN + 1};
        const int count = strips.down * strips.across, rounds = (count - 1) / clusters + 1;
        if (strip == LOW || count >= NEARLY_ALL * rounds * clusters) return strips;
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, low_a_map, b_map;
    int clusters = 0;
    cudaError_t error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = low_a_map.describe(A, M, K, LOW);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN / CLUSTER);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(bf16_gemm_wgmma_three_consumers, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     SHARED_BYTES);
    if (error == cudaSuccess)
        error = resident_clusters(bf16_gemm_wgmma_three_consumers, CLUSTER, THREADS, SHARED_BYTES, &clusters);
    if (error != cudaSuccess) return error;
    const Strips strips = deal_out(M, N, clusters);
    clusters = tiles::even_workers(strips.down * strips.across, clusters);
    bf16_gemm_wgmma_three_consumers<<<clusters * CLUSTER, THREADS, SHARED_BYTES, stream>>>(
        a_map.map(), low_a_map.map(), b_map.map(), C, M, N, K, strips);
    return cudaGetLastError();
}
