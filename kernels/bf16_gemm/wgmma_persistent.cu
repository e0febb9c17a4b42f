// wgmma_persistent, wgmma_grouped, wgmma_in_flight, wgmma_setmaxnreg: one block an SM that computes tile after tile.
//
// Idea         wgmma_persistent: as many blocks as SMs, each of which takes every gridDim.x-th tile. The ring goes on
//              over the border of two tiles, so that the producer fills it for the next tile while the consumers still
//              write the last one.
//              wgmma_grouped (GROUP): tiles that are computed at the same time lie in a block of GROUP rows, not in
//              one long row, so that they share more of A and B in L2.
//              wgmma_in_flight (IN_FLIGHT = 1): the products of a step are handed over before those of the last one are
//              waited for; the tensor cores find the next ones when they finish.
//              wgmma_setmaxnreg (SETMAXNREG = 1): the producer gives registers to the consumers.
// Expected     wgmma_persistent: 660 TFLOP/s on an H100 where wgmma_tile128x256 has 610 (Gordic), 654 at 4096 and 679
//              at 8192 for the public kernel on an H200. wgmma_grouped: more at 8192 and above, where a row of tiles is
//              long; nothing at 1024. wgmma_in_flight: a little, since two consumers take turns already.
//              wgmma_setmaxnreg: nothing, unless it removes spills; here there are none.
// Cost         Tiles are dealt out evenly: 512 tiles of 4096 on 132 SMs take as long as 528. Until the consumers of a
//              block have written their results, its tensor cores rest.
// Constraints  K and N multiples of 8 (TMA's rows start on 16 bytes), arrays on 16 bytes; any M.
// Source       PTX ISA, wgmma.mma_async, cp.async.bulk.tensor, mbarrier, setmaxnreg; A. Gordic, Anatomy of high
//              performance matmul kernels; the order of tiles is that of Triton's matmul tutorial.
//
// Why it cannot deadlock: see mbarrier.cuh. Producer and consumers walk the same tiles and steps in the same order, and
// a turn is never reset. With IN_FLIGHT a consumer keeps at most one stage more than the one it waits for, and gives it
// back after its next step or at the end of the tile, whichever is first: STAGES >= 2 is enough.

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
constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + tma::ATOM_BYTES;  // with room to align

// 65536 registers for 384 threads: 168 each at the start, and (24 + 2 * 240) * 128 is no more than that.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

static_assert(BM == CONSUMERS * ROWS, "each consumer computes the rows of one product");
static_assert(BN == 64 || BN == 128 || BN == 256, "the widths of wgmma.cuh");
static_assert(STAGES >= 2, "see above");

__global__ void __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_persistent(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                               __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    uint8_t* stages = tma::align(shared);  // each a tile of A, then one of B

    const int tile_rows = (M - 1) / BM + 1, tile_columns = (N - 1) / BN + 1;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier::init(&full[s], 1);
            mbarrier::init(&empty[s], CONSUMERS * 4);
        }
        mbarrier::publish_inits();
    }
    __syncthreads();

    mbarrier::Turn<STAGES> turn;
    if (threadIdx.x < 128) {
        if constexpr (SETMAXNREG) lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
                const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
                for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                    uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                    mbarrier::wait(&empty[turn.stage], turn.parity ^ 1);
                    mbarrier::expect(&full[turn.stage], STAGE_BYTES);
                    tma::load(stage, a_map, tile.row * BM, k0, &full[turn.stage]);
                    tma::load(stage + A_BYTES, b_map, tile.column * BN, k0, &full[turn.stage]);
                }
            }
        }
    } else {
        if constexpr (SETMAXNREG) raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1;
        const bool speaks = threadIdx.x % 32 == 0;  // for its warp
        for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
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
                wgmma::wait<IN_FLIGHT>();
                if (speaks && (!IN_FLIGHT || k0 > 0)) mbarrier::arrive(&empty[IN_FLIGHT ? held : turn.stage]);
                held = turn.stage;
            }
            if constexpr (IN_FLIGHT) {
                wgmma::wait<0>();
                if (speaks) mbarrier::arrive(&empty[held]);
            }
            wgmma::pin(sum);
            wgmma::store(sum, C, tile.row * BM + consumer * ROWS, tile.column * BN, M, N);
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map;
    int blocks = 0;
    cudaError_t error = multiprocessors(&blocks);
    if (error == cudaSuccess) error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN);
    if (error == cudaSuccess)
        error =
            cudaFuncSetAttribute(bf16_gemm_wgmma_persistent, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    bf16_gemm_wgmma_persistent<<<blocks, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N, K);
    return cudaGetLastError();
}
