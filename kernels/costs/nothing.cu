// nothing: a step only counts itself. What is left is the start of blocks and warps. SHARED_BYTES is unused memory.
//
// Idea         Every block has to be given to an SM, and each of its warps needs registers and a program counter. Blocks
//              of one warp that do nothing show how many blocks per us the GPU starts; if more blocks take as much
//              longer as they are more, starting them is all that takes time. Blocks of 16 and of 8 warps show what a
//              warp adds, if an SM holds as many of both, which unused shared memory ensures. Many steps show the cost
//              of the loop, which is subtracted from that of the other variants.
// Expected     About one block per cycle in the whole GPU, far less than its SMs could hold, and a warp per one to four
//              cycles in each SM; a step takes about 5 cycles.
// Cost         None: it is the measure for the others.
// Constraints  At most 32 warps per block, SHARED_BYTES at most 48 KiB.
// Source       CUDA Programming Guide, thread hierarchy: blocks start in any order.

#include "steps.cuh"

__global__ void __launch_bounds__(MOST_THREADS) nothing(unsigned* y, int steps) {
    report(y, take_steps(steps, [](int) {}));
}

extern "C" int launch(unsigned* y, void*, int blocks, int warps, int steps, int, cudaStream_t stream) {
    nothing<<<blocks, LANES * warps, SHARED_BYTES, stream>>>(y, steps);
    return cudaGetLastError();
}
