// passes: a block counts only one part of the bins in shared memory, so that all keys are read once per part.
//
// Idea         Bins whose counts do not fit into the shared memory of a block are divided into PARTS parts, which are
//              counted side by side: the blocks of part p ignore all keys except those of its BINS / PARTS bins.
//              Atomics stay within the SM, and only the sums of each block go to global memory.
// Expected     PARTS times the reads of global_atomics, most of them from L2 if the keys fit there; atomics in shared
//              memory for 1 / PARTS of the keys read.
// Cost         Each key is loaded and compared PARTS times.
// Constraints  Any n >= 1, any alignment; keys in 0..BINS - 1.
// Source       V. Podlozhnyuk, Histogram calculation in CUDA, NVIDIA 2007 (bins in parts).

#include <cuda_runtime.h>

#include <algorithm>

#include "bins.cuh"

constexpr int PART = BINS / PARTS;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(PARTS * PART == BINS && PART * 4 <= 48 * 1024, "whole parts, which fit static shared memory");

__global__ void __launch_bounds__(BLOCK) dsmem_passes(const int* __restrict__ keys, unsigned* counts, unsigned n) {
    __shared__ unsigned mine[PART];
    for (int bin = threadIdx.x; bin < PART; bin += BLOCK) mine[bin] = 0;
    __syncthreads();
    const unsigned first = blockIdx.y * PART, step = gridDim.x * BLOCK;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += LOADS * step) {
        unsigned key[LOADS];
        load_keys(keys, i, step, n, key);
#pragma unroll
        for (int j = 0; j < LOADS; ++j) {
            const unsigned bin = key[j] - first;  // PART or more for a key of another part, also of a lower one
            if (bin < PART) atomicAdd(&mine[bin], 1u);
        }
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < PART; bin += BLOCK)
        if (mine[bin] > 0) atomicAdd(&counts[first + bin], mine[bin]);
}

extern "C" int launch(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    int device = 0, sms = 0, per_sm = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, dsmem_passes, BLOCK, 0);
    if (error != cudaSuccess) return error;
    const int blocks = std::min((n - 1) / BLOCK + 1, std::max(1, sms * per_sm / PARTS));
    clear<<<BINS / CLEAR_THREADS, CLEAR_THREADS, 0, stream>>>(counts);
    dsmem_passes<<<dim3(blocks, PARTS), BLOCK, 0, stream>>>(keys, counts, n);
    return cudaGetLastError();
}
