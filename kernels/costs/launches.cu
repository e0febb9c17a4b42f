// launches: each step is a kernel of its own.
//
// Idea         A kernel starts when the previous one in its stream has ended and its results are visible. Thirty-three
//              kernels instead of one show what that takes per kernel: the cost of splitting work into several launches,
//              and all that fusing them can save beside their traffic.
// Expected     1 to 2 us per kernel, though a kernel itself takes less than 1 us.
// Cost         A launch per step, instead of a few cycles.
// Constraints  At most 32 warps per block.
// Source       CUDA Programming Guide, streams: operations of a stream are executed in order.

#include "steps.cuh"

__global__ void __launch_bounds__(MOST_THREADS) step(unsigned* y, unsigned taken) { report(y, taken); }

extern "C" int launch(unsigned* y, void*, int blocks, int warps, int steps, int, cudaStream_t stream) {
    for (int s = 1; s <= steps; ++s) step<<<blocks, LANES * warps, 0, stream>>>(y, s);
    return cudaGetLastError();
}
