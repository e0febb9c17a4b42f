// Steps that every warp of a block takes, one after the other, and their number.
//
// Each variant of this family adds one action to the step. Two numbers of steps differ by nothing but steps: the
// launch, the start of the blocks and the end cancel in the difference of their times.
#pragma once

#include <cuda_runtime.h>

constexpr int LANES = 32, MOST_THREADS = 1024;

template <class Action>
__device__ __forceinline__ unsigned take_steps(int steps, Action action) {
    unsigned taken = 0;
#pragma unroll 8
    for (int s = 0; s < steps; ++s) {
        action(s);
        asm volatile("add.u32 %0, %0, 1;" : "+r"(taken));  // the compiler would compute the number in advance
    }
    return taken;
}

// The steps of all warps of the block, all of which took as many as this thread.
__device__ __forceinline__ void report(unsigned* y, unsigned taken) {
    if (threadIdx.x == 0) y[blockIdx.x] = taken * (blockDim.x / LANES);
}
