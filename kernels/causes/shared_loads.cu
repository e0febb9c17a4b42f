// shared_loads: 512 multiply-adds per element, of which REUSE share a value from shared memory.
//
// Idea         Shared memory delivers a word per lane to one warp per cycle and SM, and the SM does four
//              multiply-adds of a warp in that time. A value that is used once costs four times as much as its
//              product; one that is used four times costs as much.
// Expected     512 cycles of shared memory per warp for REUSE 1, 256 for 2. For 4, 512 multiply-adds and 128 loads
//              are 160 cycles of issuing, which is then the limit.
// Cost         A register per sum.
// Constraints  n a multiple of 256.
// Source       V. Volkov and J. Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008.

#include "planted.cuh"

constexpr int FMAS = 512, ROWS = 32, SUMS = 4;

static_assert(FMAS % (ROWS * SUMS) == 0 && SUMS % REUSE == 0, "each row is loaded equally often");

__device__ __forceinline__ float from_shared(unsigned address) {
    float value;
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));  // again in each round
    return value;
}

__global__ void __launch_bounds__(THREADS)
    shared_loads(const int* __restrict__ x, int* __restrict__ y, const int* __restrict__ w, int zero) {
    __shared__ float table[ROWS * LANES];
    for (int i = threadIdx.x; i < ROWS * LANES; i += THREADS) table[i] = w[i];
    __syncthreads();
    const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(table + threadIdx.x % LANES));
    float sum[SUMS], factor[SUMS];
#pragma unroll
    for (int s = 0; s < SUMS; ++s) sum[s] = 0, factor[s] = zero + s;
#pragma unroll 1
    for (int round = 0; round < FMAS / (ROWS * REUSE); ++round) {
#pragma unroll
        for (int row = 0; row < ROWS; ++row) {
            const float value = from_shared(own + row * LANES * sizeof(float));
#pragma unroll
            for (int r = 0; r < REUSE; ++r) {
                const int s = (row * REUSE + r) % SUMS;
                sum[s] = fmaf(value, factor[s], sum[s]);
            }
        }
    }
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i] + static_cast<int>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

extern "C" int launch(const int* x, int* y, const int* w, void*, int n, int, int zero, cudaStream_t stream) {
    shared_loads<<<n / THREADS, THREADS, 0, stream>>>(x, y, w, zero);
    return cudaGetLastError();
}
