// barrier: the warps of a block wait for each other at each step.
//
// Idea         __syncthreads() lets no warp continue before all have arrived. Here all arrive at once, so that only the
//              barrier itself takes time, and no warp waits for the work of another.
// Expected     15 to 40 cycles for 4 warps, more for 32, which arrive one after the other.
// Cost         A tile loop pays for it at least once a tile.
// Constraints  At most 32 warps per block.
// Source       PTX ISA, bar.sync.

#include "steps.cuh"

__global__ void __launch_bounds__(MOST_THREADS) barrier(unsigned* y, int steps) {
    report(y, take_steps(steps, [](int) { __syncthreads(); }));
}

extern "C" int launch(unsigned* y, void*, int blocks, int warps, int steps, int, cudaStream_t stream) {
    barrier<<<blocks, LANES * warps, 0, stream>>>(y, steps);
    return cudaGetLastError();
}
