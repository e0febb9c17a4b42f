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

template <typename T>
static cudaError_t softmax(const T* x, T* y, int row_count, int columns, cudaStream_t stream) {
    const int packs = columns / rows::Pack<T>::SIZE;
    if (!rows::are_aligned<T>(columns, x, y) || packs > MOST_OF_A_BLOCK)
        launch_two_reads(x, y, row_count, columns, stream);
    else if (packs > MOST_OF_A_WARP)
        launch_blocks(x, y, row_count, columns, packs, stream);
    else
        launch_warps<BLOCK>(x, y, row_count, columns, packs, stream);
    return cudaGetLastError();
}

extern "C" int launch(const void* x, void* y, int row_count, int columns, int element_bytes, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        return softmax(static_cast<const T*>(x), static_cast<T*>(y), row_count, columns, stream);
    });
}
