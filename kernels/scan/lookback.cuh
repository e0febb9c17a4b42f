// What the tiles of a scan in one pass tell each other, and how a tile finds its start. See decoupled_lookback.cu.
#pragma once

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");

using Word = unsigned long long;  // what a tile has published: a flag above, a number below

enum Flag : unsigned { NOTHING, SUM, PREFIX };

__device__ __forceinline__ Word pack(Flag flag, float number) {
    return static_cast<Word>(flag) << 32 | __float_as_uint(number);
}

// words[0] is the counter of tiles; tile t publishes in words[1 + t].
__global__ void clear(Word* words, unsigned count) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < count) words[i] = 0;
}

// The sum of all tiles before `tile`, which is not the first; by a whole warp, known to lane 0. A lane has Words loads
// under way, so that one trip to L2 looks 32 * Words tiles back.
template <int Words>
__device__ __forceinline__ float look_back(const volatile Word* published, unsigned tile) {
    const int lane = threadIdx.x % 32;
    float prefix = 0.0f;  // this lane's share
    unsigned ends = 0;    // the lanes that have found a PREFIX
    for (int nearest = static_cast<int>(tile) - 1 - lane; !ends; nearest -= 32 * Words) {
        Word word[Words];
#pragma unroll
        for (int w = 0; w < Words; ++w) word[w] = published[max(nearest - 32 * w, 0)];
#pragma unroll
        for (int w = 0; w < Words; ++w) {
            const int other = nearest - 32 * w;
            if (ends) break;
            if (other < 0) word[w] = pack(PREFIX, 0.0f);  // before the first tile there is nothing
            while (__any_sync(~0u, word[w] >> 32 == NOTHING))
                if (word[w] >> 32 == NOTHING) word[w] = published[other];
            ends = __ballot_sync(~0u, word[w] >> 32 == PREFIX);
            const int last = ends ? __ffs(ends) - 1 : 31;  // the lane with the nearest PREFIX
            if (lane <= last) prefix += __uint_as_float(static_cast<unsigned>(word[w]));
        }
    }
#pragma unroll
    for (int s = 16; s > 0; s /= 2) prefix += __shfl_down_sync(~0u, prefix, s);
    return prefix;
}
