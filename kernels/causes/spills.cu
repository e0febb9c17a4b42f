// spills: 64 values per thread, each of which is multiplied and added to its neighbour in 48 rounds. The compiler must
// leave room for BLOCKS blocks per SM.
//
// Idea         __launch_bounds__ limits the registers per thread: 128 for two blocks of 256 threads, 48 for five, 32 for
//              eight. What does not fit is written to local memory and read back in each round. Unused shared memory keeps
//              two blocks per SM in any case, so that the limit brings nothing.
// Expected     The traffic to L1 takes longer than the arithmetic.
// Cost         None.
// Constraints  n a multiple of 16384.
// Source       CUDA C++ Programming Guide, launch bounds.

#include "planted.cuh"

constexpr int LIVE = 64, ROUNDS = 48, RESIDENT = 2;

__global__ void __launch_bounds__(THREADS, BLOCKS) spills(const int* __restrict__ x, int* __restrict__ y, int zero) {
    const int begin = blockIdx.x * LIVE * THREADS + threadIdx.x;
    int v[LIVE];
#pragma unroll
    for (int k = 0; k < LIVE; ++k) v[k] = x[begin + k * THREADS];
#pragma unroll 1
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int k = 0; k < LIVE; ++k) v[k] += v[(k + LIVE / 2) % LIVE] * zero;
    }
#pragma unroll
    for (int k = 0; k < LIVE; ++k) y[begin + k * THREADS] = v[k];
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    int bytes = 0;
    const cudaError_t error = limit_residency(spills, RESIDENT, &bytes);
    if (error != cudaSuccess) return error;
    spills<<<n / (LIVE * THREADS), THREADS, bytes, stream>>>(x, y, zero);
    return cudaGetLastError();
}
