// privatized, privatized_per_warp: one or several histograms per block in shared memory, added to the global one at the
// end.
//
// Idea         As many blocks as the GPU holds at once walk through the keys in strides of the whole grid. Each counts
//              in shared memory, where atomic additions stay within the SM, and finally adds 256 numbers to the global
//              histogram: n global atomics become 256 per block.
//              With COPIES histograms per block, every COPIES-th warp counts in the same one. privatized_per_warp has
//              one per warp, so that only lanes of the same warp add to the same bin.
// Expected     10 to 50 times faster than global_atomics. With skewed keys, lanes add to the same bin and are
//              serialised; copies help between warps, not within a warp.
// Cost         1 KiB of shared memory per copy; clearing the copies and adding them up, which matters for small n.
// Constraints  Any n >= 1, any alignment; keys in 0..255.
// Source       N. Sakharnykh, developer.nvidia.com/blog/gpu-pro-tip-fast-histograms-using-shared-atomics-maxwell; one
//              copy per warp: V. Podlozhnyuk, Histogram calculation in CUDA, NVIDIA 2007.

#include <cuda_runtime.h>

#include <algorithm>

constexpr int BINS = 256;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(COPIES >= 1 && COPIES <= BLOCK / 32, "at most one histogram per warp");

__global__ void clear(unsigned* counts) { counts[threadIdx.x] = 0; }

__global__ void __launch_bounds__(BLOCK)
    histogram_privatized(const int* __restrict__ keys, unsigned* counts, unsigned n) {
    __shared__ unsigned count[COPIES][BINS];
    for (int i = threadIdx.x; i < COPIES * BINS; i += BLOCK) count[i / BINS][i % BINS] = 0;
    __syncthreads();

    unsigned* mine = count[threadIdx.x / 32 % COPIES];
    const unsigned step = gridDim.x * BLOCK;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += step) atomicAdd(&mine[keys[i]], 1u);
    __syncthreads();

    for (int bin = threadIdx.x; bin < BINS; bin += BLOCK) {
        unsigned sum = 0;
#pragma unroll
        for (int copy = 0; copy < COPIES; ++copy) sum += count[copy][bin];
        if (sum > 0) atomicAdd(&counts[bin], sum);
    }
}

extern "C" int launch(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    int device = 0, sms = 0, threads = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (error != cudaSuccess) return error;
    const int blocks = std::min((n - 1) / BLOCK + 1, sms * std::max(1, threads / BLOCK));
    clear<<<1, BINS, 0, stream>>>(counts);
    histogram_privatized<<<blocks, BLOCK, 0, stream>>>(keys, counts, n);
    return cudaGetLastError();
}
