// Rows that are read once, by a block or by lanes of a warp that keep them in registers. See registers.cu and
// warp_per_row.cu.
#pragma once

#include <cuda_runtime.h>

#include "two_reads.cuh"

namespace {

constexpr int MOST_OF_A_WARP = 32 * 8, MOST_OF_A_BLOCK = 8 * 1024;

// One block per row, PACKS packs of it per thread.
template <typename T, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS, rows::RESIDENT_THREADS / THREADS)
    softmax_registers(const T* __restrict__ x, T* __restrict__ y, int columns) {
    __shared__ Pair part[32];
    const rows::Row<T, true> row(x, blockIdx.x, columns);
    rows::Pack<T> pack[PACKS];
    load_packs(row, threadIdx.x, blockDim.x, pack);
    const Pair pair = rows::over_block(pair_of(pack), no_logits(), part, Combine());
    write_packs(row, y + static_cast<size_t>(blockIdx.x) * columns, threadIdx.x, blockDim.x, pack, pair);
}

// Launches a block per row, of at most MOST_OF_A_BLOCK packs.
template <typename T>
void launch_blocks(const T* x, T* y, int row_count, int columns, int packs, cudaStream_t stream) {
    if (packs <= 4 * 512)
        softmax_registers<T, 4, 512><<<row_count, rows::threads_for(packs, 4), 0, stream>>>(x, y, columns);
    else
        softmax_registers<T, 8, 1024><<<row_count, rows::threads_for(packs, 8), 0, stream>>>(x, y, columns);
}

// LANES lanes per row, PACKS packs of it per lane.
template <typename T, int LANES, int PACKS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_warp_per_row(const T* __restrict__ x, T* __restrict__ y, int row_count, int columns) {
    const int index = (blockIdx.x * THREADS + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    // Lanes without a row take the last one as well, since the whole warp shuffles, and write nothing.
    const rows::Row<T, true> row(x, min(index, row_count - 1), columns);
    rows::Pack<T> pack[PACKS];
    load_packs(row, lane, LANES, pack);
    const Pair pair = rows::over_lanes<LANES>(pair_of(pack), Combine());
    if (index < row_count) write_packs(row, y + static_cast<size_t>(index) * columns, lane, LANES, pack, pair);
}

// Launches up to a warp per row, of at most MOST_OF_A_WARP packs.
template <int THREADS = 128, typename T>
void launch_warps(const T* x, T* y, int row_count, int columns, int packs, cudaStream_t stream) {
    const auto blocks = [=](int lanes) { return (row_count - 1) / (THREADS / lanes) + 1; };
    if (packs <= 8 * 4)
        softmax_warp_per_row<T, 8, 4, THREADS><<<blocks(8), THREADS, 0, stream>>>(x, y, row_count, columns);
    else if (packs <= 32 * 4)
        softmax_warp_per_row<T, 32, 4, THREADS><<<blocks(32), THREADS, 0, stream>>>(x, y, row_count, columns);
    else
        softmax_warp_per_row<T, 32, 8, THREADS><<<blocks(32), THREADS, 0, stream>>>(x, y, row_count, columns);
}

}  // namespace
