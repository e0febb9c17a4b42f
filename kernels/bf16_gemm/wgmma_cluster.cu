// wgmma_cluster, wgmma_cluster_fenced, wgmma_tuned: neighbouring blocks share the loads of B.
//
// Idea         Two blocks of a cluster compute tiles below one another, which require the same rows of B. Each loads
//              its tile of A and half of the tile of B, and TMA multicast writes that half to both blocks
//              (cluster.cuh): L2 sends 32 KiB per step and block instead of 48.
//              wgmma_cluster_fenced (FENCED = 1): a block that gives back a stage signals this to the other block by an
//              arrival with release.cluster, as for data that it wrote, although a consumer only read. sm_90 has no
//              fence for a cluster and uses that of the whole GPU: a round trip to L2 (MEMBAR.ALL.GPU) per warp and
//              step, between two products, and an invalidated L1 (CCTL.IVALL) for the producer.
//              wgmma_tuned (TUNED = 1): the registers of the producer go to the consumers, C is written with streaming
//              stores, so that L2 keeps A and B, and no more clusters are launched than the number of waves requires,
//              so that each has the same work: 64 instead of 66 at 4096. As in all variants from wgmma_tma on, sums are
//              not set to zero first.
// Expected     wgmma_cluster: 734 TFLOP/s on an H100 against 704 without clusters (Gordic); for the public kernel on an
//              H200, 736 at 4096 and 786 at 8192. Bytes from L2 fall by a third. wgmma_cluster_fenced: slower than its
//              parent, by its fences. wgmma_tuned: 747 TFLOP/s on an H100; for the public kernel on an H200, 744 at
//              4096 and 789 at 8192.
// Cost         A stage may be refilled only when the consumers of both blocks are done with it, so they wait for each
//              other. Tiles are assigned to whole clusters, so that a partial last wave leaves more SMs idle.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M.
// Source       PTX ISA, cp.async.bulk.tensor with multicast, mapa, mbarrier, setmaxnreg; A. Gordic, Anatomy of high
//              performance matmul kernels; NVIDIA CUTLASS, which also arrives without the fence.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "columns.cuh"

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_cluster(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                            __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    TileRing ring(tma::align(shared), barriers);  // at the same address in every block
    if (threadIdx.x == 0) ring.init(Neighbours::PEERS * CONSUMERS * 4);
    cluster_meet();

    // The tiles of a cluster are CLUSTER tiles below one another; a tile below the last row is computed but not stored.
    const Neighbours neighbours(cluster_rank());
    const int tile_rows = (M - 1) / (BM * CLUSTER) + 1, tile_columns = (N - 1) / BN + 1;
    const int first = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER;
    if (threadIdx.x < 128) {
        if constexpr (TUNED) lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int index = first; index < tile_rows * tile_columns; index += stride) {
                const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
                const int row = (tile.row * CLUSTER + neighbours.row) * BM;
                for (int k0 = 0; k0 < K; k0 += BK, ring.turn.advance()) {
                    if constexpr (FENCED) mbarrier::wait_cluster(ring.empty(), ring.turn.parity ^ 1);
                    ring.claim();
                    neighbours.load(ring, a_map, b_map, row, tile.column * BN, k0);
                }
            }
            ring.drain();
        }
    } else {
        if constexpr (TUNED) raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
        const GiveBack to_peers = neighbours.give_back(barriers.empty);
        const auto give_back = [&](int stage) {
            if constexpr (!FENCED)
                to_peers(stage);
            else if (to_peers.speaks)
                mbarrier::arrive_at(&barriers.empty[stage], neighbours.peer(lane));
        };
        for (int index = first; index < tile_rows * tile_columns; index += stride) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            const int row = (tile.row * CLUSTER + neighbours.row) * BM + consumer * ROWS;
            float sum[BN / 2];
            ring.multiply<1>(sum, consumer, K, give_back);
            TIMELINE(ring.track, STORE);
            wgmma::store<TUNED>(sum, C, row, tile.column * BN, M, N);
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    return launch_columns(bf16_gemm_wgmma_cluster, A, B, C, M, N, K, TUNED, stream);
}
