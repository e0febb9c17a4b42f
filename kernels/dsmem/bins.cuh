// The histogram that all variants of the family count into, its clearing, and the loads of keys.
#pragma once

#include <cuda_runtime.h>

namespace {

constexpr int BINS = 65536;  // 256 KiB: more than one block's shared memory
constexpr int CLEAR_THREADS = 256;
constexpr int LOADS = 4;  // keys under way to a thread before it counts one: no load moves across an atomic addition

__global__ void clear(unsigned* counts) { counts[blockIdx.x * CLEAR_THREADS + threadIdx.x] = 0; }

// LOADS keys, `step` apart from `first` on; BINS, which is nobody's bin, beyond n.
__device__ __forceinline__ void load_keys(const int* __restrict__ keys, unsigned first, unsigned step, unsigned n,
                                          unsigned (&key)[LOADS]) {
#pragma unroll
    for (int j = 0; j < LOADS; ++j) key[j] = first + j * step < n ? keys[first + j * step] : BINS;
}

}  // namespace
