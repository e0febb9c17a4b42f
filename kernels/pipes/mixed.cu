// mixed: multiply-adds in four chains, and as many integer instructions between them.
//
// Idea         A scheduler issues one instruction per cycle, whatever pipe it goes to. Multiply-adds alone are bound by
//              their own pipe and its operands; half of them and half of logic and shifts, whose pipe takes one every
//              second cycle, leave only the scheduler as the limit. Bits that are all 0, which the compiler cannot
//              know, stay 0 whatever is done to them.
// Expected     An instruction per cycle and scheduler, but for the branch of the loop: 95 to 100 % of the issue slots.
// Cost         None: it is the measure for the others.
// Constraints  `fmas` a multiple of 256; 1 to 32 warps per SM, or an even number up to 64. All SMs compute the same.
// Source       CUDA C++ Programming Guide, throughput of arithmetic instructions.

#include <cuda_runtime.h>

#include "same_on_all_sms.cuh"

constexpr int IN_A_ROW = 256;       // FMAs of a pass of the loop
constexpr int CHAINS = 4;           // of each kind

__global__ void __launch_bounds__(MOST_THREADS, 2)
    pipes_mixed(const float* __restrict__ x, float* y, int fmas, float one, int blocks_per_sm) {
    const int i = blockIdx.x % blocks_per_sm * blockDim.x + threadIdx.x;
    const float begin = x[i];
    const unsigned zero = __float_as_uint(one - 1);
    float sum[CHAINS];
    unsigned bits[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum[c] = begin + c, bits[c] = zero * (c + 1 + i);  // equal chains are computed once
#pragma unroll 1
    for (int done = 0; done < fmas; done += IN_A_ROW) {
#pragma unroll
        for (int step = 0; step < IN_A_ROW / CHAINS; ++step)
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) {
                sum[c] = fmaf(sum[c], one, one);
                bits[c] = step % 2 ? __funnelshift_l(bits[c], bits[c], 1) : bits[c] ^ zero;
            }
    }
    float result = begin;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) result += sum[c] - (begin + c) + bits[c];
    y[i] = result;
}

extern "C" int launch(const float* x, float* y, int warps, int fmas, float one, cudaStream_t stream) {
    return on_all_sms(pipes_mixed, x, y, warps, fmas, one, stream);
}
