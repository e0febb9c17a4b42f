// reduce_then_scan: the first pass only sums, and each element is written once.
//
// Idea         The first pass adds up each tile and writes one number for it. One block scans these numbers. The last
//              pass scans each tile, starting from the sum of all tiles before it, and writes each element once. So
//              each element is read twice and written once: 12 bytes.
// Expected     4/3 times `shuffle` if the first and the last pass both reach the limit of memory.
// Cost         The block of the second pass works alone, on n / 4096 numbers, 4096 at a time.
// Constraints  Any n >= 1. Arrays not aligned to 16 bytes are moved float by float, by the other instantiation. A
//              workspace of n / 4096 floats, allocated at the first launch; one stream at a time.
// Source       Y. Dotsenko et al., Fast scan algorithms on graphics processors, ICS 2008.

#include <cuda_runtime.h>

#include "alignment.cuh"
#include "tile.cuh"
#include "workspace.cuh"

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK) sum_tiles(const float* __restrict__ x, float* __restrict__ sums, unsigned n) {
    __shared__ float warp_sums[BLOCK / 32];
    float4 quad[QUADS];
    load_tile<ALIGNED>(x, blockIdx.x, n, quad);
    float sum = 0.0f;
#pragma unroll
    for (int q = 0; q < QUADS; ++q) sum += (quad[q].x + quad[q].y) + (quad[q].z + quad[q].w);
#pragma unroll
    for (int s = 16; s > 0; s /= 2) sum += __shfl_down_sync(~0u, sum, s);
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
#pragma unroll
    for (int w = 1; w < BLOCK / 32; ++w) sum += warp_sums[w];
    sums[blockIdx.x] = sum;
}

// Scans the sums of the tiles in place: one block, tile after tile of sums.
__global__ void __launch_bounds__(BLOCK) scan_sums(float* sums, unsigned n) {
    float carry = 0.0f;
    for (unsigned tile = 0; tile * TILE < n; ++tile) {
        float4 quad[QUADS];
        float total;
        load_tile<true>(sums, tile, n, quad);
        const float before = scan_tile(quad, &total);
        store_tile<true>(sums, tile, n, carry + before, quad);
        carry += total;
        __syncthreads();  // all threads have read the sums of the warps before the next tile overwrites them
    }
}

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    scan_tiles(const float* __restrict__ x, float* __restrict__ out, const float* __restrict__ sums, unsigned n) {
    float4 quad[QUADS];
    float total;
    load_tile<ALIGNED>(x, blockIdx.x, n, quad);
    const float before = scan_tile(quad, &total) + (blockIdx.x > 0 ? sums[blockIdx.x - 1] : 0.0f);
    store_tile<ALIGNED>(out, blockIdx.x, n, before, quad);
}

template <bool ALIGNED>
static void scan(const float* x, float* out, float* sums, int n, cudaStream_t stream) {
    const int tiles = (n - 1) / int(TILE) + 1;
    sum_tiles<ALIGNED><<<tiles, BLOCK, 0, stream>>>(x, sums, n);
    scan_sums<<<1, BLOCK, 0, stream>>>(sums, tiles);
    scan_tiles<ALIGNED><<<tiles, BLOCK, 0, stream>>>(x, out, sums, n);
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    void* memory = nullptr;
    const cudaError_t error = workspace(((n - 1) / TILE + 1) * sizeof(float), &memory);
    if (error != cudaSuccess) return error;
    if (on_16_bytes(x) && on_16_bytes(out))
        scan<true>(x, out, static_cast<float*>(memory), n, stream);
    else
        scan<false>(x, out, static_cast<float*>(memory), n, stream);
    return cudaGetLastError();
}
