// shuffle: the three passes of hillis_steele with warps that scan in registers.
//
// Idea         A warp owns a segment of 128 * QUADS elements. A lane scans its four elements, the warp scans the sums
//              of its lanes with five SHFL.UP, and the next four elements continue from there. Only the sums of warps
//              pass through shared memory, with one barrier. A tile has 4096 elements instead of 1024, and all accesses
//              are 16 bytes wide and coalesced.
// Expected     Faster than `hillis_steele`, up to the limit of 16 bytes per element.
// Cost         Each element is still read and written twice.
// Constraints  Any n >= 1. Arrays not aligned to 16 bytes are moved float by float, by the other instantiation. A
//              workspace of n / 4096 floats, allocated at the first launch; one stream at a time.
// Source       M. Harris, S. Sengupta and J. Owens, GPU Gems 3, chapter 39; NVIDIA, CUDA samples, shfl_scan.

#include <cuda_runtime.h>

#include "alignment.cuh"
#include "tile.cuh"
#include "workspace.cuh"

// Scans each tile of x separately and writes the sums of the tiles, if there is more than one.
template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK) scan_tiles(const float* x, float* out, float* sums, unsigned n) {
    float4 quad[QUADS];
    float total;
    load_tile<ALIGNED>(x, blockIdx.x, n, quad);
    const float before = scan_tile(quad, &total);
    store_tile<ALIGNED>(out, blockIdx.x, n, before, quad);
    if (gridDim.x > 1 && threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Adds to each tile but the first the sum of all tiles before it.
template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK) add_sums(float* out, const float* __restrict__ sums, unsigned n) {
    const unsigned tile = blockIdx.x + 1;
    float4 quad[QUADS];
    load_tile<ALIGNED>(out, tile, n, quad);
    store_tile<ALIGNED>(out, tile, n, sums[tile - 1], quad);
}

template <bool ALIGNED>
static void scan(const float* x, float* out, float* sums, int n, cudaStream_t stream) {
    const int tiles = (n - 1) / int(TILE) + 1;
    scan_tiles<ALIGNED><<<tiles, BLOCK, 0, stream>>>(x, out, sums, n);
    if (tiles == 1) return;
    scan<ALIGNED>(sums, sums, sums + (tiles + 3) / 4 * 4, tiles, stream);  // each level starts on 16 bytes
    add_sums<ALIGNED><<<tiles - 1, BLOCK, 0, stream>>>(out, sums, n);
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    size_t sums = 0;  // of all levels
    for (int left = n; left > 1; left = (left - 1) / int(TILE) + 1) sums += (left - 1) / int(TILE) + 1 + 3;
    void* memory = nullptr;
    const cudaError_t error = workspace((sums + 1) * sizeof(float), &memory);
    if (error != cudaSuccess) return error;
    if (on_16_bytes(x) && on_16_bytes(out))
        scan<true>(x, out, static_cast<float*>(memory), n, stream);
    else
        scan<false>(x, out, static_cast<float*>(memory), n, stream);
    return cudaGetLastError();
}
