// nothing: a step only counts itself. What is left is the start of blocks and warps.
//
// Idea         Every block has to be given to an SM, and each of its warps needs registers and a program counter. Blocks
//              of one warp that do nothing show how many blocks per us the GPU starts; if more blocks take as much
//              longer as they are more, starting them is all that takes time. Blocks of 32 warps show what the warps
//              add. Many steps show the cost of the loop, which is subtracted from that of the other variants.
// Expected     About one block per cycle in the whole GPU, far less than its SMs could hold; a step takes about 5 cycles.
// Cost         None: it is the measure for the others.
// Constraints  At most 32 warps per block.
// Source       CUDA Programming Guide, thread hierarchy: blocks start in any order.

#include "steps.cuh"

__global__ void __launch_bounds__(MOST_THREADS) nothing(unsigned* y, int steps) {
    report(y, take_steps(steps, [](int) {}));
}

extern "C" int launch(unsigned* y, void*, int blocks, int warps, int steps, int, cudaStream_t stream) {
    nothing<<<blocks, LANES * warps, 0, stream>>>(y, steps);
    return cudaGetLastError();
}
