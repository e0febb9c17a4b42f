// cluster: a histogram in the shared memory of a cluster of 2, 4 or 8 blocks, to which all of them add.
//
// Idea         CLUSTER blocks run at the same time on SMs of one GPC and can access each other's shared memory
//              (distributed shared memory, sm_90). Each holds BINS / CLUSTER counts; the block that reads a key adds to
//              its count wherever it lies, over the SM-to-SM network. Each key passes through L2 once; apart from the
//              keys, only the sums of each cluster do.
// Expected     L2 traffic close to that of reading the keys once. Whether it is faster than atomics in L2 depends on
//              the SM-to-SM network.
// Cost         Only one histogram per CLUSTER blocks; two barriers across the cluster.
// Constraints  sm_90 or later; BINS / CLUSTER counts must fit into the shared memory of a block. Any n >= 1, any
//              alignment; keys in 0..BINS - 1.
// Source       NVIDIA, CUDA C++ Programming Guide, distributed shared memory (histogram example).

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "bins.cuh"
#include "tiles.cuh"

namespace cg = cooperative_groups;

constexpr int PART = BINS / CLUSTER;
constexpr int SHARED_BYTES = PART * 4;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(PART * CLUSTER == BINS && CLUSTER <= 8, "whole parts; clusters of more than 8 are not portable");

__global__ void __cluster_dims__(CLUSTER) __launch_bounds__(BLOCK)
    dsmem_cluster(const int* __restrict__ keys, unsigned* counts, unsigned n) {
    extern __shared__ unsigned mine[];  // counts of PART bins, starting at rank * PART
    const cg::cluster_group cluster = cg::this_cluster();
    for (int bin = threadIdx.x; bin < PART; bin += BLOCK) mine[bin] = 0;
    cluster.sync();  // no block adds before all counts are cleared

    const unsigned step = gridDim.x * BLOCK;
    for (unsigned first = blockIdx.x * BLOCK + threadIdx.x; first < n; first += LOADS * step) {
        unsigned key[LOADS];
        load_keys(keys, first, step, n, key);
#pragma unroll
        for (int j = 0; j < LOADS; ++j)
            if (key[j] < BINS) atomicAdd(cluster.map_shared_rank(mine, key[j] / PART) + key[j] % PART, 1u);
    }
    cluster.sync();  // all blocks have added, and none has ended

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
