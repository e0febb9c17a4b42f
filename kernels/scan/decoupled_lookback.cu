// decoupled_lookback: one pass, in which a tile gets its start from the tiles before it.
//
// Idea         A tile is read once, scanned in registers, and waits there for the sum of all tiles before it. It
//              publishes its own sum at once (SUM), and the sum up to its end (PREFIX) as soon as it is known. To find
//              its start, a warp looks at the 32 tiles before it: it adds what they published, up to and including the
//              nearest PREFIX, or adds all 32 and continues with those before. So each element is read once and written
//              once: 8 bytes, as in a copy. The flag and the value of a tile are one word of 64 bits, so that they
//              become visible together and require no fence.
//              Blocks take their tiles from a counter, in the order in which they start. A block thus waits only for
//              blocks that already run, so the kernel always ends, however many blocks the GPU holds.
// Expected     Near the bandwidth of a copy; 3/2 times `reduce_then_scan`.
// Cost         A launch that clears the flags. The order of the additions depends on when tiles are published and fp32
//              addition is not associative, so the last bits may differ from run to run.
// Constraints  Any n >= 1. Arrays not aligned to 16 bytes are moved float by float, by the other instantiation. A
//              workspace of 8 bytes per tile (16 * BLOCK * QUADS bytes of x), allocated at the first launch; one stream
//              at a time.
// Source       D. Merrill and M. Garland, Single-pass parallel prefix scan with decoupled look-back, NVIDIA 2016.

#include <cuda_runtime.h>

#include "lookback.cuh"
#include "tile.cuh"
#include "timeline.cuh"

// The sum of all tiles before `tile`, which is not the first. By a whole warp; the result is in lane 0.
__device__ __forceinline__ float look_back(const volatile Word* published, unsigned tile) {
    float prefix = 0.0f;  // the share of this lane
    unsigned ends = 0;
    for (int other = static_cast<int>(tile) - 1 - threadIdx.x % 32; !ends; other -= 32) {
        float share;
        ends = find_prefix(wait_for(published, other), &share);
        prefix += share;
    }
    return warp_sum(prefix);
}

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    scan_lookback(const float* __restrict__ x, float* __restrict__ out, Word* words, unsigned n) {
    TIMELINE_TRACK(track);
    __shared__ unsigned ticket;
    __shared__ float start;
    if (threadIdx.x == 0) ticket = static_cast<unsigned>(atomicAdd(words, Word{1}));
    __syncthreads();
    const unsigned tile = ticket;
    volatile Word* published = words + 1;

    float4 quad[QUADS];
    float total;
    TIMELINE(track, LOAD);
    load_tile<ALIGNED>(x, tile, n, quad);
    const float before = scan_tile(quad, &total);

    TIMELINE(track, SYNC);
    if (threadIdx.x < 32) {
        TIMELINE(track, LOOKBACK);
        if (threadIdx.x == 0) published[tile] = pack(tile > 0 ? SUM : PREFIX, total);
        const float prefix = tile > 0 ? look_back(published, tile) : 0.0f;
        if (threadIdx.x == 0) {
            if (tile > 0) published[tile] = pack(PREFIX, prefix + total);
            start = prefix;
        }
    }
    __syncthreads();
    TIMELINE(track, STORE);
    store_tile<ALIGNED>(out, tile, n, start + before, quad);
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    return launch_in_one_pass(scan_lookback<true>, scan_lookback<false>, x, out, n, stream);
}
