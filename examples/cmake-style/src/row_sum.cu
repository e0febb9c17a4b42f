// A library's source: nothing in it is for warplog.
#include "rows/row_sum.cuh"
#include "rows/warp_sum.cuh"

__global__ void row_sum_warp(const float* x, float* out, int rows, int columns) {
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* values = x + static_cast<size_t>(row) * columns;
    float sum = 0.0f;
    for (int i = lane; i < columns; i += 32) sum += values[i];
    sum = warp_sum(sum);
    if (lane == 0) out[row] = sum;
}

void row_sum(const float* x, float* out, int rows, int columns, cudaStream_t stream) {
    const int block = 256, rows_per_block = block / 32;
    row_sum_warp<<<(rows + rows_per_block - 1) / rows_per_block, block, 0, stream>>>(x, out, rows, columns);
}
