// vectorized: the histograms of privatized, one a warp, and four keys a load.
//
// Idea         In `privatized` a thread waits for its key, counts it, and asks for the next: the compiler moves no load
//              across an atomic addition, so that one load of 4 bytes is in flight a thread, which is too few to fill
//              the memory. Here a load brings four keys, and LOADS of them are under way before the first is counted.
// Expected     Up to the rate of the shared atomics, or the bandwidth of reading; with skewed keys the former. One load
//              of 16 bytes a thread is 32 KiB an SM, about what the memory sends in one latency: not enough where
//              counting takes as long; four of them are.
// Cost         Registers; the last one to three keys take a path of their own.
// Constraints  Any n >= 1; keys in 0..255. Keys that do not start on 16 bytes are read one by one.
// Source       N. Sakharnykh, developer.nvidia.com/blog/gpu-pro-tip-fast-histograms-using-shared-atomics-maxwell.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

constexpr int BINS = 256;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");
static_assert(COPIES >= 1 && COPIES <= BLOCK / 32, "at most one histogram a warp");
static_assert(LOADS >= 1, "a load under way");

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
    for (unsigned i = quads * 4 + thread; i < n; i += step) atomicAdd(&mine[keys[i]], 1u);  // three at most, or all
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
    return reinterpret_cast<uintptr_t>(keys) % 16 == 0 ? count_keys<true>(keys, counts, n, stream)
                                                       : count_keys<false>(keys, counts, n, stream);
}
