// chains: the same multiply-adds per thread, in 1, 2, 4 or 8 chains that do not depend on each other.
//
// Idea         An FMA whose operand is the result of the one before waits for it, 4 cycles. Each of the four schedulers
//              of an SM issues one instruction per cycle, so it needs four independent FMAs at any time. They come from
//              four warps (16 per SM), or from four chains in one warp: independent instructions replace occupancy.
//              `one` is an argument, so that the compiler cannot compute the sums. 256 FMAs stand in a row, since the
//              branch of a shorter loop would be measured with them.
// Expected     One chain and one warp per scheduler: 4 cycles per FMA, a quarter of the peak. 4 chains reach the peak
//              with 4 warps per SM, 2 chains with 8, one with 16. More of either changes nothing.
// Cost         A register per chain, and the additions that join the chains at the end.
// Constraints  `fmas` a multiple of 256; 1 to 32 warps per SM, or an even number up to 64. All SMs compute the same and
//              write the same numbers.
// Source       V. Volkov, Better performance at lower occupancy, GTC 2010.

#include <cuda_runtime.h>

#include "same_on_all_sms.cuh"

constexpr int IN_A_ROW = 256;       // FMAs of a pass of the loop

static_assert(IN_A_ROW % CHAINS == 0, "all chains are equally long");

__global__ void __launch_bounds__(MOST_THREADS, 2)
    ilp_chains(const float* __restrict__ x, float* y, int fmas, float one, int blocks_per_sm) {
    const int i = blockIdx.x % blocks_per_sm * blockDim.x + threadIdx.x;
    const float begin = x[i];
    float sum[CHAINS];
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum[c] = begin + c;  // equal chains would be computed once
#pragma unroll 1
    for (int done = 0; done < fmas; done += IN_A_ROW) {
#pragma unroll
        for (int step = 0; step < IN_A_ROW / CHAINS; ++step)
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) sum[c] = fmaf(sum[c], one, one);
    }
    float result = begin;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) result += sum[c] - (begin + c);
    y[i] = result;
}

extern "C" int launch(const float* x, float* y, int warps, int fmas, float one, cudaStream_t stream) {
    return on_all_sms(ilp_chains, x, y, warps, fmas, one, stream);
}
