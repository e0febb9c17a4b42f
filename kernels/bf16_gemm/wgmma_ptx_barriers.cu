// wgmma_ptx_barriers, wgmma_in_flight: barriers in PTX, with one arrival per warp.
//
// Idea         wgmma_ptx_barriers: with libcu++, every thread arrives at `full` before it waits, and at `empty` after
//              it has read: 4 * 128 arrivals per step and pair of consumers, one after another at one word of shared
//              memory. In PTX, a waiting thread does not have to arrive: `full` takes the producer's arrival and the
//              bytes, `empty` one arrival per warp.
//              wgmma_in_flight (IN_FLIGHT = 1): the products of a step are issued before the wait for those of the
//              previous step, so that the tensor cores have the next products when they finish the previous ones.
// Expected     wgmma_ptx_barriers: 704 TFLOP/s on an H100 against 660 with libcu++ (Gordic); for the public kernel on
//              an H200, 731 at 4096 and 770 at 8192. wgmma_in_flight: slightly faster than its parent, since two
//              consumers already take turns.
// Cost         With IN_FLIGHT, a stage stays in use for one more step.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M.
// Source       PTX ISA, mbarrier, wgmma.wait_group; A. Gordic, Anatomy of high performance matmul kernels; NVIDIA
//              CUTLASS.

// Why it cannot deadlock: see mbarrier.cuh. Producer and consumers walk through the same tiles and steps in the same
// order, and a turn is never reset. With IN_FLIGHT a consumer keeps at most one stage in addition to the one it waits
// for, and gives it back after its next step or at the end of the tile, whichever comes first: two stages are enough.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "ring.cuh"
#include "tiles.cuh"

constexpr int CONSUMERS = 2, BM = CONSUMERS * ROWS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
using TileRing = Ring<CONSUMERS, BN, STAGES>;
constexpr int SHARED_BYTES = TileRing::BYTES + tma::ATOM_BYTES;  // with room for alignment

__global__ void __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_ptx_barriers(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                                 __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    TileRing ring(tma::align(shared), barriers);
    if (threadIdx.x == 0) ring.init(CONSUMERS * 4);
    __syncthreads();

    const int tile_rows = (M - 1) / BM + 1, tile_columns = (N - 1) / BN + 1;
    if (threadIdx.x < 128) {
        if (threadIdx.x > 0) return;
        for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            for (int k0 = 0; k0 < K; k0 += BK, ring.turn.advance()) {
                ring.claim();
                tma::load(ring.a(), a_map, tile.row * BM, k0, ring.full());
                tma::load(ring.b(), b_map, tile.column * BN, k0, ring.full());
            }
        }
    } else {
        const int consumer = threadIdx.x / 128 - 1;
        const bool speaks = threadIdx.x % 32 == 0;  // for its warp
        const auto give_back = [&](int stage) {
            if (speaks) mbarrier::arrive(&barriers.empty[stage]);
        };
        for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            float sum[BN / 2];
            ring.multiply<IN_FLIGHT>(sum, consumer, K, give_back);
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
        error = cudaFuncSetAttribute(bf16_gemm_wgmma_ptx_barriers, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     SHARED_BYTES);
    if (error != cudaSuccess) return error;
    bf16_gemm_wgmma_ptx_barriers<<<blocks, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N, K);
    return cudaGetLastError();
}
