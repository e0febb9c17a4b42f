// chase: one thread follows a ring of indices through global memory, one load after the other.
//
// Idea         The index that a load returns is the address of the next load, so that the time of a hop is the latency
//              of one load, wherever the ring lies: in L1, in L2, in device memory or in that of the host. The nodes
//              are a line of 128 bytes apart and in random order, so that no line is used twice in a round and none can
//              be fetched ahead. With `warm`, the block first reads every node once. CARVEOUT is the share of an SM's
//              256 KiB that shared memory gets, in percent; -1 leaves it to the driver. L1 has the rest.
// Expected     37 to 46 cycles a hop while the ring fits into L1, 265 to 290 in L2, 575 to 700 in device memory: the
//              latency of the level and 5 cycles, in which an IMAD.WIDE makes an address of the index.
// Cost         Two cases that differ in nothing but their hops are needed: the difference of their times is that of the
//              hops alone, without the launch and the first round.
// Constraints  Any n >= 1. The indices are in 0..n - 1, and multiples of 32.
// Source       V. Volkov and J. Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008; RRZE-HPC, gpu-benches.

#include <cuda_runtime.h>

#include "ring.cuh"

__global__ void __launch_bounds__(CHASE_THREADS)
    memory_chase(const int* __restrict__ ring, unsigned* out, int n, int hops, bool warm) {
    int seen = 0;
    if (warm)
        for (int i = threadIdx.x * LINE; i < n; i += CHASE_THREADS * LINE) seen |= ring[i];
    int at = __syncthreads_or(seen < 0);  // 0, as no index is negative; the compiler cannot know and must wait for all
    if (threadIdx.x > 0) return;
#pragma unroll UNROLLED_HOPS
    for (int hop = 0; hop < hops; ++hop) at = ring[at];
    *out = at;
}

extern "C" int launch(const int* ring, unsigned* out, void*, int n, int hops, int warm, int, int, int,
                      cudaStream_t stream) {
    const cudaError_t error =
        cudaFuncSetAttribute(memory_chase, cudaFuncAttributePreferredSharedMemoryCarveout, CARVEOUT);
    if (error != cudaSuccess) return error;
    memory_chase<<<1, CHASE_THREADS, 0, stream>>>(ring, out, n, hops, warm);
    return cudaGetLastError();
}
