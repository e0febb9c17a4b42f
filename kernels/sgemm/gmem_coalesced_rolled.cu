// gmem_coalesced_rolled: gmem_coalesced with a loop that the compiler must not unroll.
//
// Idea         The compiler unrolls the loop over k of gmem_coalesced and issues the loads of several k before it adds
//              the first product: its SASS has 58 loads for one product in the source. `#pragma unroll 1` keeps one
//              product per iteration, so that a thread waits for its two loads, and every product pays for the counter,
//              the two addresses and the branch.
// Expected     Slower than gmem_coalesced, by what unrolling brings. 64 warps per SM hide much of the latency of L1;
//              the additional instructions remain.
// Cost         More instructions per product, and only two loads of a thread in flight.
// Constraints  Any M, N, K >= 1, any alignment; M up to 65535 * BLOCK (y extent of the grid).
// Source       A. Gordic, Anatomy of high performance matmul kernels, which reads the unrolled loop in the SASS.

#include <cuda_runtime.h>

static_assert(BLOCK * BLOCK <= 1024, "a block holds at most 1024 threads");
static_assert(BLOCK % 32 == 0, "a warp must lie along one side of the block");

__global__ void __launch_bounds__(BLOCK * BLOCK)
    sgemm_gmem_coalesced_rolled(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M,
                                int N, int K, float alpha, float beta) {
    const int row = blockIdx.y * BLOCK + threadIdx.y;
    const int col = blockIdx.x * BLOCK + threadIdx.x;
    if (row >= M || col >= N) return;

    const float* a = A + static_cast<size_t>(row) * K;
    const float* b = B + col;
    float sum = 0.0f;
#pragma unroll 1  // the only difference to gmem_coalesced
    for (int k = 0; k < K; ++k) sum += a[k] * b[static_cast<size_t>(k) * N];

    float* c = C + static_cast<size_t>(row) * N + col;
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;  // with beta == 0, C may hold NaN: not read
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 block(BLOCK, BLOCK);
    const dim3 grid((N - 1) / BLOCK + 1, (M - 1) / BLOCK + 1);
    sgemm_gmem_coalesced_rolled<<<grid, block, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
