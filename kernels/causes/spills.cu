// spills: 64 values per thread, each of which is multiplied and added to its neighbour in 32 rounds. The compiler
// must leave room for BLOCKS blocks per SM.
//
// Idea         __launch_bounds__ limits the registers per thread: 128 for two blocks of 256 threads, 48 for five, 32
//              for eight. What does not fit is written to local memory and read back in each round. The grid has two
//              blocks per SM in any case, so that the limit brings nothing.
// Expected     An SM executes two of the multiply-adds per cycle, but reads or writes one spilled value: about 200 of
//              them per 64 multiply-adds with 32 registers, 110 with 48.
// Cost         None.
// Constraints  n a multiple of 16384.
// Source       CUDA C++ Programming Guide, launch bounds.

#include "planted.cuh"

constexpr int LIVE = 64, ROUNDS = 32, RESIDENT = 2;

__global__ void __launch_bounds__(THREADS, BLOCKS)
    spills(const int* __restrict__ x, int* __restrict__ y, int n, int zero) {
#pragma unroll 1
    for (int i = blockIdx.x * LIVE * THREADS + threadIdx.x; i < n; i += gridDim.x * LIVE * THREADS) {
        int v[LIVE];
#pragma unroll
        for (int k = 0; k < LIVE; ++k) v[k] = x[i + k * THREADS];
#pragma unroll 1
        for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
            for (int k = 0; k < LIVE; ++k) v[k] += v[(k + LIVE / 2) % LIVE] * zero;
        }
#pragma unroll
        for (int k = 0; k < LIVE; ++k) y[i + k * THREADS] = v[k];
    }
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    int sms = 0;
    const cudaError_t error = sms_of_gpu(&sms);
    if (error != cudaSuccess) return error;
    spills<<<sms * RESIDENT, THREADS, 0, stream>>>(x, y, n, zero);
    return cudaGetLastError();
}
