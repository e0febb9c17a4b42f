// relaxation: a chain of STEPS dependent multiply-adds a thread, whose answer does not depend on their number.
//
// Idea         y <- (y + x) / 2 from y = 0 reaches x after some 30 steps and stays there; every further step is time and
//              nothing else. Another STEPS is therefore another time with the same answer: a slowdown of known size.
// Expected     Time in proportion to STEPS: nothing is loaded or stored within the chain, a step is one FFMA that waits
//              for the one before it (4 cycles from sm_75 on), and launch and ramp are about 1 us in 400.
// Cost         All of it is in vain.
// Constraints  STEPS a multiple of the loop body, which the compiler must not unroll any further: it would choose another
//              body for another trip count, and the variants would differ in more than that.
// Source       The A/A and planted-change tests of performance testing; no kernel was copied.

#include <cuda_runtime.h>

constexpr int kBlock = 128;
constexpr int kUnroll = 40;
static_assert(STEPS % kUnroll == 0 && STEPS >= 64, "whole loop bodies, and enough steps to arrive");

__global__ void __launch_bounds__(kBlock) relaxation(const float* __restrict__ x, float* __restrict__ y, int n) {
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i >= n) return;
    const float half = 0.5f * x[i];
    float value = 0.0f;
#pragma unroll 1
    for (int body = 0; body < STEPS / kUnroll; ++body) {
#pragma unroll
        for (int step = 0; step < kUnroll; ++step) value = fmaf(value, 0.5f, half);
    }
    y[i] = value;
}

extern "C" int launch(const float* x, float* y, int n, cudaStream_t stream) {
    relaxation<<<(n - 1) / kBlock + 1, kBlock, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}
