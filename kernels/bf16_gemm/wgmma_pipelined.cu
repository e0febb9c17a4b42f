// wgmma_pipelined, wgmma_tile128x256, wgmma_one_consumer: separate warpgroups load and multiply.
//
// Idea         Shared memory holds a ring of STAGES stages. One thread of the producer warpgroup keeps TMA busy, up to
//              STAGES steps ahead; CONSUMERS warpgroups multiply what has arrived. They synchronise through two
//              barriers per stage, `full` and `empty`, with libcu++ as in the programming guide. A block thus hides the
//              latency of its own loads.
//              wgmma_tile128x256 has two consumers, each with 64 of 128 rows, and the widest wgmma, with 256 columns: a
//              quarter fewer bytes per product. wgmma_one_consumer shows why there are two: one would require 256
//              accumulators per thread.
// Expected     wgmma_pipelined: 498 TFLOP/s on an H100 against 423 for wgmma_tile128; wgmma_tile128x256: 610 (Gordic).
//              Public kernels of this kind reach 538 and 644 at 4096 on an H200. wgmma_one_consumer: slower than its
//              parent, since it spills.
// Cost         STAGES * (BM + BN) * 128 bytes of shared memory, so one block per SM: its tensor cores are idle while it
//              writes its results. The registers of the producer warpgroup are unused.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M. M up
//              to 65535 * BM.
// Source       PTX ISA, wgmma.mma_async, cp.async.bulk.tensor, mbarrier; A. Gordic, Anatomy of high performance matmul
//              kernels; warp specialisation as in CUTLASS.

// Why it cannot deadlock: producer and consumers walk through the same steps in the same order, and each of them
// arrives once per use at each barrier of a stage. Consumers begin by giving back all stages, so that the producer
// never waits for a use that did not happen.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "thread_barriers.cuh"
#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BK = tma::BOX_COLUMNS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int ROWS = BM / CONSUMERS;  // rows that a consumer computes
constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + tma::ATOM_BYTES;  // with room for alignment

static_assert(ROWS % wgmma::M == 0 && ROWS * CONSUMERS == BM, "each consumer computes whole products");
static_assert(BM <= 256 && (BN == 64 || BN == 128 || BN == 256), "TMA allows the boxes, and wgmma.cuh has the widths");

__global__ void __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_pipelined(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                              __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    TIMELINE_TRACK(track);
    extern __shared__ uint8_t shared[];
    __shared__ ThreadBarriers<CONSUMERS, STAGES> barriers;
    uint8_t* stages = tma::align(shared);  // each has a tile of A, then one of B

    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    if (threadIdx.x == 0) barriers.init();
    __syncthreads();

    mbarrier::Turn<STAGES> turn;
    if (threadIdx.x < 128) {
        if (threadIdx.x > 0) return;
        for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
            uint8_t* stage = stages + turn.stage * STAGE_BYTES;
            TIMELINE(track, WAIT);
            uint64_t* full = barriers.claim(turn.stage, STAGE_BYTES);
            TIMELINE(track, LOAD);
            tma::load(stage, a_map, block_row, k0, full);
            tma::load(stage + A_BYTES, b_map, block_col, k0, full);
        }
    } else {
        const int consumer = threadIdx.x / 128 - 1;
        for (int s = 0; s < STAGES; ++s) barriers.give_back(s);
        float sum[ROWS / wgmma::M][BN / 2];
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
#pragma unroll
                for (int i = 0; i < ROWS / wgmma::M; ++i)
                    wgmma::multiply(sum[i], a + i * wgmma::NEXT_M + k * wgmma::NEXT_K, b + k * wgmma::NEXT_K,
                                    k0 > 0 || k > 0);
            wgmma::commit();
            wgmma::wait<0>();
            barriers.give_back(turn.stage);
        }
        TIMELINE(track, STORE);
#pragma unroll
        for (int i = 0; i < ROWS / wgmma::M; ++i) {
            wgmma::pin(sum[i]);
            wgmma::store(sum[i], C, block_row + consumer * ROWS + i * wgmma::M, block_col, M, N);
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map;
    cudaError_t error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN);
    if (error == cudaSuccess)
        error =
            cudaFuncSetAttribute(bf16_gemm_wgmma_pipelined, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    bf16_gemm_wgmma_pipelined<<<grid, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N, K);
    return cudaGetLastError();
}
