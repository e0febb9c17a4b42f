// wgmma_persistent, wgmma_grouped: one block per SM that computes tile after tile.
//
// Idea         wgmma_persistent: as many blocks as SMs, each of which takes every gridDim.x-th tile. The ring continues
//              across tiles, so that the producer loads the next tile while the consumers still write the previous one.
//              wgmma_grouped (GROUP): tiles that are computed at the same time lie within GROUP rows of tiles instead
//              of one long row, so that they share more of A and B in L2.
// Expected     wgmma_persistent: 660 TFLOP/s on an H100 against 610 for wgmma_tile128x256 (Gordic); for the public
//              kernel on an H200, 654 at 4096 and 679 at 8192. wgmma_grouped: faster at 8192 and above, where a row of
//              tiles is long; no gain at 1024.
// Cost         Blocks take whole tiles: the 512 tiles at 4096 take as long as 528 on 132 SMs. The tensor cores of a
//              block are idle while its consumers write their results.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M.
// Source       PTX ISA, wgmma.mma_async, cp.async.bulk.tensor; libcu++, cuda::barrier; A. Gordic, Anatomy of high
//              performance matmul kernels; the order of tiles is that of Triton's matmul tutorial.

// Why it cannot deadlock: as in wgmma_pipelined; producer and consumers walk through the same tiles in the same order,
// and a turn is never reset.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "thread_barriers.cuh"
#include "tiles.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int CONSUMERS = 2;
constexpr int BK = tma::BOX_COLUMNS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int ROWS = wgmma::M;  // rows that a consumer computes
constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + tma::ATOM_BYTES;  // with room for alignment

static_assert(BM == CONSUMERS * ROWS, "each consumer computes the rows of one product");
static_assert(BN == 64 || BN == 128 || BN == 256, "the widths of wgmma.cuh");

__global__ void __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_persistent(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                               __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    TIMELINE_TRACK(track);
    extern __shared__ uint8_t shared[];
    __shared__ ThreadBarriers<CONSUMERS, STAGES> barriers;
    uint8_t* stages = tma::align(shared);  // each has a tile of A, then one of B
    if (threadIdx.x == 0) barriers.init();
    __syncthreads();

    const int tile_rows = (M - 1) / BM + 1, tile_columns = (N - 1) / BN + 1;
    mbarrier::Turn<STAGES> turn;
    if (threadIdx.x < 128) {
        if (threadIdx.x > 0) return;
        for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                TIMELINE(track, WAIT);
                uint64_t* full = barriers.claim(turn.stage, STAGE_BYTES);
                TIMELINE(track, LOAD);
                tma::load(stage, a_map, tile.row * BM, k0, full);
                tma::load(stage + A_BYTES, b_map, tile.column * BN, k0, full);
            }
        }
    } else {
        const int consumer = threadIdx.x / 128 - 1;
        for (int s = 0; s < STAGES; ++s) barriers.give_back(s);
        for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            float sum[BN / 2];
            for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                const uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                const uint64_t a = wgmma::describe(stage + consumer * ROWS * BK * 2);
                const uint64_t b = wgmma::describe(stage + A_BYTES);
                TIMELINE(track, WAIT);
                barriers.wait_full(turn.stage);
                TIMELINE(track, COMPUTE);
                wgmma::fence();
#pragma unroll
                for (int k = 0; k < BK / wgmma::K; ++k)
                    wgmma::multiply(sum, a + k * wgmma::NEXT_K, b + k * wgmma::NEXT_K, k0 > 0 || k > 0);
                wgmma::commit();
                wgmma::wait<0>();
                barriers.give_back(turn.stage);
            }
            TIMELINE(track, STORE);
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
