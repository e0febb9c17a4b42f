// The histogram that all variants of the family count into, and its clearing.
#pragma once

#include <cuda_runtime.h>

namespace {

constexpr int BINS = 65536;  // 256 KiB: more than one block's shared memory
constexpr int CLEAR_THREADS = 256;

__global__ void clear(unsigned* counts) { counts[blockIdx.x * CLEAR_THREADS + threadIdx.x] = 0; }

}  // namespace
