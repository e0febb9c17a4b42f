// barriers: 512 rounds of four parts, of which BARRIERS end with a barrier of the block.
//
// Idea         A warp that has arrived at __syncthreads() waits for the last of its block. The parts are an addition
//              each, so that nearly all of a round is waiting.
// Expected     A quarter of the barriers take a little over a quarter of the time.
// Cost         None.
// Constraints  n a multiple of 1024.
// Source       CUDA C++ Programming Guide, synchronization functions.

#include "planted.cuh"

constexpr int ROUNDS = 512, PARTS = 4;

__global__ void __launch_bounds__(THREADS) barriers(const int4* __restrict__ x, int4* __restrict__ y, int zero) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    int4 v = x[i];
#pragma unroll 4
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int part = 1; part <= PARTS; ++part) {
            asm volatile("add.s32 %0, %0, %1;" : "+r"(v.x) : "r"(zero));  // in its place between two barriers
            if (part % (PARTS / BARRIERS) == 0) __syncthreads();
        }
    }
    y[i] = v;
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    barriers<<<n / 4 / THREADS, THREADS, 0, stream>>>(reinterpret_cast<const int4*>(x), reinterpret_cast<int4*>(y),
                                                      zero);
    return cudaGetLastError();
}
