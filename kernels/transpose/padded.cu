// padded: the tile of smem_conflict with one unused column.
//
// Idea         With rows of 33 floats, element (row, col) lies in bank (row + col) % 32, so that the lanes of a warp
//              access 32 different banks along a row and along a column.
// Expected     No excess wavefronts, unlike smem_conflict; near the bandwidth of a copy.
// Cost         128 additional bytes of shared memory per tile.
// Constraints  Any M, N >= 1, any alignment; M up to 65535 * TILE (y extent of the grid).
// Source       M. Harris, developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc.

#include <cuda_runtime.h>

static_assert(TILE == 32 && TILE % ROWS == 0, "a row of the tile takes one warp and all banks");

__global__ void __launch_bounds__(TILE * ROWS)
    transpose_padded(const float* __restrict__ in, float* __restrict__ out, int M, int N) {
    __shared__ float tile[TILE][TILE + 1];

    const int block_row = blockIdx.y * TILE, block_col = blockIdx.x * TILE;
    const int lane = threadIdx.x;
#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int row = block_row + i, col = block_col + lane;
        if (row < M && col < N) tile[i][lane] = in[static_cast<size_t>(row) * N + col];
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int row = block_row + lane, col = block_col + i;  // lanes along a column of the tile
        if (row < M && col < N) out[static_cast<size_t>(col) * M + row] = tile[lane][i];
    }
}

extern "C" int launch(const float* in, float* out, int M, int N, cudaStream_t stream) {
    const dim3 block(TILE, ROWS);
    const dim3 grid((N - 1) / TILE + 1, (M - 1) / TILE + 1);
    transpose_padded<<<grid, block, 0, stream>>>(in, out, M, N);
    return cudaGetLastError();
}
