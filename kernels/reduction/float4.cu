// float4: the two stages, with wide loads and several of them in flight.
//
// Idea         A thread loads LOADS times 16 bytes before it adds any of them, into sums of their own, so that no
//              addition waits for another: a quarter of the load instructions, and 4 * LOADS floats in flight a thread.
// Expected     The bandwidth of reading, above that of a copy.
// Cost         Registers, which leave room for six blocks of eight on an SM; a step more where the steps do not come out even.
// Constraints  Any n >= 1. An array that does not start on 16 bytes is read float by float, by the other instance. A
//              workspace of one float a block, allocated at the first launch; one stream at a time.
// Source       J. Luitjens, developer.nvidia.com/blog/faster-parallel-reductions-kepler; several loads in flight: V.
//              Volkov.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "block_sum.cuh"
#include "workspace.cuh"

static_assert(LOADS >= 2, "several loads under way");

__device__ __forceinline__ void add(float4& sum, float4 quad) {
    sum.x += quad.x;
    sum.y += quad.y;
    sum.z += quad.z;
    sum.w += quad.w;
}

// What this thread adds up of the first 4 * quads elements of x, which starts on 16 bytes.
__device__ __forceinline__ float sum_quads(const float* __restrict__ x, unsigned quads, unsigned thread,
                                           unsigned threads) {
    const float4* wide = reinterpret_cast<const float4*>(x);
    float4 sum[LOADS] = {};
    unsigned i = thread;
    for (; i + (LOADS - 1) * threads < quads; i += LOADS * threads) {
        float4 quad[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) quad[j] = wide[i + j * threads];
#pragma unroll
        for (int j = 0; j < LOADS; ++j) add(sum[j], quad[j]);
    }
    float4 rest[LOADS - 1] = {};  // what is left of a step, under way together as well
#pragma unroll
    for (int j = 0; j < LOADS - 1; ++j)
        if (i + j * threads < quads) rest[j] = wide[i + j * threads];
#pragma unroll
    for (int j = 0; j < LOADS - 1; ++j) add(sum[j], rest[j]);
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < LOADS; ++j) total += (sum[j].x + sum[j].y) + (sum[j].z + sum[j].w);
    return total;
}

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    reduce_float4(const float* __restrict__ x, float* __restrict__ sums, unsigned n) {
    const unsigned thread = blockIdx.x * BLOCK + threadIdx.x, threads = gridDim.x * BLOCK;
    float total = ALIGNED ? sum_quads(x, n / 4, thread, threads) : 0.0f;
    const unsigned rest = ALIGNED ? n / 4 * 4 : 0;  // three elements at most follow, or all
    for (unsigned i = rest + thread; i < n; i += threads) total += x[i];
    total = block_sum(total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Blocks of this instance that the current GPU holds at once: its registers allow fewer than its threads do.
template <bool ALIGNED>
static cudaError_t resident_blocks(int* blocks) {
    int device = 0, sms = 0, per_sm = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, reduce_float4<ALIGNED>, BLOCK, 0);
    *blocks = sms * std::max(1, per_sm);
    return error;
}

template <bool ALIGNED>
static cudaError_t reduce(const float* x, float* out, int n, cudaStream_t stream) {
    int most = 0;
    cudaError_t error = resident_blocks<ALIGNED>(&most);
    void* sums = nullptr;
    if (error == cudaSuccess) error = workspace(most * sizeof(float), &sums);
    if (error != cudaSuccess) return error;
    float* partial = static_cast<float*>(sums);
    const int blocks = std::min((n - 1) / (BLOCK * 4) + 1, most);
    reduce_float4<ALIGNED><<<blocks, BLOCK, 0, stream>>>(x, partial, n);
    reduce_float4<true><<<1, BLOCK, 0, stream>>>(partial, out, blocks);
    return cudaGetLastError();
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    return reinterpret_cast<uintptr_t>(x) % 16 == 0 ? reduce<true>(x, out, n, stream) : reduce<false>(x, out, n, stream);
}
