// integers: STEPS steps of four integer instructions per element, in two chains.
//
// Idea         One chain is of multiply-adds, the other of additions and logic, whose pipes each take an instruction
//              of a warp every second cycle: together they take one per cycle, which is all that a scheduler issues.
//              With 16 warps per scheduler no chain waits for its own result.
// Expected     A cycle of a scheduler per instruction: half the steps take half the time.
// Cost         None.
// Constraints  n a multiple of 256.
// Source       CUDA C++ Programming Guide, throughput of arithmetic instructions.

#include "planted.cuh"

static_assert(STEPS % 2 == 0, "of two steps, the second sets the bit back");

__global__ void __launch_bounds__(THREADS) integers(const int* __restrict__ x, int* __restrict__ y, int zero) {
    const int i = blockIdx.x * THREADS + threadIdx.x, one = zero + 1;
    int product = x[i], bits = zero;
#pragma unroll 32
    for (int step = 0; step < STEPS; ++step) {
        product = product * one + zero;
        bits = (bits ^ one) + zero;
        product = product * one + zero;
    }
    y[i] = product + bits;
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    integers<<<n / THREADS, THREADS, 0, stream>>>(x, y, zero);
    return cudaGetLastError();
}
