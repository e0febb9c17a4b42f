// chase_dsmem: the ring lies in the shared memory of another SM.
//
// Idea         Two blocks of a cluster run on two SMs of a GPC. The second copies the nodes into its shared memory, the
//              first follows them over the network between the SMs, without L2. The nodes hold generic addresses of 64
//              bits: to the compiler, an access to the memory of another block is a load from a generic address.
// Expected     About 181 cycles a hop: six times those of the block's own shared memory, two thirds of those of L2.
// Cost         Both blocks must run at the same time and wait for each other before one ends.
// Constraints  sm_90 or later. Any n from 1 to 57344.
// Source       W. Luo et al., Benchmarking and dissecting the Nvidia Hopper GPU architecture via microbenchmarking,
//              2024.

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include "ring.cuh"

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2) __launch_bounds__(CHASE_THREADS)
    memory_chase_dsmem(const int* __restrict__ ring, unsigned* out, int count, int hops) {
    extern __shared__ Node held[];
    const cg::cluster_group cluster = cg::this_cluster();
    const Node* nodes = cluster.map_shared_rank(held, 1);
    if (cluster.block_rank() == 1)
        for (int i = threadIdx.x; i < count; i += CHASE_THREADS) held[i].next = nodes + ring[i * LINE] / LINE;
    cluster.sync();  // the ring is complete
    if (cluster.block_rank() == 0 && threadIdx.x == 0) {
        const Node* at = nodes;
#pragma unroll UNROLLED_HOPS
        for (int hop = 0; hop < hops; ++hop) at = at->next;
        *out = static_cast<unsigned>(at - nodes) * LINE;
    }
    cluster.sync();  // the second block ends only after the last access to its memory
}

extern "C" int launch(const int* ring, unsigned* out, void*, int n, int hops, int, int, int, int,
                      cudaStream_t stream) {
    const int count = nodes_of(n), bytes = count * static_cast<int>(sizeof(Node));
    const cudaError_t error =
        cudaFuncSetAttribute(memory_chase_dsmem, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error != cudaSuccess) return error;
    memory_chase_dsmem<<<2, CHASE_THREADS, bytes, stream>>>(ring, out, count, hops);
    return cudaGetLastError();
}
