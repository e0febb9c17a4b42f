// Known numbers of instructions: straight-line code of LENGTH instructions of one kind, each adding 1 to x.
//
// The operands are arguments, so that the compiler cannot compute results. Two lengths of the same code differ by
// exactly the additional instructions of one: the code around them cancels.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

template <int LENGTH>
__global__ void count_ffma(const float* x, float* y, float one) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = x[i];
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) v = fmaf(v, one, one);
    y[i] = v;
}

template <int LENGTH>
__global__ void count_dfma(const float* x, float* y, double one) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    double v = x[i];
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) v = fma(v, one, one);
    y[i] = float(v);
}

// Two values per instruction; integers up to 2048 are exact in half precision.
template <int LENGTH>
__global__ void count_hfma2(const float* x, float* y, float one) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const __half2 ones = __float2half2_rn(one);
    __half2 v = __float2half2_rn(x[i]);
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) v = __hfma2(v, ones, ones);
    y[i] = __low2float(v);
}

template <int LENGTH>
__global__ void count_imad(const float* x, float* y, unsigned one) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = unsigned(x[i]);
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) v = v * one + one;
    y[i] = float(v);
}

// Three summands, since sums of two also use instructions other than IADD3. The first is always 0, which the compiler
// does not know, so that it cannot combine steps: one LOP3 and one IADD3 per step.
template <int LENGTH>
__global__ void count_iadd3(const float* x, float* y, unsigned one, unsigned zero) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = unsigned(x[i]);
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) v = (v & zero) + v + one;
    y[i] = float(v);
}

// A product of 16 x 8 results over 8 terms, in half precision with fp32 sums: 2048 operations per warp. Each of the
// four results of a thread grows by 8, from 8 products of ones.
__device__ __forceinline__ void multiply_16x8x8(float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t b) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a0), "r"(a1), "r"(b));
}
constexpr unsigned HALF_ONES = 0x3C003C00u;  // two ones in half precision

template <int LENGTH>
__global__ void count_mma(const float* x, float* y, unsigned ones) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) sum[j] = x[4 * i + j];
#pragma unroll
    for (int k = 0; k < LENGTH; ++k) multiply_16x8x8(sum, ones, ones, ones);
#pragma unroll
    for (int j = 0; j < 4; ++j) y[4 * i + j] = sum[j];
}
