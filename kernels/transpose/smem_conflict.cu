// smem_conflict: a tile is transposed in shared memory, without padding.
//
// Idea         A warp writes a row of a tile to shared memory and reads a column of it, so that both the load and the
//              store in global memory are rows: four sectors each. The variant contains a deliberate mistake: the tile
//              is 32 floats wide, as many as there are banks, so that a column lies in one bank.
// Expected     Twice as fast as naive or better; reading a column takes 32 wavefronts instead of one.
// Cost         4 KiB of shared memory per block, a barrier, 31 excess wavefronts per read of a warp.
// Constraints  Any M, N >= 1, any alignment; M up to 65535 * TILE (y extent of the grid).
// Source       M. Harris, developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc.

#include <cuda_runtime.h>

static_assert(TILE == 32 && TILE % ROWS == 0, "a row of the tile takes one warp and all banks");

__global__ void __launch_bounds__(TILE * ROWS)
    transpose_smem_conflict(const float* __restrict__ in, float* __restrict__ out, int M, int N) {
    __shared__ float tile[TILE][TILE];  // the mistake: rows of 32 floats, columns in one bank

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
    transpose_smem_conflict<<<grid, block, 0, stream>>>(in, out, M, N);
    return cudaGetLastError();
}
