// chase_pointers: the nodes hold addresses instead of indices, so that a hop is one instruction.
//
// Idea         An index must be multiplied and added before it is an address, and the chain of `chase` includes that. A
//              first kernel writes the same ring with 64-bit addresses; the chain then consists of loads alone.
// Expected     The latency of a level and nothing else, 5 cycles less than `chase`: 32 to 41 cycles in L1, 260 to 285
//              in L2.
// Cost         A second ring, written in each launch. What was just written lies in L2, so that the latency of device
//              memory cannot be measured this way.
// Constraints  As `chase`; 128 bytes of workspace for each node.
// Source       RRZE-HPC, gpu-benches, gpu-latency.

#include <cuda_runtime.h>

#include <cstddef>

#include "ring.cuh"

__global__ void __launch_bounds__(CHASE_THREADS)
    memory_write_pointers(const int* __restrict__ ring, Node* nodes, int count) {
    const int i = blockIdx.x * CHASE_THREADS + threadIdx.x;
    if (i < count) nodes[i].next = nodes + ring[i * LINE] / LINE;
}

__device__ __forceinline__ const Node* next_of(const Node* node) {
    return reinterpret_cast<const Node*>(__ldg(reinterpret_cast<const unsigned long long*>(&node->next)));
}

__global__ void __launch_bounds__(CHASE_THREADS)
    memory_chase_pointers(const Node* nodes, unsigned* out, int count, int hops) {
    bool missing = false;
    for (int i = threadIdx.x; i < count; i += CHASE_THREADS) missing |= next_of(nodes + i) == nullptr;
    const Node* at = nodes + __syncthreads_or(missing);  // the first node; the chain begins after all loads
    if (threadIdx.x > 0) return;
#pragma unroll UNROLLED_HOPS
    for (int hop = 0; hop < hops; ++hop) at = next_of(at);
    *out = static_cast<unsigned>(at - nodes) * LINE;
}

extern "C" int launch(const int* ring, unsigned* out, void* pointers, int n, int hops, int, int, int, int,
                      cudaStream_t stream) {
    Node* nodes = static_cast<Node*>(pointers);
    const int count = nodes_of(n);
    memory_write_pointers<<<(count - 1) / CHASE_THREADS + 1, CHASE_THREADS, 0, stream>>>(ring, nodes, count);
    memory_chase_pointers<<<1, CHASE_THREADS, 0, stream>>>(nodes, out, count, hops);
    return cudaGetLastError();
}
