// chain: dependent multiply-adds, whose number does not change the answer. It should take PLANT of 10,000 longer.
//
// Idea         y <- (y + x) / 2 from y = 0 reaches x after some 30 steps and stays there; every further step is time and
//              nothing else.
// Expected     Time in proportion to the steps, beside launch and ramp, which take about as long as 250 steps. How much
//              longer it really takes, the mean of many launches says.
// Cost         All of it is in vain.
// Constraints  At least 64 steps. The loop is not unrolled, so that a step is the smallest change.

#include <cuda_runtime.h>

constexpr int kBlock = 128;
constexpr long long kLaunchSteps = 250;

__global__ void __launch_bounds__(kBlock) chain(const float* __restrict__ x, float* __restrict__ y, int n, int steps) {
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i >= n) return;
    const float half = 0.5f * x[i];
    float value = 0.0f;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) value = fmaf(value, 0.5f, half);
    y[i] = value;
}

extern "C" int launch(const float* x, float* y, int n, int steps, cudaStream_t stream) {
    const int planted = steps + static_cast<int>(((steps + kLaunchSteps) * PLANT + 5'000) / 10'000);
    chain<<<(n - 1) / kBlock + 1, kBlock, 0, stream>>>(x, y, n, planted);
    return cudaGetLastError();
}
