// The order in which persistent blocks take the tiles of a matrix.
#pragma once

#include <cuda_runtime.h>

namespace {
namespace tiles {

struct Tile {
    int row, column;
};

// Tile number `index` of rows x columns tiles: groups of `group` rows are gone through column by column, so that tiles
// taken at the same time lie in a block, share rows and columns, and find them in L2. A group of 1 is row by row.
__device__ __forceinline__ Tile in_groups(int index, int rows, int columns, int group) {
    const int first_row = index / (group * columns) * group, within = index % (group * columns);
    const int group_rows = min(group, rows - first_row);  // the last group may be smaller
    return {first_row + within % group_rows, within / group_rows};
}

}  // namespace tiles

// Blocks that fill the device, one a multiprocessor.
inline cudaError_t multiprocessors(int* count) {
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    return cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

}  // namespace
