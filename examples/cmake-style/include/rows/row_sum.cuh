#pragma once

#include <cuda_runtime.h>

// Sums each row of x [rows, columns], row-major, on the stream.
void row_sum(const float* x, float* out, int rows, int columns, cudaStream_t stream = 0);
