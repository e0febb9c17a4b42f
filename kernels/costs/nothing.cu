// nothing: a step only counts itself. What is left is the start of blocks and warps. ONE_BLOCK_PER_SM lets them start
// one after the other in each SM.
//
// Idea         Every block has to be given to an SM, and each of its warps needs registers and a program counter. Blocks
//              of one warp that do nothing show how many blocks per us the GPU starts; if more blocks take as much
//              longer as they are more, starting them is all that takes time. While several blocks start at once in an
//              SM, that hides what a warp adds; if unused shared memory, more than half of that of an SM, lets blocks
//              run one after the other, blocks of 32 and of 8 warps show it. Many steps show the cost of the loop,
//              which is subtracted from that of the other variants.
// Expected     About one block per cycle in the whole GPU, far less than its SMs could hold, and a warp per one to four
//              cycles in each SM; a step takes about 5 cycles.
// Cost         None: it is the measure for the others.
// Constraints  At most 32 warps per block.
// Source       CUDA Programming Guide, thread hierarchy: blocks start in any order.

#include "steps.cuh"

__global__ void __launch_bounds__(MOST_THREADS) nothing(unsigned* y, int steps) {
    report(y, take_steps(steps, [](int) {}));
}

extern "C" int launch(unsigned* y, void*, int blocks, int warps, int steps, int, cudaStream_t stream) {
    int unused_bytes = 0;
    if (ONE_BLOCK_PER_SM) {
        int device = 0, sm_bytes = 0;
        cudaGetDevice(&device);
        cudaDeviceGetAttribute(&sm_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
        unused_bytes = sm_bytes / 2 + 1024;
        cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, unused_bytes);
    }
    nothing<<<blocks, LANES * warps, unused_bytes, stream>>>(y, steps);
    return cudaGetLastError();
}
