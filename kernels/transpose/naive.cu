// naive: each thread moves elements straight from their place to the transposed one.
//
// Idea         The definition, written down. A block covers a tile of TILE x TILE elements, ROWS rows at a time. The
//              lanes of a warp read neighbouring elements of a row: four sectors. They write neighbouring elements of a
//              column, M floats apart: 32 sectors, of which they fill 4 bytes each.
// Expected     A fraction of a copy's bandwidth; L2 saves it from worse, by merging the stores of neighbouring warps.
// Cost         None in shared memory; all of it in sectors.
// Constraints  Any M, N >= 1, any alignment; M up to 65535 * TILE (the grid's y extent).
// Source       M. Harris, developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc.

#include <cuda_runtime.h>

static_assert(TILE % 32 == 0 && TILE % ROWS == 0 && TILE * ROWS <= 1024, "a block goes over its tile in whole steps");

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
