// wmma_naive: tensor cores with operands directly from global memory.
//
// Idea         A warp computes one tile of 16 x 16 results with nvcuda::wmma: 16 terms of A and of B are loaded into
//              fragments and multiplied, and so on along K. It is the counterpart of the fp32 kernel naive on tensor
//              cores.
// Expected     No figure is published. A warp loads 1 KiB for 8192 FLOP, all of it through L1 and in loads of 4 bytes
//              per lane: some tens of TFLOP/s at best, a small part of the tensor peak.
// Cost         Every element of A is loaded N / 16 times and every element of B M / 16 times; no load overlaps a
//              product of the same warp.
// Constraints  M, N, K multiples of 16, since a fragment is loaded as a whole; arrays aligned to 32 bytes. M up to
//              65535 * 16 * WARPS_M.
// Source       CUDA C++ Programming Guide, warp matrix functions.

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;

constexpr int TILE = 16;  // rows, columns and terms of a fragment
constexpr int THREADS = WARPS_M * WARPS_N * 32;

static_assert(THREADS <= 1024, "a block holds at most 1024 threads");

__global__ void __launch_bounds__(THREADS)
    bf16_gemm_wmma_naive(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ B,
                         __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    __shared__ __align__(32) float results[WARPS_M * WARPS_N][TILE * TILE];

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = (blockIdx.y * WARPS_M + warp / WARPS_N) * TILE;
    const int col = (blockIdx.x * WARPS_N + warp % WARPS_N) * TILE;
    if (row >= M || col >= N) return;

    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    const __nv_bfloat16* a = A + static_cast<size_t>(row) * K;
    const __nv_bfloat16* b = B + static_cast<size_t>(col) * K;
    for (int k = 0; k < K; k += TILE) {
        wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __nv_bfloat16, wmma::row_major> a_part;
        // Rows of B are columns of the second operand.
        wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __nv_bfloat16, wmma::col_major> b_part;
        wmma::load_matrix_sync(a_part, a + k, K);
        wmma::load_matrix_sync(b_part, b + k, K);
        wmma::mma_sync(sum, a_part, b_part, sum);
    }

    // The mapping of elements to lanes of a fragment is unspecified, so results pass through shared memory.
    wmma::store_matrix_sync(results[warp], sum, TILE, wmma::mem_row_major);
    __syncwarp();
    for (int i = lane; i < TILE * TILE; i += 32)
        C[static_cast<size_t>(row + i / TILE) * N + col + i % TILE] = __float2bfloat16(results[warp][i]);
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / (TILE * WARPS_N) + 1, (M - 1) / (TILE * WARPS_M) + 1);
    bf16_gemm_wmma_naive<<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K);
    return cudaGetLastError();
}
