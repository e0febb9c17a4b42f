// cluster: the histogram lies in the shared memory of a whole cluster of blocks, and each counts into all of it.
//
// Idea         CLUSTER blocks run side by side on neighbouring SMs and reach each other's shared memory (distributed
//              shared memory, sm_90). Each holds BINS / CLUSTER counts; a key's block adds to them wherever they lie,
//              over the network between SMs. No key passes through L2 twice; only each cluster's sums do.
// Expected     L2 traffic near that of reading the keys once. Whether it is faster than L2's atomics depends on the
//              network between the SMs.
// Cost         CLUSTER-fold fewer histograms in flight than blocks; two barriers over the cluster.
// Constraints  sm_90 or later; BINS / CLUSTER counts must fit a block's shared memory. Any n >= 1, any alignment; keys in
//              0..BINS - 1.
// Source       NVIDIA, CUDA C++ Programming Guide, distributed shared memory (histogram example).

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "bins.cuh"
#include "tiles.cuh"

namespace cg = cooperative_groups;

constexpr int PART = BINS / CLUSTER;
constexpr int SHARED_BYTES = PART * 4;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");
static_assert(PART * CLUSTER == BINS && CLUSTER <= 8, "whole parts; clusters of more than 8 are not portable");

__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(BLOCK)
    dsmem_cluster(const int* __restrict__ keys, unsigned* counts, unsigned n) {
    extern __shared__ unsigned mine[];  // counts of the bins from rank * PART on
    const cg::cluster_group cluster = cg::this_cluster();
    for (int bin = threadIdx.x; bin < PART; bin += BLOCK) mine[bin] = 0;
    cluster.sync();  // nobody adds to what is not cleared yet

    const unsigned step = gridDim.x * BLOCK;
    for (unsigned first = blockIdx.x * BLOCK + threadIdx.x; first < n; first += LOADS * step) {
        unsigned key[LOADS];
        load_keys(keys, first, step, n, key);
#pragma unroll
        for (int j = 0; j < LOADS; ++j)
            if (key[j] < BINS) atomicAdd(cluster.map_shared_rank(mine, key[j] / PART) + key[j] % PART, 1u);
    }
    cluster.sync();  // all have added, and nobody's shared memory has gone

    const unsigned first = cluster.block_rank() * PART;
    for (int bin = threadIdx.x; bin < PART; bin += BLOCK)
        if (mine[bin] > 0) atomicAdd(&counts[first + bin], mine[bin]);
}

extern "C" int launch(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    int clusters = 0;
    cudaError_t error = cudaFuncSetAttribute(dsmem_cluster, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error == cudaSuccess) error = resident_clusters(dsmem_cluster, CLUSTER, BLOCK, SHARED_BYTES, &clusters);
    if (error != cudaSuccess) return error;
    const int enough = ((n - 1) / BLOCK) / CLUSTER + 1;
    clear<<<BINS / CLEAR_THREADS, CLEAR_THREADS, 0, stream>>>(counts);
    dsmem_cluster<<<CLUSTER * std::min(enough, clusters), BLOCK, SHARED_BYTES, stream>>>(keys, counts, n);
    return cudaGetLastError();
}
