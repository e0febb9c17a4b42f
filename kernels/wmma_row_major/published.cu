// published, shared_assumed, shared_pointers, padded, padded_shared: a GEMM with wmma as an article publishes it, B
// row-major and C in fp32.
//
// Idea         published: a block of four warps computes 128 x 128 results, each warp 64 x 64, as 4 x 4 fragments of 16
//              x 16. Steps of 32 terms are copied by cp.async into two stages that take turns, rows without padding. B
//              is row-major: the terms of a column lie below one another.
//              shared_assumed (ASSUME = 1): wmma loads take generic pointers, and the compiler emits generic loads of
//              four bytes (LD), which look up at run time that an address is in shared memory, and transposes B in
//              registers (MOVM). An assumption states that the pointers are to shared memory.
//              shared_pointers (SHARED = 1): the same load in PTX, with an address in shared memory. It becomes one
//              ldmatrix (LDSM) per fragment, which also transposes.
//              padded (PAD = 8): rows are 16 bytes longer, so that the eight rows that a load reads at a time begin in
//              different banks. Rows of A have 64 bytes without padding, of which every second begins in the same bank,
//              those of B 256.
//              padded_shared: both.
// Expected     published: 60 to 70 % of cuBLAS at 2048 on an A100 (Deep dive 02). Here its loads have 4-way conflicts
//              in A and 8-way ones in B: 192 passes through shared memory per warp and 16 terms, whose products take a
//              quarter of that time. shared_assumed: the same code. shared_pointers: fewer instructions, as many
//              conflicts. padded: 32 passes, so it is much faster. padded_shared: faster still.
// Cost         128 sums per thread beside the fragments: registers limit an SM to two blocks of four warps.
// Constraints  M and N multiples of 128, K of 32; arrays aligned to 16 bytes. M up to 65535 * 128.
// Source       Deep dive 02, CUDA programming, chapter 14; CUDA C++ Programming Guide, warp matrix functions and
//              address space predicate functions; PTX ISA, wmma.load.

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

#include "mma.cuh"

namespace wmma = nvcuda::wmma;

constexpr int BM = 128, BN = 128, BK = 32, WM = 64, WN = 64, TILE = 16;
constexpr int CHUNK = 8;  // bf16 in 16 bytes
constexpr int WARPS_N = BN / WN, THREADS = BM / WM * WARPS_N * 32;
constexpr int A_PITCH = BK + PAD, B_PITCH = BN + PAD;

// Copies `ROWS` rows of `COLUMNS` elements to shared memory, 16 bytes per thread at a time.
template <int ROWS, int COLUMNS>
__device__ __forceinline__ void copy_tile(__nv_bfloat16* to, int to_pitch, const __nv_bfloat16* from, int from_pitch) {
    constexpr int ROW_CHUNKS = COLUMNS / CHUNK;
#pragma unroll
    for (int i = 0; i < ROWS * ROW_CHUNKS / THREADS; ++i) {
        const int chunk = threadIdx.x + i * THREADS, row = chunk / ROW_CHUNKS, column = chunk % ROW_CHUNKS * CHUNK;
        mma::copy_async(to + row * to_pitch + column, from + static_cast<size_t>(row) * from_pitch + column, 16);
    }
}

using PartOfA = wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __nv_bfloat16, wmma::row_major>;
using PartOfB = wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __nv_bfloat16, wmma::row_major>;

// What load_matrix_sync does, with an address in shared memory: four registers of two elements.
__device__ __forceinline__ void load_shared(PartOfA& part, const __nv_bfloat16* from, int pitch) {
    uint32_t* to = reinterpret_cast<uint32_t*>(part.x);
    asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))), "r"(pitch)
                 : "memory");
}

__device__ __forceinline__ void load_shared(PartOfB& part, const __nv_bfloat16* from, int pitch) {
    uint32_t* to = reinterpret_cast<uint32_t*>(part.x);
    asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(from))), "r"(pitch)
                 : "memory");
}

template <typename Part>
__device__ __forceinline__ void load(Part& part, const __nv_bfloat16* from, int pitch) {
    if constexpr (SHARED) {
        load_shared(part, from, pitch);
    } else {
        if constexpr (ASSUME) __builtin_assume(__isShared(from));
        wmma::load_matrix_sync(part, from, pitch);
    }
}

__global__ void __launch_bounds__(THREADS)
    wmma_row_major(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B, float* __restrict__ C,
                   int M, int N, int K) {
    __shared__ __align__(128) __nv_bfloat16 a_tile[2][BM * A_PITCH];
    __shared__ __align__(128) __nv_bfloat16 b_tile[2][BK * B_PITCH];

    const int warp = threadIdx.x / 32, warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const auto fetch = [&](int k0, int stage) {
        copy_tile<BM, BK>(a_tile[stage], A_PITCH, A + static_cast<size_t>(block_row) * K + k0, K);
        copy_tile<BK, BN>(b_tile[stage], B_PITCH, B + static_cast<size_t>(k0) * N + block_col, N);
        mma::commit_copies();
    };

    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum[WM / TILE][WN / TILE];
#pragma unroll
    for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j) wmma::fill_fragment(sum[i][j], 0.0f);

    fetch(0, 0);
    for (int k0 = 0, stage = 0; k0 < K; k0 += BK, stage ^= 1) {
        if (k0 + BK < K) {
            fetch(k0 + BK, stage ^ 1);
            mma::wait_copies<1>();
        } else {
            mma::wait_copies<0>();
        }
        __syncthreads();  // the tiles of this step are there
#pragma unroll
        for (int k = 0; k < BK; k += TILE) {
            PartOfA a_part[WM / TILE];
            PartOfB b_part[WN / TILE];
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i)
                load(a_part[i], a_tile[stage] + (warp_row + i * TILE) * A_PITCH + k, A_PITCH);
#pragma unroll
            for (int j = 0; j < WN / TILE; ++j)
                load(b_part[j], b_tile[stage] + k * B_PITCH + warp_col + j * TILE, B_PITCH);
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
                for (int j = 0; j < WN / TILE; ++j) wmma::mma_sync(sum[i][j], a_part[i], b_part[j], sum[i][j]);
        }
        __syncthreads();  // the tiles of this step are read, and may be overwritten
    }

#pragma unroll
    for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j)
            wmma::store_matrix_sync(C + static_cast<size_t>(block_row + warp_row + i * TILE) * N + block_col +
                                        warp_col + j * TILE,
                                    sum[i][j], N, wmma::mem_row_major);
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int M, int N, int K,
                      cudaStream_t stream) {
    wmma_row_major<<<dim3(N / BN, M / BM), THREADS, 0, stream>>>(A, B, C, M, N, K);
    return cudaGetLastError();
}
