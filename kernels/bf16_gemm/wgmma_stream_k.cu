// wgmma_stream_k: no partial wave of tiles, in which clusters would be idle.
//
// Idea         66 clusters of two blocks take tiles of 256 x 256. 8192 x 8192 has 1024 of them, 15.5 waves that take as
//              long as 16. Here the last full wave and the remainder are cut along K into equal shares, one per cluster
//              (pieces.cuh), and come first; whole tiles follow. A share is longer than a tile, so a tile is cut in two
//              at most. The cluster with the first steps of a tile writes its sums to a workspace, in the order in
//              which its threads hold them; the cluster with the last steps loads them as its first sums and continues.
//              So every result is summed in the order of its parent, and is the same bit for bit.
//              The other warps of the producer's warpgroup have no work. One of them, the messenger, waits until the
//              partial sums are visible and raises the flag, or waits for the flag of the previous cluster, so that no
//              consumer has to.
//              CUDA does not promise in which order clusters start. So clusters take their numbers from a counter when
//              they start, and wait only for the previous number.
// Expected     Its parent takes 2048 steps at 8192 and 16128 at 16384; this variant takes 1986 and 15888, and some more
//              to hand over sums: 1.02 to 1.03 and 1.01 to 1.015 times the TFLOP/s per GHz. Where the power limit
//              lowers the clock, it is not faster: no SM is idle, and clusters at different steps share less of A and B
//              in L2.
// Cost         128 KiB per block to L2 and back. Where the remainder is most of a wave (3.9 waves at 4096), a tile has
//              few steps, or there are fewer tiles than clusters, all tiles are whole and no cluster takes a number, as
//              in its parent.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M: TMA
//              does not write outside C. One stream at a time: concurrent streams would share the workspace and the
//              counter.
// Source       M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on
//              the GPU (arxiv.org/abs/2301.03598), two-tile hybrid; NVIDIA CUTLASS; PTX ISA.

// Why it cannot deadlock: see cluster.cuh for the ring. In addition, a cluster waits once, for the first piece of the
// cluster with the previous number. That cluster took its number earlier, so it is running, and its first piece waits
// for nothing.

#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "boxes.cuh"
#include "pieces.cuh"
#include "workspace.cuh"

constexpr int MESSENGER = 32;  // the first thread of the second warp
// 65536 registers for 384 threads: 168 each at the start. (40 + 2 * 232) * 128 registers do not exceed this.
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;
constexpr int MOST_BLOCKS = 1024;

// The number of the next cluster to start; wraps back to 0 for the next launch.
__device__ unsigned next_number;

// The numbers that clusters took, by their position in the grid.
__device__ int number_at[MOST_BLOCKS / Neighbours::BLOCKS];

// Whether a block has left sums that no block has taken yet; all zero between launches.
__device__ unsigned has_left[MOST_BLOCKS];

// The sums of a consumer over `steps` steps, added to `sum` if `adds`, whereas Ring::multiply<1> starts from zero. The
// first step is outside of the loop: if products in a loop may start from sums in memory, ptxas serialises them
// (C7515).
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

// The partial sums of a block for this thread of a consumer: float4 number q is at q * CONSUMER_THREADS, so that a warp
// writes or reads 512 consecutive bytes.
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

// Barriers between the consumers of a block and its messenger, each used once: the sums are left, the sums have come.
struct Messages {
    uint64_t left, came;
};

// By the messenger. What the threads of a consumer wrote before they arrived at `left` is visible to those that read
// after `came` in the next cluster: the barriers order it within a block, the flag across the GPU.
__device__ __forceinline__ void carry(Messages& messages, const pieces::Deal& deal, int cluster, int block) {
    using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
    if (deal.is_cut(cluster + 1)) {
        mbarrier::wait(&messages.left, 0);
        Flag(has_left[block]).store(1, cuda::memory_order_release);
    }
    if (deal.is_cut(cluster)) {
        const Flag flag(has_left[block - Neighbours::BLOCKS]);
        while (flag.load(cuda::memory_order_acquire) == 0) {
        }
        flag.store(0, cuda::memory_order_relaxed);  // for the next launch
        mbarrier::arrive(&messages.came);
    }
}

// Takes a number for this cluster, by one of its threads before cluster_sync. Clusters that wait for each other count
// in the order in which they start: the one waited for is then always running.
__device__ __forceinline__ void take_number(const pieces::Deal& deal, int position) {
    if (deal.shared > 0) number_at[position] = static_cast<int>(atomicInc(&next_number, deal.clusters - 1));
}

// The number of this cluster, by all of its threads after cluster_sync.
__device__ __forceinline__ int number_of(const pieces::Deal& deal, int position) {
    return deal.shared > 0 ? __ldcg(&number_at[position]) : position;
}

__global__ void __cluster_dims__(Neighbours::BLOCKS, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_stream_k(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                             const __grid_constant__ CUtensorMap c_map, float4* partials, int tile_rows,
                             int tile_columns, const __grid_constant__ pieces::Deal deal) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    __shared__ Messages messages;
    TileRing ring(tma::align(shared), barriers);  // at the same address in every block
    const int position = blockIdx.x / Neighbours::BLOCKS;
    if (threadIdx.x == 0) {
        tma::prefetch(a_map), tma::prefetch(b_map), tma::prefetch(c_map);
        mbarrier::init(&messages.left, CONSUMER_THREADS);
        mbarrier::init(&messages.came, 1);
        ring.init(Neighbours::PEERS * CONSUMERS * 4);
        if (cluster_rank() == 0) take_number(deal, position);
    }
    cluster_sync();

    const Neighbours neighbours(cluster_rank());
    const int cluster = number_of(deal, position), block = cluster * Neighbours::BLOCKS + cluster_rank();
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
        if (threadIdx.x == MESSENGER) carry(messages, deal, cluster, block);
    } else {
        raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1;
        const GiveBack give_back = neighbours.give_back(barriers.empty);
        while (walk.next(piece)) {
            float sum[BN / 2];
            if (piece.begin > 0) {
                TIMELINE(ring.track, HANDOVER);
                mbarrier::wait(&messages.came, 0);
                take(partial_of(partials, block - Neighbours::BLOCKS), sum);
            }
            multiply(ring, sum, consumer, piece.end - piece.begin, piece.begin > 0, give_back);
            if (piece.end < deal.steps) {
                TIMELINE(ring.track, HANDOVER);
                leave(partial_of(partials, block), sum);
                mbarrier::arrive(&messages.left);
                continue;
            }
            const tiles::Tile tile = tile_at(piece.tile, tile_rows, tile_columns);
            const int row = (tile.row * DOWN + neighbours.row) * BM + consumer * ROWS;
            const int column = (tile.column * ACROSS + neighbours.column) * BN;
            TIMELINE(ring.track, STORE);
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
