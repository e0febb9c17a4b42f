// registers: a block keeps its row in registers, so that each element is read once and written once.
//
// Idea         A thread loads four packs (eight in the longest rows) and keeps them until it writes their results. So
//              the mean and then the squared differences from it are two sums over registers, as the definition says,
//              without a merge. A block has as many threads as its row requires, and all loads of a row are in flight
//              together: at 1536 threads per SM, 96 KiB, four times what the latency of DRAM requires.
// Expected     1.2 times `vectorized` at 4096 x 4096, at least 0.9 of the bandwidth of a copy. L2 delivers half as many
//              bytes of x, and the wait for the second read is gone.
// Cost         A row of more than 64 KiB occupies an SM alone, which then loads, waits and writes in turns. Rows of
//              more than 128 KiB, and rows whose size or address is not a multiple of 16 bytes, are read twice, as in
//              `vectorized`.
// Constraints  As `vectorized`.
// Source       V. Volkov, Better performance at lower occupancy, GTC 2010 (registers in place of memory); NVIDIA, Apex,
//              contrib/layer_norm (rows in registers).

#include <cuda_runtime.h>

#include "one_read.cuh"

template <typename T>
static cudaError_t layernorm(const Layer<T>& layer, cudaStream_t stream) {
    if (!layer.is_aligned() || layer.packs() > MOST_OF_A_BLOCK)
        launch_two_reads(layer, stream);
    else
        launch_blocks(layer, stream);
    return cudaGetLastError();
}

extern "C" int launch(const void* x, const void* gamma, const void* beta, void* y, int row_count, int columns,
                      int element_bytes, float epsilon, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        return layernorm(layer_of<T>(x, gamma, beta, y, row_count, columns, epsilon), stream);
    });
}
