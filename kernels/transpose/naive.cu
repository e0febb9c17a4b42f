// naive: each thread moves elements directly to their transposed place.
//
// Idea         The definition of a transposition. A block covers a tile of TILE x TILE elements, ROWS rows at a time.
//              The lanes of a warp read neighbouring elements of a row: four sectors. They write neighbouring elements
//              of a column, M floats apart: 32 sectors, with 4 bytes written in each.
// Expected     A fraction of the bandwidth of a copy; L2 prevents worse by merging the stores of neighbouring warps.
// Cost         Additional sectors of the stores; no shared memory.
// Constraints  Any M, N >= 1, any alignment; M up to 65535 * TILE (y extent of the grid).
// Source       M. Harris, developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc.

#include <cuda_runtime.h>

static_assert(TILE % 32 == 0 && TILE % ROWS == 0 && TILE * ROWS <= 1024, "a block covers its tile in whole steps");

__global__ void __launch_bounds__(TILE * ROWS)
    transpose_naive(const float* __restrict__ in, float* __restrict__ out, int M, int N) {
    const int col = blockIdx.x * TILE + threadIdx.x;
    const int first = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int i = 0; i < TILE; i += ROWS) {
        const int row = first + i;
        if (row < M && col < N) out[static_cast<size_t>(col) * M + row] = in[static_cast<size_t>(row) * N + col];
    }
}

extern "C" int launch(const float* in, float* out, int M, int N, cudaStream_t stream) {
    const dim3 block(TILE, ROWS);
    const dim3 grid((N - 1) / TILE + 1, (M - 1) / TILE + 1);
    transpose_naive<<<grid, block, 0, stream>>>(in, out, M, N);
    return cudaGetLastError();
}
