// shared_loads: 512 multiply-adds per element, of two values from shared memory each; REUSE x REUSE of them share
// 2 * REUSE values.
//
// Idea         Shared memory delivers a word per lane to one warp per cycle and SM, and the SM does four multiply-adds
//              of a warp in that time. If both factors are loaded for each product, as in a matrix product without
//              tiles in registers, loads take eight times as long as multiply-adds. In a square of side REUSE each
//              loaded value is used REUSE times.
// Expected     1024 cycles of shared memory per warp for REUSE 1, 512 for 2, 256 for 4. Issuing takes at most 2/3 of
//              that, the multiply-adds at most half, so that shared memory is the limit of all three.
// Cost         A register per sum; all have 16, in squares of their size.
// Constraints  n a multiple of 256.
// Source       V. Volkov and J. Demmel, Benchmarking GPUs to tune dense linear algebra, SC 2008.

#include "planted.cuh"

constexpr int FMAS = 512, SUMS = 16, SQUARES = SUMS / (REUSE * REUSE), ROUNDS = FMAS / SUMS, ROWS = 2 * SUMS;

static_assert(SQUARES * REUSE * REUSE == SUMS, "whole squares");

__device__ __forceinline__ float from_shared(unsigned address) {
    float value;
    asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));  // again in each round
    return value;
}

__global__ void __launch_bounds__(THREADS, 2048 / THREADS)
    shared_loads(const int* __restrict__ x, int* __restrict__ y, const int* __restrict__ w) {
    __shared__ float table[ROWS * LANES];
    for (int i = threadIdx.x; i < ROWS * LANES; i += THREADS) table[i] = w[i];
    __syncthreads();
    const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(table + threadIdx.x % LANES));
    float sum[SQUARES][REUSE][REUSE] = {};
#pragma unroll 2
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int square = 0; square < SQUARES; ++square) {
            float factor[2 * REUSE];
#pragma unroll
            for (int k = 0; k < 2 * REUSE; ++k)
                factor[k] = from_shared(own + (square * 2 * REUSE + k) * LANES * sizeof(float));
#pragma unroll
            for (int i = 0; i < REUSE; ++i)
#pragma unroll
                for (int j = 0; j < REUSE; ++j)
                    sum[square][i][j] = fmaf(factor[i], factor[REUSE + j], sum[square][i][j]);
        }
    }
    float total = 0;
#pragma unroll
    for (int s = 0; s < SUMS; ++s) total += sum[s / (REUSE * REUSE)][s / REUSE % REUSE][s % REUSE];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i] + static_cast<int>(total);
}

extern "C" int launch(const int* x, int* y, const int* w, void*, int n, int, int, cudaStream_t stream) {
    shared_loads<<<n / THREADS, THREADS, 0, stream>>>(x, y, w);
    return cudaGetLastError();
}
