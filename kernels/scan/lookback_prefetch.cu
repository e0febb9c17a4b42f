// lookback_prefetch: one pass by blocks that stay, and fetch tiles to come while they wait for the sum before this one.
//
// Idea         In `decoupled_lookback` a block asks for its tile, then for the tile's elements, then for the sum before
//              it; the memory is idle meanwhile but for the blocks beside it, whose registers hold 96 KiB an SM. Here
//              the grid is what the GPU holds at once, and a block has its next STAGES tiles under way (cp.async) when
//              it looks back. A thread reads from shared memory only what it copied itself, so that nobody waits at a
//              barrier for the data. The number of the tile after those is drawn while a warp looks back, and that warp
//              sees 128 tiles at a glance, with four loads a lane.
// Expected     2/3 of `decoupled_lookback`'s time at 2^26: 192 KiB of loads in flight an SM, so that neither the tickets
//              nor the look-back keep the memory waiting.
// Cost         STAGES * 4 * BLOCK * QUADS * 4 bytes of shared memory a block. Tiles of 8192 elements: small arrays have
//              fewer blocks.
// Constraints  sm_80 or later, any n >= 1. The last tile, and arrays that do not start on 16 bytes, are loaded when
//              their turn comes. A workspace of 8 bytes for 8192 elements, allocated at the first launch; one stream at
//              a time. A block takes tiles in rising order and waits only for tiles that were taken before, so that it
//              always ends, however many blocks the GPU holds.
// Source       D. Merrill and M. Garland, Single-pass parallel prefix scan with decoupled look-back, NVIDIA 2016;
//              NVIDIA, CUDA C++ Programming Guide, asynchronous copies.

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "lookback.cuh"
#include "tile.cuh"
#include "workspace.cuh"

constexpr int STAGE_QUADS = QUADS * BLOCK;
constexpr int SHARED_BYTES = STAGES * STAGE_QUADS * 16;

static_assert(BLOCK >= 64, "one warp looks back, another draws the next tile");
static_assert(STAGES >= 1 && SHARED_BYTES <= 160 * 1024, "tiles under way fit into the shared memory of a block");

// The next tile, for a whole block.
__device__ __forceinline__ unsigned draw(Word* counter, unsigned* ticket) {
    __syncthreads();  // all have read the last one
    if (threadIdx.x == 0) *ticket = static_cast<unsigned>(atomicAdd(counter, Word{1}));
    __syncthreads();
    return *ticket;
}

__device__ __forceinline__ bool is_whole(unsigned tile, unsigned n) { return tile < n / TILE; }

// This thread's quads of a tile to `place`, BLOCK apart, as a group of copies: an empty one where it is not whole.
template <bool ALIGNED>
__device__ __forceinline__ void fetch(const float* x, unsigned tile, unsigned n, float4* place) {
    if (ALIGNED && is_whole(tile, n)) {
#pragma unroll
        for (int q = 0; q < QUADS; ++q) __pipeline_memcpy_async(place + q * BLOCK, x + first_of(tile) + q * 128, 16);
    }
    __pipeline_commit();
}

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    scan_prefetch(const float* __restrict__ x, float* __restrict__ out, Word* words, unsigned tiles, unsigned n) {
    extern __shared__ float4 stages[];
    __shared__ unsigned ticket;
    __shared__ float start;
    volatile Word* published = words + 1;

    unsigned ahead[STAGES + 1];  // this block's tile and those after it; the last one is not under way yet
#pragma unroll
    for (int s = 0; s < STAGES; ++s) {
        ahead[s] = draw(words, &ticket);
        fetch<ALIGNED>(x, ahead[s], n, stages + s * STAGE_QUADS + threadIdx.x);
    }
    ahead[STAGES] = draw(words, &ticket);

    for (unsigned turn = 0; ahead[0] < tiles; ++turn) {
        const unsigned tile = ahead[0];
        float4* place = stages + turn % STAGES * STAGE_QUADS + threadIdx.x;
        float4 quad[QUADS];
        float total;
        __pipeline_wait_prior(STAGES - 1);
        if (ALIGNED && is_whole(tile, n)) {
#pragma unroll
            for (int q = 0; q < QUADS; ++q) quad[q] = place[q * BLOCK];
        } else {
            load_tile<ALIGNED>(x, tile, n, quad);
        }
        const float before = scan_tile(quad, &total);
        if (threadIdx.x == 0) published[tile] = pack(tile > 0 ? SUM : PREFIX, total);
        fetch<ALIGNED>(x, ahead[STAGES], n, place);

        if (threadIdx.x < 32) {
            const float prefix = tile > 0 ? look_back<WORDS>(published, tile) : 0.0f;
            if (threadIdx.x == 0) {
                if (tile > 0) published[tile] = pack(PREFIX, prefix + total);
                start = prefix;
            }
        } else if (threadIdx.x == 32) {
            ticket = static_cast<unsigned>(atomicAdd(words, Word{1}));
        }
        __syncthreads();
        store_tile<ALIGNED>(out, tile, n, start + before, quad);
#pragma unroll
        for (int s = 0; s < STAGES; ++s) ahead[s] = ahead[s + 1];
        ahead[STAGES] = ticket;
    }
}

template <bool ALIGNED>
static cudaError_t scan(const float* x, float* out, Word* words, int tiles, int n, cudaStream_t stream) {
    const auto kernel = scan_prefetch<ALIGNED>;
    int device = 0, sms = 0, per_sm = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, BLOCK, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    clear<<<tiles / BLOCK + 1, BLOCK, 0, stream>>>(words, tiles + 1);
    kernel<<<std::min(tiles, sms * per_sm), BLOCK, SHARED_BYTES, stream>>>(x, out, words, tiles, n);
    return cudaGetLastError();
}

static bool on_16_bytes(const void* array) { return reinterpret_cast<uintptr_t>(array) % 16 == 0; }

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    const int tiles = (n - 1) / int(TILE) + 1;
    void* memory = nullptr;
    const cudaError_t error = workspace((tiles + size_t{1}) * sizeof(Word), &memory);
    if (error != cudaSuccess) return error;
    Word* words = static_cast<Word*>(memory);
    return on_16_bytes(x) && on_16_bytes(out) ? scan<true>(x, out, words, tiles, n, stream)
                                              : scan<false>(x, out, words, tiles, n, stream);
}
