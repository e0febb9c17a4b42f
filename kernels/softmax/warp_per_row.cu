// warp_per_row: a short row is handled by one warp or by eight lanes.
//
// Idea         A row of up to 4 KiB fits into the registers of a warp, and a row of up to 512 bytes into those of eight
//              lanes. These lanes combine with shuffles alone: no shared memory and no barrier, so that no warp waits
//              for another, and 65536 rows of 128 columns are 4096 blocks instead of 65536. Rows of more than 4 KiB are
//              handled by one block each, as in `registers`: at 4096 x 4096 (16 KiB per row, 8 KiB in bf16) this
//              variant runs the code of `registers`.
// Expected     Twice `registers` or more at 128 columns, where a block of 32 threads per row leaves half of the SM's
//              warps unused; the same time above 4 KiB. At 65536 x 128, 0.9 of the bandwidth of a copy.
// Cost         Three template instantiations per element type for different row lengths; a row of 4 KiB takes 32
//              registers per lane.
// Constraints  As `vectorized`.
// Source       NVIDIA, FasterTransformer, and PyTorch, PersistentSoftmax.cuh (a warp per row).

#include <cuda_runtime.h>

#include "one_read.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// LANES lanes per row, PACKS packs of it per lane.
template <typename T, int LANES, int PACKS>
__global__ void __launch_bounds__(BLOCK)
    softmax_warp_per_row(const T* __restrict__ x, T* __restrict__ y, int row_count, int columns) {
    const int index = (blockIdx.x * BLOCK + threadIdx.x) / LANES, lane = threadIdx.x % LANES;
    // Lanes without a row take the last one as well, since the whole warp shuffles, and write nothing.
    const rows::Row<T, true> row(x, min(index, row_count - 1), columns);
    rows::Pack<T> pack[PACKS];
    load_packs(row, lane, LANES, pack);
    const Pair pair = rows::over_lanes<LANES>(pair_of(pack), Combine());
    if (index < row_count) write_packs(row, y + static_cast<size_t>(index) * columns, lane, LANES, pack, pair);
}

template <typename T>
static cudaError_t softmax(const T* x, T* y, int row_count, int columns, cudaStream_t stream) {
    const int packs = columns / rows::Pack<T>::SIZE;
    const auto blocks = [=](int lanes) { return (row_count - 1) / (BLOCK / lanes) + 1; };
    if (!rows::are_aligned<T>(columns, x, y) || packs > MOST_OF_A_BLOCK)
        launch_two_reads(x, y, row_count, columns, stream);
    else if (packs > 32 * 8)
        launch_blocks(x, y, row_count, columns, packs, stream);
    else if (packs > 32 * 4)
        softmax_warp_per_row<T, 32, 8><<<blocks(32), BLOCK, 0, stream>>>(x, y, row_count, columns);
    else if (packs > 8 * 4)
        softmax_warp_per_row<T, 32, 4><<<blocks(32), BLOCK, 0, stream>>>(x, y, row_count, columns);
    else
        softmax_warp_per_row<T, 8, 4><<<blocks(8), BLOCK, 0, stream>>>(x, y, row_count, columns);
    return cudaGetLastError();
}

extern "C" int launch(const void* x, void* y, int row_count, int columns, int element_bytes, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        return softmax(static_cast<const T*>(x), static_cast<T*>(y), row_count, columns, stream);
    });
}
