// gmem_coalesced: naive with neighbouring lanes on neighbouring columns.
//
// Idea         Rows and columns swap their axes of the block; nothing else changes. A warp now shares one row: its load
//              of A is one address, broadcast to all lanes, and its load of B and its store of C are 128 consecutive
//              bytes, 4 sectors instead of 32.
// Expected     6.4 times naive on an RTX A6000 (309 to 1987 GFLOP/s, Boehm), 7.3 times on an RTX 4090.
// Cost         None: the instructions are those of naive.
// Constraints  Any M, N, K >= 1, any alignment; M up to 65535 * BLOCK (y extent of the grid).
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 2 (siboehm.com/articles/22/CUDA-MMM).

#include <cuda_runtime.h>

static_assert(BLOCK * BLOCK <= 1024, "a block holds at most 1024 threads");
static_assert(BLOCK % 32 == 0, "a warp must lie along one side of the block");

__global__ void __launch_bounds__(BLOCK * BLOCK)
    sgemm_gmem_coalesced(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                         int K, float alpha, float beta) {
    const int row = blockIdx.y * BLOCK + threadIdx.y;
    const int col = blockIdx.x * BLOCK + threadIdx.x;  // neighbouring lanes, neighbouring columns
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
    const dim3 grid((N - 1) / BLOCK + 1, (M - 1) / BLOCK + 1);
    sgemm_gmem_coalesced<<<grid, block, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
