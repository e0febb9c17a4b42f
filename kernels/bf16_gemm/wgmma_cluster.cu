// wgmma_cluster, wgmma_cluster_fenced, wgmma_tuned: neighbouring blocks load a tile of B together.
//
// Idea         Two blocks of a cluster compute tiles below one another, which need the same rows of B. Each loads its
//              tile of A and half of B's, and TMA's multicast writes that half into both (cluster.cuh): L2 sends 32 KiB
//              a step and block instead of 48.
//              wgmma_cluster_fenced (FENCED = 1): a block that gives a stage back tells the other one by an arrival
//              with release.cluster, as for data that it wrote. But a consumer only read. sm_90 has no fence of a
//              cluster and takes that of the whole GPU: a round trip to L2 (MEMBAR.ALL.GPU) of each warp in each step,
//              between two products, and an empty L1 (CCTL.IVALL) for the producer.
//              wgmma_tuned (TUNED = 1): the producer's registers go to the consumers, C is written streaming, so that
//              L2 keeps A and B, and no more clusters are launched than take as many rounds, so that each has the same
//              work: 64 instead of 66 at 4096. (Sums are not set to zero first: so it has been since wgmma_tma.)
// Expected     734 TFLOP/s on an H100 where its parent has 704 (Gordic), 736 at 4096 and 786 at 8192 for the public
//              kernel on an H200; 747, 744 and 789 for wgmma_tuned. Bytes from L2 fall by a third.
// Cost         A block may refill a stage only when the consumers of both are done with it: they wait for one another.
//              Tiles are dealt out by cluster, so that the last round is coarser.
// Constraints  K and N multiples of 8 (TMA's rows start on 16 bytes), arrays on 16 bytes; any M.
// Source       PTX ISA, cp.async.bulk.tensor with multicast, mapa, mbarrier, setmaxnreg; A. Gordic, Anatomy of high
//              performance matmul kernels; NVIDIA CUTLASS arrives without the fence too.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "cluster.cuh"
#include "tiles.cuh"

constexpr int CONSUMERS = 2, BM = CONSUMERS * ROWS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
// 65536 registers for 384 threads: 168 each at the start, and (24 + 2 * 240) * 128 is no more than that.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

using TileRing = Ring<CONSUMERS, BN, STAGES>;
using Neighbours = Cluster<CLUSTER, 1>;
constexpr int SHARED_BYTES = TileRing::BYTES + tma::ATOM_BYTES;  // with room to align

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_cluster(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                            __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    TileRing ring(tma::align(shared), barriers);  // at the same place in every block
    if (threadIdx.x == 0) ring.init(Neighbours::PEERS * CONSUMERS * 4);
    cluster_meet();

    // The tiles of a cluster are CLUSTER tiles below one another; one below the last row is computed and not stored.
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
            wgmma::store<TUNED>(sum, C, row, tile.column * BN, M, N);
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map;
    int clusters = 0;
    cudaError_t error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN / CLUSTER);
    if (error == cudaSuccess)
        error =
            cudaFuncSetAttribute(bf16_gemm_wgmma_cluster, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error == cudaSuccess)
        error = resident_clusters(bf16_gemm_wgmma_cluster, CLUSTER, THREADS, SHARED_BYTES, &clusters);
    if (error != cudaSuccess) return error;
    if (TUNED) clusters = tiles::even_workers(((M - 1) / (BM * CLUSTER) + 1) * ((N - 1) / BN + 1), clusters);
    bf16_gemm_wgmma_cluster<<<clusters * CLUSTER, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N,
                                                                                   K);
    return cudaGetLastError();
}
