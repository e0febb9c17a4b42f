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
// Source       NVIDIA, Apex, contrib/layer_norm (a warp per row).

#include <cuda_runtime.h>

#include "one_read.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

template <typename T>
static cudaError_t layernorm(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    if (!layer.is_aligned() || packs > MOST_OF_A_BLOCK)
        launch_two_reads(layer, stream);
    else if (packs > MOST_OF_A_WARP)
        launch_blocks(layer, stream);
    else
        launch_warps<BLOCK>(layer, stream);
    return cudaGetLastError();
}

extern "C" int launch(const void* x, const void* gamma, const void* beta, void* y, int row_count, int columns,
                      int element_bytes, float epsilon, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        return layernorm(layer_of<T>(x, gamma, beta, y, row_count, columns, epsilon), stream);
    });
}
