// wgmma_cluster: neighbouring blocks load a tile of B together.
//
// Idea         CLUSTER blocks of a cluster compute tiles below one another, which need the same rows of B. Each loads
//              its tile of A and a CLUSTER-th part of B's, and TMA's multicast writes that part into all of them: with
//              two blocks, L2 sends 32 KiB a step and block instead of 48.
// Expected     734 TFLOP/s on an H100 where its parent has 704 (Gordic), 736 at 4096 and 786 at 8192 for the public
//              kernel on an H200. Bytes from L2 fall by a third.
// Cost         A block may refill a stage only when the consumers of all blocks of the cluster are done with it: they
//              wait for one another. Tiles are dealt out by cluster, so that the last round is coarser.
// Constraints  K and N multiples of 8 (TMA's rows start on 16 bytes), arrays on 16 bytes; any M.
// Source       PTX ISA, cp.async.bulk.tensor with multicast, mapa, mbarrier; A. Gordic, Anatomy of high performance
//              matmul kernels.
//
// Why it cannot deadlock, and why no phase is mistaken: all blocks of a cluster walk the same tiles of the cluster and
// the same steps. Use u of a stage, in the terms of mbarrier.cuh:
//   - `full` of a block takes one arrival (its own producer's expect) and STAGE_BYTES, from its own copy of A and from
//     every block's part of B. A neighbour's part may come before the expect: without it the phase stays open.
//   - A neighbour sends its part of use u only after phase u - 1 of its `empty`, which has an arrival of each warp of
//     each consumer in the cluster, also of those here: they saw phase u - 1 of `full` here end. So bytes of use u
//     never fall into phase u - 1.
//   - A consumer arrives for use u after phase u of its `full`, whose bytes every producer of the cluster sent after
//     phase u - 1 of its own `empty`. So no arrival for use u falls into phase u - 1 of any `empty`.
// No block leaves before the others have sent their last arrivals to it: they meet at the end.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tiles.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int CONSUMERS = 2;
constexpr int BK = tma::BOX_COLUMNS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int ROWS = wgmma::M;  // that a consumer computes
constexpr int PART = BN / CLUSTER;  // rows of B that a block loads
constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + tma::ATOM_BYTES;  // with room to align

// 65536 registers for 384 threads: 168 each at the start, and (24 + 2 * 240) * 128 is no more than that.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

static_assert(BM == CONSUMERS * ROWS, "each consumer computes the rows of one product");
static_assert(BN == 64 || BN == 128 || BN == 256, "the widths of wgmma.cuh");
static_assert(PART % 8 == 0 && PART * CLUSTER == BN, "a part of B is whole atoms of the swizzle");
static_assert(CLUSTER >= 2 && CLUSTER <= 8 && STAGES >= 2, "what every device can place; one stage stays in flight");

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_cluster(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                            __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    uint8_t* stages = tma::align(shared);  // each a tile of A, then one of B; at the same place in every block

    // The tiles of a cluster are CLUSTER tiles below one another; one below the last row is computed and not stored.
    const int tile_rows = (M - 1) / (BM * CLUSTER) + 1, tile_columns = (N - 1) / BN + 1;
    const int rank = cluster_rank(), first = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier::init(&full[s], 1);
            mbarrier::init(&empty[s], CLUSTER * CONSUMERS * 4);
        }
        mbarrier::publish_inits();
    }
    cluster_sync();

    mbarrier::Turn<STAGES> turn;
    if (threadIdx.x < 128) {
        lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int index = first; index < tile_rows * tile_columns; index += stride) {
                const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
                const int row = (tile.row * CLUSTER + rank) * BM, column = tile.column * BN + rank * PART;
                for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                    uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                    mbarrier::wait_cluster(&empty[turn.stage], turn.parity ^ 1);
                    mbarrier::expect(&full[turn.stage], STAGE_BYTES);
                    tma::load(stage, a_map, row, k0, &full[turn.stage]);
                    tma::load_multicast(stage + A_BYTES + rank * PART * BK * 2, b_map, column, k0, &full[turn.stage],
                                        (1 << CLUSTER) - 1);
                }
            }
        }
    } else {
        raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
        for (int index = first; index < tile_rows * tile_columns; index += stride) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            float sum[BN / 2];
            int held = 0;  // the stage whose products may still run
            for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                const uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                const uint64_t a = wgmma::describe(stage + consumer * ROWS * BK * 2);
                const uint64_t b = wgmma::describe(stage + A_BYTES);
                mbarrier::wait(&full[turn.stage], turn.parity);
                wgmma::fence();
#pragma unroll
                for (int k = 0; k < BK / wgmma::K; ++k)
                    wgmma::multiply(sum, a + k * wgmma::NEXT_K, b + k * wgmma::NEXT_K, k0 > 0 || k > 0);
                wgmma::commit();
                wgmma::wait<1>();
                if (lane < CLUSTER && k0 > 0) mbarrier::arrive_at(&empty[held], lane);  // a lane for each block
                held = turn.stage;
            }
            wgmma::wait<0>();
            if (lane < CLUSTER) mbarrier::arrive_at(&empty[held], lane);
            wgmma::pin(sum);
            wgmma::store(sum, C, (tile.row * CLUSTER + rank) * BM + consumer * ROWS, tile.column * BN, M, N);
        }
    }
    cluster_sync();
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map;
    int blocks = 0;
    cudaError_t error = multiprocessors(&blocks);
    if (error == cudaSuccess) error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, PART);
    if (error == cudaSuccess)
        error =
            cudaFuncSetAttribute(bf16_gemm_wgmma_cluster, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    blocks -= blocks % CLUSTER;
    bf16_gemm_wgmma_cluster<<<blocks, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N, K);
    return cudaGetLastError();
}
