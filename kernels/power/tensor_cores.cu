// tensor_cores: a bf16 GEMM whose instructions are the same for all data.
//
// Idea         The power of a circuit depends on how many of its wires change from one cycle to the next. The
//              instructions and addresses of a GEMM, and the number of bytes it moves, do not depend on its data, so
//              the same kernel on random, constant and zero matrices differs only in the bits that pass through
//              multipliers and wires. The kernel is a plain one that keeps the tensor cores busy: cp.async into a ring
//              of stages, ldmatrix, mma.
// Expected     Random data draw the most power. Where they reach the power limit of the board, the clock falls, and the
//              kernel is slower than on zeros in the same proportion. Below the limit, the time is the same for all
//              data, but the energy is not.
// Cost         STAGES * (BM + BN) * 128 bytes of shared memory.
// Constraints  M a multiple of BM, N of BN, K of 64; A and B aligned to 16 bytes, C aligned to 4. M up to 65535 * BM.
// Source       A. Gordic, Anatomy of high performance matmul kernels (data and clock); H. He, Strangely, matrix
//              multiplications on GPUs run faster when given "predictable" data (thonking.ai).

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "mma.cuh"

constexpr int BK = 64;  // terms per step: 128 bytes per row, each bank once
constexpr int CHUNK = 8;  // bf16 in 16 bytes
constexpr int CHUNKS = BK / CHUNK;
constexpr int WARPS_N = BN / WN;
constexpr int THREADS = BM / WM * WARPS_N * 32;
constexpr int STAGE_ELEMENTS = (BM + BN) * BK;
constexpr int SHARED_BYTES = STAGES * STAGE_ELEMENTS * 2;
constexpr int ROW_STEP = THREADS / CHUNKS;  // rows that all threads copy at a time

static_assert(BM % WM == 0 && BN % WN == 0 && WM % 16 == 0 && WN % 16 == 0, "tiles are divided into whole tiles");
static_assert(BM % ROW_STEP == 0 && BN % ROW_STEP == 0 && ROW_STEP % 8 == 0, "the copies take whole steps");
static_assert(STAGES >= 2, "one stage is read while another is filled");

// Place of 16 bytes of a row of a tile, in elements: eight rows of a matrix lie in eight groups of banks.
__device__ __forceinline__ unsigned place(unsigned row, unsigned chunk) { return row * BK + (chunk ^ row % 8) * CHUNK; }

__global__ void __launch_bounds__(THREADS)
    power_tensor_cores(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
                       __nv_bfloat16* __restrict__ C, int N, int K) {
    extern __shared__ __align__(128) __nv_bfloat16 stages[];  // each has BM rows of A, then BN rows of B

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const size_t block_row = blockIdx.y * size_t(BM), block_col = blockIdx.x * size_t(BN);
    const int warp_row = warp / WARPS_N * WM, warp_col = warp % WARPS_N * WN;
    const int step_count = K / BK;

    const int my_row = tid / CHUNKS, my_k = tid % CHUNKS * CHUNK;
    const __nv_bfloat16* a = A + (block_row + my_row) * K + my_k;
    const __nv_bfloat16* b = B + (block_col + my_row) * K + my_k;
    const unsigned to = place(my_row, tid % CHUNKS);

    // One group per step, also an empty one, so that groups count steps.
    const auto fetch = [&](int step) {
        if (step < step_count) {
            __nv_bfloat16* stage = stages + step % STAGES * STAGE_ELEMENTS + to;
#pragma unroll
            for (int i = 0; i < BM; i += ROW_STEP)
                mma::copy_async(stage + i * BK, a + static_cast<size_t>(i) * K + step * BK, 16);
#pragma unroll
            for (int i = 0; i < BN; i += ROW_STEP)
                mma::copy_async(stage + (BM + i) * BK, b + static_cast<size_t>(i) * K + step * BK, 16);
        }
        mma::commit_copies();
    };

    float sum[WM / 16][WN / 8][4] = {};
    for (int step = 0; step < STAGES - 1; ++step) fetch(step);

    for (int step = 0; step < step_count; ++step) {
        // After the barrier the tiles of this step are visible to all threads, and the stage that is filled next is no
        // longer read.
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
                const size_t row = block_row + warp_row + i * 16 + h * 8 + lane / 4;
                const size_t col = block_col + warp_col + j * 8 + lane % 4 * 2;
                *reinterpret_cast<__nv_bfloat162*>(C + row * N + col) =
                    __floats2bfloat162_rn(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
            }
        }
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      int pattern, cudaStream_t stream) {
    static_cast<void>(pattern);  // determines the inputs only
    const cudaError_t error =
        cudaFuncSetAttribute(power_tensor_cores, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    power_tensor_cores<<<dim3(N / BN, M / BM), THREADS, SHARED_BYTES, stream>>>(A, B, C, N, K);
    return cudaGetLastError();
}
