// Rows that are read once, by a block or by lanes of a warp that keep them in registers. See registers.cu and
// warp_per_row.cu.
#pragma once

#include <cuda_runtime.h>

#include "two_reads.cuh"

namespace {

constexpr int MOST_OF_A_WARP = 32 * 8, MOST_OF_A_BLOCK = 8 * 1024;

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

// Launches a block per row, of at most MOST_OF_A_BLOCK packs.
template <typename T>
void launch_blocks(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    if (packs <= 4 * 512)
        layernorm_registers<T, 4, 512><<<layer.row_count, rows::threads_for(packs, 4), 0, stream>>>(layer);
    else
        layernorm_registers<T, 8, 1024><<<layer.row_count, rows::threads_for(packs, 8), 0, stream>>>(layer);
}

// LANES lanes per row, PACKS packs of it per lane.
template <typename T, int LANES, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS) layernorm_warp_per_row(const Layer<T> layer) {
    const int index = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    // Lanes without a row take the last one as well, since the whole warp shuffles, and write nothing.
    const rows::Row<T, true> row(layer.x, min(index, layer.row_count - 1), layer.columns);
    rows::Pack<T> pack[PACKS];
    load_packs(row, lane, LANES, pack);
    const float mean = rows::over_lanes<LANES>(sum_of(pack), rows::Sum()) / layer.columns;
    const float squares = rows::over_lanes<LANES>(squares_of(row, lane, LANES, pack, mean), rows::Sum());
    const float scale = scale_of(squares, layer.columns, layer.epsilon);
    if (index < layer.row_count)
        write_packs(row, layer.gamma, layer.beta, layer.out(index), lane, LANES, pack, mean, scale);
}

// Launches up to a warp per row, of at most MOST_OF_A_WARP packs.
template <int THREADS = 128, typename T>
void launch_warps(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    const auto blocks = [=](int lanes) { return (layer.row_count - 1) / (THREADS / lanes) + 1; };
    if (packs <= 8 * 4)
        layernorm_warp_per_row<T, 8, 4, THREADS><<<blocks(8), THREADS, 0, stream>>>(layer);
    else if (packs <= 32 * 4)
        layernorm_warp_per_row<T, 32, 4, THREADS><<<blocks(32), THREADS, 0, stream>>>(layer);
    else
        layernorm_warp_per_row<T, 32, 8, THREADS><<<blocks(32), THREADS, 0, stream>>>(layer);
}

}  // namespace
