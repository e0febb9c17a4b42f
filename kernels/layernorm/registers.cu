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

#include "two_reads.cuh"

// One block per row, PACKS packs of it per thread.
template <typename T, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS, rows::RESIDENT_THREADS / THREADS) layernorm_registers(const Layer<T> layer) {
    __shared__ float sums[32], deviations[32];
    const rows::Row<T, true> row(layer.x, blockIdx.x, layer.columns);
    rows::Pack<T> pack[PACKS];
    load_packs(row, threadIdx.x, blockDim.x, pack);
    const float mean = rows::over_block(sum_of(pack), 0.0f, sums, rows::Sum()) / layer.columns;
    float squares = squares_of(row, threadIdx.x, blockDim.x, pack, mean);
    squares = rows::over_block(squares, 0.0f, deviations, rows::Sum());
    write_packs(row, layer.gamma, layer.beta, layer.out(blockIdx.x), threadIdx.x, blockDim.x, pack, mean,
                scale_of(squares, layer.columns, layer.epsilon));
}

template <typename T>
static cudaError_t layernorm(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    if (!layer.is_aligned() || packs > 8 * 1024)
        launch_two_reads(layer, stream);
    else if (packs <= 4 * 512)
        layernorm_registers<T, 4, 512><<<layer.row_count, rows::threads_for(packs, 4), 0, stream>>>(layer);
    else
        layernorm_registers<T, 8, 1024><<<layer.row_count, rows::threads_for(packs, 8), 0, stream>>>(layer);
    return cudaGetLastError();
}

extern "C" int launch(const void* x, const void* gamma, const void* beta, void* y, int row_count, int columns,
                      int element_bytes, float epsilon, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        return layernorm(layer_of<T>(x, gamma, beta, y, row_count, columns, epsilon), stream);
    });
}
