// The order in which persistent blocks or clusters take the tiles of a matrix, and how many of them are launched.
#pragma once

#include <cuda_runtime.h>

namespace {
namespace tiles {

struct Tile {
    int row, column;
};

__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }

// Tile number `index` of rows x columns tiles. Groups of `group` rows are walked through column by column, so that
// tiles taken at the same time are close together and share rows and columns in L2. A group of 1 is row by row.
__host__ __device__ __forceinline__ Tile in_groups(int index, int rows, int columns, int group) {
    const int first_row = index / (group * columns) * group, within = index % (group * columns);
    const int group_rows = smaller(group, rows - first_row);  // the last group may be smaller
    return {first_row + within % group_rows, within / group_rows};
}

// Place number `distance` on the Hilbert curve through a square of `side` x `side` tiles; `side` is a power of two.
// Neighbours on the curve are neighbours in the square, and any section of it is about as high as it is wide.
__host__ __device__ __forceinline__ Tile on_hilbert_curve(int distance, int side) {
    int row = 0, column = 0;
    for (int half = 1; half < side; half *= 2, distance /= 4) {
        const int right = distance / 2 & 1, down = (distance ^ right) & 1;
        if (!down) {  // the curve of this quarter is turned, so that its ends meet those of its neighbours
            const int old_row = right ? half - 1 - row : row, old_column = right ? half - 1 - column : column;
            row = old_column, column = old_row;
        }
        row += half * down, column += half * right;
    }
    return {row, column};
}

// Tile number `index` of rows x columns tiles, in the largest squares that fit, each along its Hilbert curve. The rest
// at the lower and right border goes column by column.
__host__ __device__ __forceinline__ Tile along_hilbert(int index, int rows, int columns) {
    int side = 1;
    while (2 * side <= smaller(rows, columns)) side *= 2;
    const int first_row = index / (side * columns) * side, within = index % (side * columns);
    const int height = smaller(side, rows - first_row);
    const int first_column = within / (side * height) * side, inside = within % (side * height);
    const int width = smaller(side, columns - first_column);
    Tile tile = {inside % height, inside / height};
    if (height == side && width == side) tile = on_hilbert_curve(inside, side);
    return {first_row + tile.row, first_column + tile.column};
}

// The fewest workers that need no more rounds for `work` than `most` workers: all get the same work, and neighbours
// start each round together. For example, 256 tiles keep 64 of 66 workers busy for 4 rounds.
constexpr int even_workers(int work, int most) {
    const int rounds = (work - 1) / most + 1;
    return (work - 1) / rounds + 1;
}

}  // namespace tiles

// The number of multiprocessors of the current device.
inline cudaError_t multiprocessors(int* count) {
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    return cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

// The number of clusters that the device holds at once, of `cluster` blocks of `kernel`, which sets them at compile
// time. A cluster lies within a part of the GPU (GPC), so some multiprocessors may remain unused. Queried once per
// device.
template <typename Kernel>
cudaError_t resident_clusters(Kernel* kernel, int cluster, int threads, int shared_bytes, int* count) {
    constexpr int MAX_DEVICES = 64;
    static int known[MAX_DEVICES] = {};
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    if (device >= MAX_DEVICES) return cudaErrorInvalidDevice;
    if (known[device] == 0) {
        cudaLaunchConfig_t config = {};
        config.gridDim = cluster;
        config.blockDim = threads;
        config.dynamicSmemBytes = shared_bytes;
        error = cudaOccupancyMaxActiveClusters(&known[device], kernel, &config);
        if (error != cudaSuccess) return error;
        if (known[device] == 0) return cudaErrorLaunchOutOfResources;
    }
    *count = known[device];
    return cudaSuccess;
}

}  // namespace
