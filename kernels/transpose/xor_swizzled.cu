// xor_swizzled: the tile of smem_conflict with its columns permuted in each row.
//
// Idea         Element (row, col) is kept at column col ^ row. This is a permutation of all 32 banks for each row and
//              for each column: no conflicts in either direction, without a byte of padding. Rows keep their alignment,
//              which wide accesses, TMA and tensor cores require.
// Expected     The time of padded, and no excess wavefronts.
// Cost         One exclusive or per access.
// Constraints  Any M, N >= 1, any alignment; M up to 65535 * TILE (y extent of the grid).
// Source       NVIDIA CUTLASS, swizzled shared memory layouts (github.com/NVIDIA/cutlass, include/cute/swizzle.hpp).

#include <cuda_runtime.h>

static_assert(TILE == 32 && TILE % ROWS == 0, "a row of the tile takes one warp and all banks");

__global__ void __launch_bounds__(TILE * ROWS)
    transpose_xor_swizzled(const float* __restrict__ in, float* __restrict__ out, int M, int N) {
    __shared__ float tile[TILE][TILE];

    const int block_row = blockIdx.y * TILE, block_col = blockIdx.x * TILE;
    const int lane = threadIdx.x;
#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int row = block_row + i, col = block_col + lane;
        if (row < M && col < N) tile[i][lane ^ i] = in[static_cast<size_t>(row) * N + col];
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += ROWS) {
        const int row = block_row + lane, col = block_col + i;  // lanes along a column of the tile
        if (row < M && col < N) out[static_cast<size_t>(col) * M + row] = tile[lane][i ^ lane];
    }
}

extern "C" int launch(const float* in, float* out, int M, int N, cudaStream_t stream) {
    const dim3 block(TILE, ROWS);
    const dim3 grid((N - 1) / TILE + 1, (M - 1) / TILE + 1);
    transpose_xor_swizzled<<<grid, block, 0, stream>>>(in, out, M, N);
    return cudaGetLastError();
}
