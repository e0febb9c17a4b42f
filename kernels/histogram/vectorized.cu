// vectorized, vectorized_in_flight: the histograms of privatized_per_warp with four keys per load.
//
// Idea         In `privatized_per_warp` a thread waits for its key, counts it and requests the next: the compiler moves
//              no load across an atomic addition, so that each thread has one load of 4 bytes in flight, which is not
//              enough to use the bandwidth of memory. Here a load fetches four keys, and LOADS loads are in flight
//              before the first key is counted (1 in vectorized, 4 in vectorized_in_flight).
// Expected     Limited by the rate of atomics in shared memory or by the bandwidth of reading, with skewed keys by the
//              former. One load of 16 bytes per thread is 32 KiB per SM, about what memory delivers to an SM during the
//              latency of a load. That is not enough where counting takes as long as this latency; four loads are
//              enough.
// Cost         Registers; the last one to three keys take a separate path.
// Constraints  Any n >= 1; keys in 0..255. Keys not aligned to 16 bytes are read one by one.
// Source       N. Sakharnykh, developer.nvidia.com/blog/gpu-pro-tip-fast-histograms-using-shared-atomics-maxwell.

#include <cuda_runtime.h>

#include <algorithm>

#include "alignment.cuh"

constexpr int BINS = 256;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(COPIES >= 1 && COPIES <= BLOCK / 32, "at most one histogram per warp");
static_assert(LOADS >= 1, "at least one load in flight");

__global__ void clear(unsigned* counts) { counts[threadIdx.x] = 0; }

template <bool ALIGNED>
__global__ void __launch_bounds__(BLOCK)
    histogram_vectorized(const int* __restrict__ keys, unsigned* counts, unsigned n) {
    __shared__ unsigned count[COPIES][BINS];
    for (int i = threadIdx.x; i < COPIES * BINS; i += BLOCK) count[i / BINS][i % BINS] = 0;
    __syncthreads();

    unsigned* mine = count[threadIdx.x / 32 % COPIES];
    const unsigned thread = blockIdx.x * BLOCK + threadIdx.x, step = gridDim.x * BLOCK;
    const unsigned quads = ALIGNED ? n / 4 : 0;
    if constexpr (ALIGNED) {
        for (unsigned first = thread; first < quads; first += LOADS * step) {
            int4 quad[LOADS];
#pragma unroll
            for (int j = 0; j < LOADS; ++j)
                if (first + j * step < quads) quad[j] = reinterpret_cast<const int4*>(keys)[first + j * step];
#pragma unroll
            for (int j = 0; j < LOADS; ++j) {
                if (first + j * step >= quads) break;
                atomicAdd(&mine[quad[j].x], 1u);
                atomicAdd(&mine[quad[j].y], 1u);
                atomicAdd(&mine[quad[j].z], 1u);
                atomicAdd(&mine[quad[j].w], 1u);
            }
        }
    }
    // At most three keys, or all if unaligned.
    for (unsigned i = quads * 4 + thread; i < n; i += step) atomicAdd(&mine[keys[i]], 1u);
    __syncthreads();

    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) {
        unsigned sum = 0;
#pragma unroll
        for (int copy = 0; copy < COPIES; ++copy) sum += count[copy][bin];
        if (sum > 0) atomicAdd(&counts[bin], sum);
    }
}

template <bool ALIGNED>
static cudaError_t count_keys(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    int device = 0, sms = 0, per_sm = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, histogram_vectorized<ALIGNED>, BLOCK, 0);
    if (error != cudaSuccess) return error;
    const int blocks = std::min((n - 1) / (BLOCK * 4) + 1, sms * std::max(1, per_sm));
    clear<<<1, BINS, 0, stream>>>(counts);
    histogram_vectorized<ALIGNED><<<blocks, BLOCK, 0, stream>>>(keys, counts, n);
    return cudaGetLastError();
}

extern "C" int launch(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    return on_16_bytes(keys) ? count_keys<true>(keys, counts, n, stream)
                                                       : count_keys<false>(keys, counts, n, stream);
}
