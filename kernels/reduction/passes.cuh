// Passes over partial sums, until one is left.
#pragma once

#include <cuda_runtime.h>

#include "workspace.cuh"

// The sum of x[0] to x[n - 1] in out[0]. add(from, to, count, blocks) launches `blocks` blocks, each of which adds BLOCK
// of the `count` elements and writes one partial sum.
template <typename Add>
static cudaError_t in_passes(const float* x, float* out, int n, Add add) {
    const size_t most = (n - 1) / BLOCK + 1;  // partial sums of the first pass; later passes have BLOCK times fewer
    void* memory = nullptr;
    const cudaError_t error = workspace((most + most / BLOCK + 1) * sizeof(float), &memory);
    if (error != cudaSuccess) return error;
    float* sums = static_cast<float*>(memory);
    float* next = sums + most;
    for (int left = n, blocks = 0; blocks != 1; left = blocks) {
        blocks = (left - 1) / BLOCK + 1;
        add(x, blocks == 1 ? out : sums, left, blocks);
        x = sums;  // input of the next pass
        sums = next;
        next = const_cast<float*>(x);
    }
    return cudaGetLastError();
}
