// One kernel for each reason why a warp cannot issue, built so that this reason outweighs all others together. Only
// `branch_resolving` cannot do so, since other waits of a jump take longer than resolving it.
//
// A comment at each kernel describes it; tests check its machine code. Two reasons of the hardware are missing, since
// no kernel causes them reliably: `dispatch_stall` (the dispatcher waits for resources, which the compiler's schedule
// avoids) and `misc`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "arithmetic.cuh"

// One warp per scheduler: no other warp hides its waits or competes with it.
constexpr int ALONE = 32;
// Eight warps per scheduler: they compete for every resource.
constexpr int CROWD = 1024;

// long_scoreboard: a chain of loads that bypass L1, where each address depends on the previous value. Every value is at
// least 0, so that the next word is always 8 further (another sector), modulo n.
__global__ void __launch_bounds__(ALONE) stall_long_scoreboard(const float* x, float* y, int n, int rounds) {
    const int i = blockIdx.x * ALONE + threadIdx.x;
    int at = i;
    float steps = 0;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
        const bool right = __ldcg(x + at) >= 0;
        at = (at + (right ? 8 : 1)) & (n - 1);
        steps += right ? 1 : 0;
    }
    y[i] = x[i] + steps;
}

// short_scoreboard: a chain of loads from shared memory, where each word is the next address. Each word holds its own
// address.
__global__ void __launch_bounds__(ALONE) stall_short_scoreboard(const float* x, float* y, int rounds) {
    __shared__ unsigned next[ALONE];
    const int i = blockIdx.x * ALONE + threadIdx.x;
    const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(next + threadIdx.x));
    next[threadIdx.x] = own;
    __syncwarp();
    unsigned at = own;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 16; ++k) asm volatile("ld.volatile.shared.u32 %0, [%0];" : "+r"(at)::"memory");
    }
    y[i] = x[i] + (at == own ? 1 : 0);
}

// mio_throttle: more stores to shared memory than it can accept, with all lanes of a warp in one bank: 32 passes each.
__global__ void __launch_bounds__(CROWD) stall_mio_throttle(const float* x, float* y, int rounds) {
    __shared__ float words[32 * 32];
    const int i = blockIdx.x * CROWD + threadIdx.x;
    volatile float* word = words + 32 * (threadIdx.x % 32) + threadIdx.x / 32;
    const float v = x[i] + 1;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 16; ++k) *word = v;
    }
    y[i] = *word;
}

// lg_throttle: more stores to global memory than its queue accepts, 32 sectors each.
__global__ void __launch_bounds__(CROWD) stall_lg_throttle(const float* x, float* y, int rounds) {
    const int block = blockIdx.x * CROWD;
    const int i = block + threadIdx.x % 32 * 32 + threadIdx.x / 32;
    volatile float* out = y + i;
    const float v = x[i] + 1;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 16; ++k) *out = v;
    }
}

// tex_throttle: more texture fetches than the unit accepts; a thread waits for its values only after 32 of them.
__global__ void __launch_bounds__(CROWD) stall_tex_throttle(cudaTextureObject_t texture, const float* x, float* y,
                                                            int rounds) {
    const int i = blockIdx.x * CROWD + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 32; ++k) sum += tex1Dfetch<float>(texture, (i ^ (32 * k)) ^ (r % 32)) >= 0 ? 1 : 0;
    }
    y[i] = x[i] + sum;
}

// barrier: 31 warps wait for one that computes.
__global__ void __launch_bounds__(CROWD) stall_barrier(const float* x, float* y, int rounds, float one) {
    __shared__ float answer;
    const int i = blockIdx.x * CROWD + threadIdx.x;
    if (threadIdx.x < 32) {
        float v = 0;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
            for (int k = 0; k < 16; ++k) v = fmaf(v, one, one);
        }
        if (threadIdx.x == 0) answer = v;
    }
    __syncthreads();
    y[i] = x[i] + answer;
}

// membar: a fence after every store.
__global__ void __launch_bounds__(ALONE) stall_membar(const float* x, float* y, int rounds) {
    const int i = blockIdx.x * ALONE + threadIdx.x;
    const float v = x[i] + 1;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
        static_cast<volatile float*>(y)[i] = v;
        __threadfence();
    }
}

// math_pipe_throttle: products on tensor cores, four chains per warp and many warps; each product occupies the pipe for
// several cycles.
__global__ void __launch_bounds__(CROWD) stall_math_pipe_throttle(const float* x, float* y, int rounds,
                                                                  unsigned ones) {
    const int i = blockIdx.x * CROWD + threadIdx.x;
    float sum[4][4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int h = 0; h < 4; ++h) sum[j][h] = 0;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 4; ++k)
#pragma unroll
            for (int j = 0; j < 4; ++j) multiply_16x8x8(sum[j], ones, ones, ones);
    }
    float total = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) total += (sum[j][0] + sum[j][1]) + (sum[j][2] + sum[j][3]);
    y[i] = x[i] + total / 16;
}

// wait: a chain of multiply-adds, each four cycles after the previous one.
__global__ void __launch_bounds__(ALONE) stall_wait(const float* x, float* y, int rounds, float one) {
    const int i = blockIdx.x * ALONE + threadIdx.x;
    float v = x[i];
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 64; ++k) v = fmaf(v, one, one);
    }
    y[i] = v;
}

// no_instruction: 256 KiB of straight-line code, more than the instruction caches of an SM hold, and one warp with
// eight independent chains, so that it waits for nothing else.
constexpr int LONG_CODE = 16 * 1024;

__global__ void __launch_bounds__(ALONE) stall_no_instruction(const float* x, float* y, int rounds, float one) {
    const int i = blockIdx.x * ALONE + threadIdx.x;
    float v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = 0;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < LONG_CODE; ++k) v[k % 8] = fmaf(v[k % 8], one, one);
    }
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += v[j];
    y[i] = x[i] + sum / LONG_CODE;
}

// drain: one store to 32 lines, then the end of the thread. Unused shared memory limits the number of warps per SM, so
// that the queue accepts all their stores.
constexpr int DRAIN_THREADS = 128, DRAIN_SHARED_BYTES = 40 * 1024;

__global__ void __launch_bounds__(DRAIN_THREADS) stall_drain(float4* y) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    y[blockIdx.x * DRAIN_THREADS + lane * (DRAIN_THREADS / 32) + warp] = make_float4(1, 1, 1, 1);
}

// imc_miss: operands in constant memory, each in a separate line, and more of them than the first cache holds.
constexpr int CONSTANTS = 1024, CONSTANT_STEP = 16;
__constant__ float zeros[CONSTANTS * CONSTANT_STEP];

__global__ void __launch_bounds__(ALONE) stall_imc_miss(const float* x, float* y, int rounds) {
    const int i = blockIdx.x * ALONE + threadIdx.x;
    float v = x[i] + 1;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < CONSTANTS; ++k) v += zeros[k * CONSTANT_STEP];
    }
    y[i] = v;
}

// branch_resolving: consecutive jumps that are always taken, on a condition that is known long before. The code that
// they skip is too long for the compiler to predicate it, and short enough for all code to stay in the first
// instruction cache.
constexpr int JUMPS = 12;

__global__ void __launch_bounds__(ALONE) stall_branch_resolving(const float* x, float* y, int rounds, unsigned always) {
    const int i = blockIdx.x * ALONE + threadIdx.x;
    const float v = x[i] + 1;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < JUMPS; ++k)
            asm volatile(
                "{\n"
                ".reg .pred p;\n"
                "setp.ne.u32 p, %0, 0;\n"
                "@p bra OVER%=;\n"
                "st.volatile.global.f32 [%1], %2;\n"
                "st.volatile.global.f32 [%1+4], %2;\n"
                "st.volatile.global.f32 [%1+8], %2;\n"
                "st.volatile.global.f32 [%1+12], %2;\n"
                "st.volatile.global.f32 [%1+16], %2;\n"
                "st.volatile.global.f32 [%1+20], %2;\n"
                "st.volatile.global.f32 [%1+24], %2;\n"
                "st.volatile.global.f32 [%1+28], %2;\n"
                "OVER%=:\n"
                "}\n" ::"r"(always), "l"(y + i), "f"(v)
                : "memory");
    }
    y[i] = v;
}

// sleeping: the thread calls __nanosleep.
__global__ void __launch_bounds__(ALONE) stall_sleeping(const float* x, float* y, int rounds) {
    const int i = blockIdx.x * ALONE + threadIdx.x;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) __nanosleep(1000);
    y[i] = x[i] + 1;
}

// not_selected: eight warps per scheduler that can all issue in every cycle, on pipes none of which is saturated: two
// FFMA, two HFMA2, one LOP3 and one IADD3 in turn.
__global__ void __launch_bounds__(CROWD) stall_not_selected(const float* x, float* y, int rounds, float one,
                                                            unsigned zero, unsigned step) {
    const int i = blockIdx.x * CROWD + threadIdx.x;
    const __half2 ones = __float2half2_rn(one), zeros2 = __float2half2_rn(float(zero));
    float v[4] = {};
    __half2 h[2] = {zeros2, zeros2};
    // Numbers that differ between threads for the compiler, which would otherwise use the uniform datapath.
    unsigned u[2] = {threadIdx.x & zero, threadIdx.x & zero};
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            v[2 * k % 4] = fmaf(v[2 * k % 4], one, one);
            h[0] = __hfma2(h[0], ones, zeros2);
            v[2 * k % 4 + 1] = fmaf(v[2 * k % 4 + 1], one, one);
            h[1] = __hfma2(h[1], ones, zeros2);
            u[k % 2] = (u[k % 2] & zero) + u[k % 2] + step;
        }
    }
    const float sum = (v[0] + v[1]) + (v[2] + v[3]) + float(u[0] + u[1]) + __low2float(h[0]) + __high2float(h[1]);
    y[i] = x[i] + sum / 16;
}
