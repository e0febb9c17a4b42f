// Reading a ring: each load of a warp covers 512 contiguous bytes, or 128 with one word per lane.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

constexpr int MOST_THREADS = 1024;       // of a block
constexpr int WARP_LOAD = 32 * WORDS;    // elements that a warp reads with one load
constexpr int PIECE = LOADS * WARP_LOAD; // elements that it requests before it needs the first of them

using Word = std::conditional_t<WORDS == 4, int4, int>;  // of a lane

__device__ __forceinline__ unsigned sum_of(int4 v) { return v.x + v.y + v.z + v.w; }
__device__ __forceinline__ unsigned sum_of(int v) { return v; }

// Every `step`th piece from `begin` to before `end`, where numbers from `pieces` on begin again at the first of the
// ring, `first` pieces after its start. Returns the sum of this thread's elements.
__device__ __forceinline__ unsigned sweep(const Word* ring, int pieces, int begin, int end, int step, int first) {
    unsigned sum = 0;
    int at = (begin + first) % pieces;
    const int advance = step % pieces;
#pragma unroll 1
    for (int piece = begin; piece < end; piece += step) {
        const Word* from = ring + at * (PIECE / WORDS) + threadIdx.x % 32;
        Word read[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) read[j] = from[j * 32];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) sum += sum_of(read[j]);
        at += advance;
        if (at >= pieces) at -= pieces;
    }
    return sum;
}

// The sum over the block, which its first thread gets.
__device__ __forceinline__ unsigned block_total(unsigned sum) {
    __shared__ unsigned total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const unsigned of_warp = __reduce_add_sync(~0u, sum);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, of_warp);
    __syncthreads();
    return total;
}
