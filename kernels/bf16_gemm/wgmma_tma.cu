// wgmma_tma, wgmma_tma_n128, wgmma_tma_n256, wgmma_tile128: wgmma and TMA in their plainest form.
//
// Idea         wgmma lets four warps together compute 64 x N results from tiles that lie in shared memory: no fragment
//              is loaded into registers. TMA lets one thread load a whole tile, and stores it in the swizzle that wgmma
//              reads without bank conflicts. One warpgroup loads a tile of A and one of B, waits, multiplies, and so
//              on.
//              BM x BN are the results of a block: 64 x 64 in wgmma_tma, 64 x 128 in wgmma_tma_n128 and 64 x 256 in
//              wgmma_tma_n256, with one wgmma as wide as BN, and 128 x 128 in wgmma_tile128, with two wgmma on the same
//              tile of B.
// Expected     wgmma_tma: 317 TFLOP/s on an H100; wgmma_tile128: 423 (Gordic). Public kernels of this kind reach 376
//              and 414 at 4096 on an H200. Bytes per product, relative to wgmma_tma: 3/4 in wgmma_tma_n128, 5/8 in
//              wgmma_tma_n256, 1/2 in wgmma_tile128.
// Cost         Nothing overlaps within a block: only other blocks of the SM hide a load. BM * BN / 128 accumulators per
//              thread.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M, since
//              tiles at the border are filled with zeros. M up to 65535 * BM.
// Source       PTX ISA, wgmma.mma_async and cp.async.bulk.tensor; A. Gordic, Anatomy of high performance matmul
//              kernels.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "timeline.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int BK = tma::BOX_COLUMNS;
constexpr int THREADS = 128;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2;
constexpr int SHARED_BYTES = A_BYTES + B_BYTES + tma::ATOM_BYTES;  // with room for alignment

static_assert(BM % wgmma::M == 0 && BM <= 256 && BN <= 256, "products are whole, and TMA allows the boxes");
static_assert(BN == 64 || BN == 128 || BN == 256, "the widths of wgmma.cuh");

__global__ void __launch_bounds__(THREADS)
    bf16_gemm_wgmma_tma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                        __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    TIMELINE_TRACK(track);
    extern __shared__ uint8_t shared[];
    __shared__ uint64_t full;
    uint8_t* a_tile = tma::align(shared);
    uint8_t* b_tile = a_tile + A_BYTES;

    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    if (threadIdx.x == 0) {
        mbarrier::init(&full, 1);
        mbarrier::publish_inits();
    }
    __syncthreads();

    float sum[BM / wgmma::M][BN / 2];
    int parity = 0;  // step s is phase s of `full`
    for (int k0 = 0; k0 < K; k0 += BK) {
        if (threadIdx.x == 0) {
            TIMELINE(track, LOAD);
            mbarrier::expect(&full, A_BYTES + B_BYTES);
            tma::load(a_tile, a_map, block_row, k0, &full);
            tma::load(b_tile, b_map, block_col, k0, &full);
        }
        TIMELINE(track, WAIT);
        mbarrier::wait(&full, parity);
        parity ^= 1;

        const uint64_t a = wgmma::describe(a_tile), b = wgmma::describe(b_tile);
        TIMELINE(track, COMPUTE);
        wgmma::fence();
#pragma unroll
        for (int k = 0; k < BK / wgmma::K; ++k)
#pragma unroll
            for (int i = 0; i < BM / wgmma::M; ++i)
                wgmma::multiply(sum[i], a + i * wgmma::NEXT_M + k * wgmma::NEXT_K, b + k * wgmma::NEXT_K,
                                k0 > 0 || k > 0);
        wgmma::commit();
        wgmma::wait<0>();
        TIMELINE(track, SYNC);
        __syncthreads();  // all four warps are done with the tiles and have seen this phase end
    }

    TIMELINE(track, STORE);
#pragma unroll
    for (int i = 0; i < BM / wgmma::M; ++i) {
        wgmma::pin(sum[i]);
        wgmma::store(sum[i], C, block_row + i * wgmma::M, block_col, M, N);
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map;
    cudaError_t error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(bf16_gemm_wgmma_tma, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    bf16_gemm_wgmma_tma<<<grid, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N, K);
    return cudaGetLastError();
}
