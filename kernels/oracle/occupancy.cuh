// One kernel for each resource that can limit the blocks per SM, and a pair of kernels of which one spills. All write
// x + 1.
#pragma once

#include <cuda_runtime.h>

constexpr int FEW_THREADS = 32;     // one warp per block: no block slot is left when half of the warp slots are free
constexpr int MANY_THREADS = 768;   // 24 warps per block: two blocks leave 16 of 64 warp slots free, one leaves 8 of 32
constexpr int SHARED_THREADS = 128;
constexpr int SHARED_WORDS = 10 * 1024;  // 40 KiB: needs no opt-in on any GPU; five blocks fit into 228 KiB
constexpr int HELD = 96;                 // values that a thread holds at the same time
constexpr int HOLD_THREADS = 256;        // 255 registers are allowed
constexpr int SPILL_THREADS = 1024;      // 64 registers are allowed

__global__ void __launch_bounds__(FEW_THREADS) limited_by_blocks(const float* x, float* y) {
    const int i = blockIdx.x * FEW_THREADS + threadIdx.x;
    y[i] = x[i] + 1;
}

__global__ void __launch_bounds__(MANY_THREADS) limited_by_warps(const float* x, float* y) {
    const int i = blockIdx.x * MANY_THREADS + threadIdx.x;
    y[i] = x[i] + 1;
}

__global__ void __launch_bounds__(SHARED_THREADS) limited_by_shared_memory(const float* x, float* y) {
    __shared__ float words[SHARED_WORDS];
    const int i = blockIdx.x * SHARED_THREADS + threadIdx.x;
    words[threadIdx.x * (SHARED_WORDS / SHARED_THREADS)] = x[i] + 1;
    __syncthreads();
    y[i] = words[threadIdx.x * (SHARED_WORDS / SHARED_THREADS)];
}

// All HELD values are used again after their sum is known, and volatile reads are not repeated.
__device__ __forceinline__ void hold(const float* x, float* y, int threads) {
    const volatile float* in = x + blockIdx.x * threads * HELD + threadIdx.x;
    float* out = y + blockIdx.x * threads * HELD + threadIdx.x;
    float values[HELD], sum = 0;
#pragma unroll
    for (int k = 0; k < HELD; ++k) values[k] = in[k * threads];
#pragma unroll
    for (int k = 0; k < HELD; ++k) sum += values[k];
    const float one = sum < 0 ? 2 : 1;  // x is never negative
#pragma unroll
    for (int k = 0; k < HELD; ++k) out[k * threads] = values[k] + one;
}

__global__ void __launch_bounds__(HOLD_THREADS) limited_by_registers(const float* x, float* y) {
    hold(x, y, HOLD_THREADS);
}

__global__ void __launch_bounds__(SPILL_THREADS) forced_to_spill(const float* x, float* y) {
    hold(x, y, SPILL_THREADS);
}
