// naive: one thread computes one element of C, and the lanes of a warp lie in different rows.
//
// Idea         The definition of the product: thread (x, y) of a block owns row x and column y and loops over K. The
//              variant contains a deliberate mistake: threadIdx.x, which numbers the lanes of a warp, selects the ROW.
//              The 32 lanes then read 32 rows of A, K floats apart, so that every load of A touches 32 sectors of 32
//              bytes and uses 4 bytes of each; the stores of C are scattered in the same way.
// Expected     309 GFLOP/s on an RTX A6000, about 1 % of cuBLAS (Boehm).
// Cost         Memory transactions only; the kernel needs few registers and no shared memory.
// Constraints  Any M, N, K >= 1, any alignment; N up to 65535 * BLOCK (y extent of the grid).
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 1 (siboehm.com/articles/22/CUDA-MMM).

#include <cuda_runtime.h>

static_assert(BLOCK * BLOCK <= 1024, "a block holds at most 1024 threads");
static_assert(BLOCK % 32 == 0, "a warp must lie along one side of the block");

__global__ void __launch_bounds__(BLOCK * BLOCK)
    sgemm_naive(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                float alpha, float beta) {
    const int row = blockIdx.x * BLOCK + threadIdx.x;  // neighbouring lanes, neighbouring rows: the mistake
    const int col = blockIdx.y * BLOCK + threadIdx.y;
    if (row >= M || col >= N) return;

    const float* a = A + static_cast<size_t>(row) * K;
    const float* b = B + col;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += a[k] * b[static_cast<size_t>(k) * N];

    float* c = C + static_cast<size_t>(row) * N + col;
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;  // with beta == 0, C may hold NaN: not read
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 block(BLOCK, BLOCK);
    const dim3 grid((M - 1) / BLOCK + 1, (N - 1) / BLOCK + 1);
    sgemm_naive<<<grid, block, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
