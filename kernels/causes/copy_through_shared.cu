// copy_through_shared: a copy whose words pass through shared memory, where WAYS lanes meet in a bank.
//
// Idea         Look-alike of `conflicts`: the same waste, where it does not matter. A word is written to shared
//              memory once and read once, in 4 passes each instead of one, while device memory takes longer.
// Expected     No difference: 8 passes per 128 bytes are 8 cycles of an SM, and device memory needs more than 20 for
//              these bytes both ways.
// Cost         None.
// Constraints  n a multiple of 1024; arrays larger than L2.
// Source       None.

#include "planted.cuh"

constexpr int MOST_WAYS = 4, WORDS = 4;  // of a thread

__global__ void __launch_bounds__(THREADS) copy_through_shared(const int* __restrict__ x, int* __restrict__ y) {
    __shared__ int words[THREADS * MOST_WAYS];
    volatile int* own = words + threadIdx.x / LANES * LANES * MOST_WAYS + threadIdx.x % LANES * WAYS;
    const int begin = blockIdx.x * THREADS * WORDS + threadIdx.x;
    int values[WORDS];
#pragma unroll
    for (int k = 0; k < WORDS; ++k) values[k] = x[begin + k * THREADS];
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        *own = values[k];
        y[begin + k * THREADS] = *own;
    }
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int, cudaStream_t stream) {
    copy_through_shared<<<n / WORDS / THREADS, THREADS, 0, stream>>>(x, y);
    return cudaGetLastError();
}
