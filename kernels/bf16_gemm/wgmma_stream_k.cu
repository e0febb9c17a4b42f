// wgmma_stream_k: no round of tiles that leaves clusters without work.
//
// Idea         66 clusters of two blocks take tiles of 256 x 256. 8192 x 8192 are 1024 of them, 15.5 rounds that cost
//              16; 4096 x 4096 are 3.9 that cost 4. Here the last full round and the remainder are cut along K into
//              equal shares, one a cluster (pieces.cuh), and come first; whole tiles follow. A share is longer than a
//              tile, so a tile is cut in two at most. Who has its first steps leaves the sums in a workspace, in the
//              order in which threads hold them; who has the last steps takes them up as its first sums and goes on.
//              So every result is summed in the order of its parent, and is the same bit for bit. The other warps of
//              the producer's warpgroup have nothing to do: one of them, the messenger, waits until the partial sums
//              can be seen, and raises the flag, or waits for the flag of the cluster before. No consumer does.
// Expected     Of the parent's rounds, 2048 and 16128 steps at 8192 and 16384, it takes 1986 and 15888, and some for
//              handing over: 1.02 to 1.03 and 1.01 to 1.015 times its TFLOP/s a GHz. Where power holds the clock back it
//              is no faster for that: no SM rests, and clusters at different steps find less of A and B in L2.
// Cost         128 KiB a block to L2 and back: where the remainder is most of a round, a tile has few steps, or there
//              are fewer tiles than clusters, all tiles are whole ones, as in its parent.
// Constraints  K and N multiples of 8 (TMA's rows start on 16 bytes), arrays on 16 bytes; any M: TMA leaves out what
//              lies outside C. One stream at a time, which share the workspace.
// Source       M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on
//              the GPU (arxiv.org/abs/2301.03598), its two-tile hybrid; NVIDIA CUTLASS; PTX ISA.
//
// Why it cannot deadlock: see cluster.cuh for the ring. Beyond it, a cluster waits once, for the cluster before it,
// which started no later, and whose first piece is what it waits for: that waits for nobody.

#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "boxes.cuh"
#include "pieces.cuh"
#include "workspace.cuh"

constexpr int MESSENGER = 32;  // the first thread of the second warp
// 65536 registers for 384 threads: 168 each at the start, and (40 + 2 * 232) * 128 is no more than that.
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;
constexpr int MOST_BLOCKS = 1024;

// Whether a block has left sums that nobody has taken yet; all zero between launches.
__device__ unsigned has_left[MOST_BLOCKS];

// A consumer's sums over `steps` steps, onto what is in `sum` where `adds`. Ring::multiply<1> begins with nothing. The
// first step stands by itself: where products in a loop may begin with sums from memory, ptxas lets only one of them run
// at a time (C7515).
template <typename GiveBack>
__device__ __forceinline__ void multiply(TileRing& ring, float (&sum)[BN / 2], int consumer, int steps, bool adds,
                                         const GiveBack& give_back) {
    const TileRing::Operands first = ring.operands(consumer);
    ring.start(sum, first, adds);
    int held = ring.turn.stage;  // the stage whose products may still run
    ring.turn.advance();
    for (int step = 1; step < steps; ++step, ring.turn.advance()) {
        ring.start(sum, first, true);
        wgmma::wait<1>();
        give_back(held);
        held = ring.turn.stage;
    }
    wgmma::wait<0>();
    give_back(held);
    wgmma::pin(sum);
}

// Where a block's partial sums are for this thread of a consumer: its float4 number q at q * CONSUMER_THREADS, so that
// a warp writes or reads 512 bytes side by side.
__device__ __forceinline__ float4* partial_of(float4* partials, int block) {
    return partials + static_cast<size_t>(block) * (BM * BN / 4) + (threadIdx.x - 128);
}

__device__ __forceinline__ void leave(float4* partial, const float (&sum)[BN / 2]) {
#pragma unroll
    for (int q = 0; q < BN / 8; ++q)
        __stcg(partial + q * CONSUMER_THREADS,
               make_float4(sum[4 * q], sum[4 * q + 1], sum[4 * q + 2], sum[4 * q + 3]));
}

__device__ __forceinline__ void take(const float4* partial, float (&sum)[BN / 2]) {
#pragma unroll
    for (int q = 0; q < BN / 8; ++q) {
        const float4 four = __ldcg(partial + q * CONSUMER_THREADS);
        sum[4 * q] = four.x, sum[4 * q + 1] = four.y, sum[4 * q + 2] = four.z, sum[4 * q + 3] = four.w;
    }
}

// What passes between the consumers of a block and its messenger, once each: the sums are left, the sums have come.
struct Messages {
    uint64_t left, came;
};

// By the messenger. What a consumer's threads wrote before they arrived at `left` is seen by who reads after `came` in
// the next cluster: each hands it on to the next, and the flag does so for the whole GPU.
__device__ __forceinline__ void carry(Messages& messages, const pieces::Deal& deal, int cluster) {
    using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
    if (deal.is_cut(cluster + 1)) {
        mbarrier::wait(&messages.left, 0);
        Flag(has_left[blockIdx.x]).store(1, cuda::memory_order_release);
    }
    if (deal.is_cut(cluster)) {
        const Flag flag(has_left[blockIdx.x - Neighbours::BLOCKS]);
        while (flag.load(cuda::memory_order_acquire) == 0) {
        }
        flag.store(0, cuda::memory_order_relaxed);  // for the next launch
        mbarrier::arrive(&messages.came);
    }
}

__global__ void __cluster_dims__(Neighbours::BLOCKS, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_stream_k(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                             const __grid_constant__ CUtensorMap c_map, float4* partials, int tile_rows,
                             int tile_columns, const __grid_constant__ pieces::Deal deal) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    __shared__ Messages messages;
    TileRing ring(tma::align(shared), barriers);  // at the same place in every block
    if (threadIdx.x == 0) {
        tma::prefetch(a_map), tma::prefetch(b_map), tma::prefetch(c_map);
        mbarrier::init(&messages.left, CONSUMER_THREADS);
        mbarrier::init(&messages.came, 1);
        ring.init(Neighbours::PEERS * CONSUMERS * 4);
    }
    cluster_meet();

    const Neighbours neighbours(cluster_rank());
    const int cluster = blockIdx.x / Neighbours::BLOCKS;
    pieces::Walk walk(deal, cluster);
    pieces::Piece piece;
    if (threadIdx.x < 128) {
        lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            while (walk.next(piece)) {
                const tiles::Tile tile = tile_at(piece.tile, tile_rows, tile_columns);
                const int row = (tile.row * DOWN + neighbours.row) * BM;
                const int column = (tile.column * ACROSS + neighbours.column) * BN;
                for (int step = piece.begin; step < piece.end; ++step, ring.turn.advance()) {
                    ring.claim();
                    neighbours.load(ring, a_map, b_map, row, column, step * BK);
                }
            }
            ring.drain();
        }
        if (threadIdx.x == MESSENGER) carry(messages, deal, cluster);
    } else {
        raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1;
        const GiveBack give_back = neighbours.give_back(barriers.empty);
        while (walk.next(piece)) {
            float sum[BN / 2];
            if (piece.begin > 0) {
                mbarrier::wait(&messages.came, 0);
                take(partial_of(partials, blockIdx.x - Neighbours::BLOCKS), sum);
            }
            multiply(ring, sum, consumer, piece.end - piece.begin, piece.begin > 0, give_back);
            if (piece.end < deal.steps) {
                leave(partial_of(partials, blockIdx.x), sum);
                mbarrier::arrive(&messages.left);
                continue;
            }
            const tiles::Tile tile = tile_at(piece.tile, tile_rows, tile_columns);
            const int row = (tile.row * DOWN + neighbours.row) * BM + consumer * ROWS;
            const int column = (tile.column * ACROSS + neighbours.column) * BN;
            store(c_map, ring.stages + TileRing::BYTES, sum, consumer, row, column);
        }
        if (threadIdx.x % 128 == 0) tma::wait_stores_read<0>();
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local Tiling tiling;
    void* partials = nullptr;
    cudaError_t error = tiling.prepare(bf16_gemm_wgmma_stream_k, A, B, C, M, N, K);
    if (error != cudaSuccess) return error;
    const pieces::Deal deal = pieces::deal_out(tiling.rows * tiling.columns, (K - 1) / BK + 1,
                                               tiles::smaller(tiling.clusters, MOST_BLOCKS / Neighbours::BLOCKS));
    const int blocks = deal.clusters * Neighbours::BLOCKS;
    if (deal.shared > 0) error = workspace(static_cast<size_t>(blocks) * BM * BN * sizeof(float), &partials);
    if (error != cudaSuccess) return error;
    bf16_gemm_wgmma_stream_k<<<blocks, THREADS, SHARED_BYTES, stream>>>(
        tiling.a.map(), tiling.b.map(), tiling.c.map(), static_cast<float4*>(partials), tiling.rows, tiling.columns,
        deal);
    return cudaGetLastError();
}
