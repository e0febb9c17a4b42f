// The histogram of all variants of the family, its clearing, and the loads of keys.
#pragma once

#include <cuda_runtime.h>

namespace {

constexpr int BINS = 65536;  // 256 KiB: more than the shared memory of one block
constexpr int CLEAR_THREADS = 256;
// Keys in flight per thread before it counts one: the compiler moves no load across an atomic addition.
constexpr int LOADS = 4;

__global__ void clear(unsigned* counts) { counts[blockIdx.x * CLEAR_THREADS + threadIdx.x] = 0; }

// LOADS keys, `step` apart, starting at `first`; beyond n, BINS, which is not a bin.
__device__ __forceinline__ void load_keys(const int* __restrict__ keys, unsigned first, unsigned step, unsigned n,
                                          unsigned (&key)[LOADS]) {
#pragma unroll
    for (int j = 0; j < LOADS; ++j) key[j] = first + j * step < n ? keys[first + j * step] : BINS;
}

}  // namespace
