// wgmma_cluster_setmaxnreg, wgmma_cluster_evict_first, wgmma_cluster_stwt, wgmma_cluster_zeroed: one change each to
// wgmma_cluster.
//
// Idea         wgmma_tuned changes several things at once; here they are taken one by one, each against wgmma_cluster.
//              wgmma_cluster_setmaxnreg (SETMAXNREG = 1): the producer gives registers to the consumers, which have 240
//              instead of 168. The consumers do not spill with 168 either.
//              wgmma_cluster_evict_first (STORE = 1): C is stored evict-first (st.global.cs), so that L2 keeps A and B.
//              wgmma_cluster_stwt (STORE = 2): C is written through (st.global.wt, __stwt), the other hint that public
//              kernels give. On sm_90 it becomes STG.E.STRONG.SYS, a store in the order of the whole system.
//              wgmma_cluster_zeroed (ZEROED = 1): the sums are set to zero before each tile, and the first product adds
//              to them, as in kernels that do not use the scale of wgmma: 64 instructions per thread and tile, each of
//              which clears two registers.
// Expected     Each within 2 % of wgmma_cluster. Evict-first should help most where A and B exceed L2, at 8192; zeroing
//              costs less than 1 %, since a tile takes 64 steps at 4096 and 128 at 8192.
// Cost         As wgmma_cluster.
// Constraints  As wgmma_cluster: K and N multiples of 8, arrays aligned to 16 bytes; any M.
// Source       PTX ISA, setmaxnreg, st with cache operators, wgmma; A. Gordic, Anatomy of high performance matmul
//              kernels.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "columns.cuh"

constexpr int PLAIN = 0, EVICT_FIRST = 1, WRITE_THROUGH = 2;  // values of STORE

static_assert(STORE == PLAIN || STORE == EVICT_FIRST || STORE == WRITE_THROUGH, "how C is stored");

// As Ring::multiply<1>, but the sums are set to zero and every product adds.
__device__ __forceinline__ void multiply_from_zero(TileRing& ring, float (&sum)[BN / 2], int consumer, int K,
                                                   const GiveBack& give_back) {
    const TileRing::Operands first = ring.operands(consumer);
#pragma unroll
    for (int i = 0; i < BN / 2; ++i) sum[i] = 0.0f;
    wgmma::pin(sum);
    int held = 0;
    for (int k0 = 0; k0 < K; k0 += BK, ring.turn.advance()) {
        ring.start(sum, first, true);
        wgmma::wait<1>();
        if (k0 > 0) give_back(held);
        held = ring.turn.stage;
    }
    wgmma::wait<0>();
    give_back(held);
    wgmma::pin(sum);
}

// As wgmma::store, written through.
__device__ __forceinline__ void store_through(const float (&sum)[BN / 2], __nv_bfloat16* C, int row, int column, int M,
                                              int N) {
    const int thread = threadIdx.x % 128;
    const int first_row = row + thread / 32 * 16 + thread % 32 / 4, first_column = column + thread % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (first_row + 8 * h >= M) continue;
        __nv_bfloat16* c = C + static_cast<size_t>(first_row + 8 * h) * N + first_column;
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
            if (first_column + 8 * j < N)
                __stwt(reinterpret_cast<unsigned*>(c + 8 * j), wgmma::pack(sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]));
    }
}

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_one_change(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
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
        if constexpr (SETMAXNREG) lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int index = first; index < tile_rows * tile_columns; index += stride) {
                const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
                const int row = (tile.row * CLUSTER + neighbours.row) * BM;
                for (int k0 = 0; k0 < K; k0 += BK, ring.turn.advance()) {
                    ring.claim();
                    neighbours.load(ring, a_map, b_map, row, tile.column * BN, k0);
                }
            }
            ring.drain();
        }
    } else {
        if constexpr (SETMAXNREG) raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1;
        const GiveBack give_back = neighbours.give_back(barriers.empty);
        for (int index = first; index < tile_rows * tile_columns; index += stride) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            const int row = (tile.row * CLUSTER + neighbours.row) * BM + consumer * ROWS;
            float sum[BN / 2];
            if constexpr (ZEROED)
                multiply_from_zero(ring, sum, consumer, K, give_back);
            else
                ring.multiply<1>(sum, consumer, K, give_back);
            if constexpr (STORE == WRITE_THROUGH)
                store_through(sum, C, row, tile.column * BN, M, N);
            else
                wgmma::store<STORE == EVICT_FIRST>(sum, C, row, tile.column * BN, M, N);
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    return launch_columns(bf16_gemm_one_change, A, B, C, M, N, K, false, stream);
}
