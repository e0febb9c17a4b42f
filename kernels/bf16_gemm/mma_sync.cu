// mma_sync: products in PTX, tiles without bank conflicts, and copies several steps ahead.
//
// Idea         Three things that wmma hides are done by hand. cp.async copies STAGES - 1 tiles ahead without registers,
//              so that a step has one barrier and its bytes have already arrived. ldmatrix reads four 8x8 matrices per
//              instruction, from rows of 128 bytes whose 16-byte chunk c lies at place c ^ (row % 8): the eight rows of
//              a matrix then lie in eight different groups of banks. And mma.m16n8k16 has a documented layout, so that
//              results are stored to C directly from registers.
// Expected     Faster than wmma_cp_async, which has one step in flight and passes results through shared memory. 60 to
//              70 % of cuBLAS on an A100 for similar kernels (Deep dive 02, CUDA programming). Less on Hopper, where
//              mma alone cannot keep the tensor cores busy.
// Cost         STAGES * (BM + BN) * 128 bytes of shared memory.
// Constraints  Any M, N >= 1. K a multiple of 8 and A and B aligned to 16 bytes, since copies are 16 bytes wide; C
//              aligned to 4 bytes. M up to 65535 * BM.
// Source       PTX ISA, mma, ldmatrix, cp.async; Deep dive 02, CUDA programming.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "mma.cuh"

constexpr int BK = 64;         // terms per step: 128 bytes per row, each bank once
constexpr int CHUNK = 8;       // bf16 in 16 bytes
constexpr int CHUNKS = BK / CHUNK;
constexpr int WARPS_N = BN / WN;
constexpr int THREADS = BM / WM * WARPS_N * 32;
constexpr int STAGE_ELEMENTS = (BM + BN) * BK;
constexpr int SHARED_BYTES = STAGES * STAGE_ELEMENTS * 2;
constexpr int ROW_STEP = THREADS / CHUNKS;  // rows that all threads copy at a time

static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0, "tiles are divided into whole tiles");
static_assert(BM % ROW_STEP == 0 && BN % ROW_STEP == 0 && ROW_STEP % 8 == 0, "the copies take whole steps");
static_assert(STAGES >= 2, "one stage is read while another is filled");

// Place of chunk `chunk` of row `row` of a tile, in elements.
__device__ __forceinline__ unsigned place(unsigned row, unsigned chunk) { return row * BK + (chunk ^ row % 8) * CHUNK; }

__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    bf16_gemm_mma_sync(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
                       __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ __align__(128) __nv_bfloat16 stages[];  // each has BM rows of A, then BN rows of B

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;
    const int step_count = (K - 1) / BK + 1;

    // The copy: a thread copies the same chunk of every ROW_STEP-th row.
    const int my_row = tid / CHUNKS, my_k = tid % CHUNKS * CHUNK;
    const __nv_bfloat16* a = A + static_cast<size_t>(block_row + my_row) * K + my_k;
    const __nv_bfloat16* b = B + static_cast<size_t>(block_col + my_row) * K + my_k;
    const int a_rows = M - block_row - my_row, b_rows = N - block_col - my_row;
    const unsigned to = place(my_row, tid % CHUNKS);

    // Every thread commits one group per step, also an empty one, so that groups count steps. Elements outside the
    // matrix become zero and are not read; their address is that of the array, which is valid.
    const auto fetch = [&](int step) {
        if (step < step_count) {
            __nv_bfloat16* stage = stages + step % STAGES * STAGE_ELEMENTS + to;
            const int k0 = step * BK;
            const bool k_exists = k0 + my_k < K;
#pragma unroll
            for (int i = 0; i < BM; i += ROW_STEP) {
                const bool exists = k_exists && i < a_rows;
                mma::copy_async(stage + i * BK, exists ? a + static_cast<size_t>(i) * K + k0 : A, exists ? 16 : 0);
            }
#pragma unroll
            for (int i = 0; i < BN; i += ROW_STEP) {
                const bool exists = k_exists && i < b_rows;
                mma::copy_async(stage + (BM + i) * BK, exists ? b + static_cast<size_t>(i) * K + k0 : B,
                                exists ? 16 : 0);
            }
        }
        mma::commit_copies();
    };

    float sum[WM / 16][WN / 8][4] = {};
    for (int step = 0; step < STAGES - 1; ++step) fetch(step);

    for (int step = 0; step < step_count; ++step) {
        // STAGES - 1 + step groups are committed, so all but the newest STAGES - 2 belong to steps up to this one.
        // After the barrier their data are visible to all threads, and the stage of step - 1, which is filled next, is
        // no longer read.
        mma::wait_copies<STAGES - 2>();
        __syncthreads();
        fetch(step + STAGES - 1);

        const __nv_bfloat16* a_tile = stages + step % STAGES * STAGE_ELEMENTS;
        const __nv_bfloat16* b_tile = a_tile + BM * BK;
#pragma unroll
        for (int k = 0; k < CHUNKS; k += 2) {  // two chunks are 16 terms
            uint32_t a_part[WM / 16][4], b_part[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)  // matrices: rows 0-7, rows 8-15, then both 8 terms further
                mma::load_matrices(a_part[i], a_tile + place(warp_row + i * 16 + lane % 16, k + lane / 16));
#pragma unroll
            for (int j = 0; j < WN / 16; ++j)  // columns 0-7, the same 8 terms further, then columns 8-15
                mma::load_matrices(
                    b_part[j], b_tile + place(warp_col + j * 16 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2));
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 8; ++j)
                    mma::multiply(sum[i][j], a_part[i], b_part[j / 2][j % 2 * 2], b_part[j / 2][j % 2 * 2 + 1]);
        }
    }

#pragma unroll
    for (int i = 0; i < WM / 16; ++i) {
#pragma unroll
        for (int j = 0; j < WN / 8; ++j) {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = block_row + warp_row + i * 16 + h * 8 + lane / 4;
                const int col = block_col + warp_col + j * 8 + lane % 4 * 2;
                __nv_bfloat16* c = C + static_cast<size_t>(row) * N + col;
                const __nv_bfloat162 pair = __floats2bfloat162_rn(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
                if (row < M && col + 1 < N && N % 2 == 0) {
                    *reinterpret_cast<__nv_bfloat162*>(c) = pair;
                } else if (row < M) {  // odd rows do not start on a word
                    if (col < N) c[0] = pair.x;
                    if (col + 1 < N) c[1] = pair.y;
                }
            }
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    const cudaError_t error =
        cudaFuncSetAttribute(bf16_gemm_mma_sync, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    bf16_gemm_mma_sync<<<grid, THREADS, SHARED_BYTES, stream>>>(A, B, C, M, N, K);
    return cudaGetLastError();
}
