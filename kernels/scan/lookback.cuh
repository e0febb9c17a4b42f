// How the tiles of a one-pass scan publish their sums, and how a tile finds its start. See decoupled_lookback.cu.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "tile.cuh"
#include "workspace.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

using Word = unsigned long long;  // published by a tile: a flag in the upper half, a value in the lower half

enum Flag : unsigned { NOTHING, SUM, PREFIX };

__device__ __forceinline__ Word pack(Flag flag, float number) {
    return static_cast<Word>(flag) << 32 | __float_as_uint(number);
}

// words[0] is the counter of tiles; tile t publishes in words[1 + t].
__global__ void clear(Word* words, unsigned count) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < count) words[i] = 0;
}

// Waits until tile `other` has published a word and returns it; before the first tile, a PREFIX of 0. By a whole warp.
__device__ __forceinline__ Word wait_for(const volatile Word* published, int other) {
    Word word = published[max(other, 0)];
    if (other < 0) word = pack(PREFIX, 0.0f);
    while (__any_sync(~0u, word >> 32 == NOTHING))
        if (word >> 32 == NOTHING) word = published[other];
    return word;
}

// A bit for each lane of the warp that has found a PREFIX. `share` becomes the number that this lane adds, 0 if a
// nearer tile has a PREFIX.
__device__ __forceinline__ unsigned find_prefix(Word word, float* share) {
    const unsigned ends = __ballot_sync(~0u, word >> 32 == PREFIX);
    const int last = ends ? __ffs(ends) - 1 : 31;  // the lane with the nearest PREFIX
    *share = static_cast<int>(threadIdx.x % 32) <= last ? __uint_as_float(static_cast<unsigned>(word)) : 0.0f;
    return ends;
}

// The sum over a warp, in lane 0.
__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
    for (int s = 16; s > 0; s /= 2) value += __shfl_down_sync(~0u, value, s);
    return value;
}

// Internal to each shared object, as the workspace is.
namespace {

inline int tiles_of(int n) { return (n - 1) / int(TILE) + 1; }

inline bool on_16_bytes(const float* x, const float* out) {
    return (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(out)) % 16 == 0;
}

// The words of `tiles` tiles and their counter, cleared on the stream.
inline cudaError_t cleared_words(int tiles, Word** words, cudaStream_t stream) {
    void* memory = nullptr;
    const cudaError_t error = workspace((tiles + size_t{1}) * sizeof(Word), &memory);
    if (error != cudaSuccess) return error;
    *words = static_cast<Word*>(memory);
    clear<<<tiles / BLOCK + 1, BLOCK, 0, stream>>>(*words, tiles + 1);
    return cudaGetLastError();
}

using Scan = void (*)(const float*, float*, Word*, unsigned);

// Clears the words and launches a one-pass scan: `aligned` if both arrays start on 16 bytes, else `any`.
inline cudaError_t launch_in_one_pass(Scan aligned, Scan any, const float* x, float* out, int n, cudaStream_t stream) {
    const int tiles = tiles_of(n);
    Word* words = nullptr;
    const cudaError_t error = cleared_words(tiles, &words, stream);
    if (error != cudaSuccess) return error;
    (on_16_bytes(x, out) ? aligned : any)<<<tiles, BLOCK, 0, stream>>>(x, out, words, n);
    return cudaGetLastError();
}

}  // namespace
