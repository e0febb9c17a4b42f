// smem_tiled: the threads of a block share tiles of A and B in shared memory.
//
// Idea         A TILE x TILE block of C requires TILE rows of A and TILE columns of B. The block walks along K in steps
//              of TILE and copies one tile of each into shared memory, one element per thread. Each element is then
//              used TILE times from there: a thread loads K/16 elements from global memory instead of 2K (TILE = 32).
// Expected     1.5 times gmem_coalesced on an RTX A6000 (1987 to 2980 GFLOP/s, Boehm), 1.8 times on an RTX 4090; not
//              more, since the L1 cache already caught most of the reuse.
// Cost         8 KiB of shared memory; two barriers per step; two operands from shared memory per multiply-add.
// Constraints  Any M, N, K >= 1, any alignment (elements outside count as zero); M up to 65535 * TILE.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 3 (siboehm.com/articles/22/CUDA-MMM).

#include <cuda_runtime.h>

static_assert(TILE * TILE <= 1024, "a block holds at most 1024 threads");
static_assert(TILE % 32 == 0, "a warp must lie along one row of the tile");

__global__ void __launch_bounds__(TILE * TILE)
    sgemm_smem_tiled(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                     int K, float alpha, float beta) {
    __shared__ float a_tile[TILE][TILE];  // [row][k]
    __shared__ float b_tile[TILE][TILE];  // [k][col]

    const int x = threadIdx.x;
    const int y = threadIdx.y;
    const int row = blockIdx.y * TILE + y;
    const int col = blockIdx.x * TILE + x;
    const float* a = A + static_cast<size_t>(row) * K;
    const float* b = B + col;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Threads outside C stay in the loop: they copy zeros, and the barriers require them.
        a_tile[y][x] = row < M && k0 + x < K ? a[k0 + x] : 0.0f;
        b_tile[y][x] = col < N && k0 + y < K ? b[static_cast<size_t>(k0 + y) * N] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) sum += a_tile[y][k] * b_tile[k][x];
        __syncthreads();  // no warp may overwrite a tile that another one still reads
    }

    if (row >= M || col >= N) return;
    float* c = C + static_cast<size_t>(row) * N + col;
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;  // with beta == 0, C may hold NaN: not read
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 block(TILE, TILE);
    const dim3 grid((N - 1) / TILE + 1, (M - 1) / TILE + 1);
    sgemm_smem_tiled<<<grid, block, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
