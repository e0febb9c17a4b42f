// Shared-memory accesses with a known number of passes (wavefronts): one store and READS loads per thread, all with the
// same pattern, so that each of them takes the same number of passes.
//
// Each lane reads back READS times what it stored and writes READS * x.
#pragma once

#include <cuda_runtime.h>

#include "patterns.cuh"

constexpr int READS = 15;
constexpr int BANK_THREADS = 128, BANK_WARPS = BANK_THREADS / 32;

// `ways` lanes, 1 to 32, share a bank.
__global__ void __launch_bounds__(BANK_THREADS) bank_conflict(const float* x, float* y, int ways) {
    __shared__ float words[BANK_WARPS * patterns::CONFLICT_WORDS];
    const int i = blockIdx.x * BANK_THREADS + threadIdx.x;
    volatile float* word = words + threadIdx.x / 32 * patterns::CONFLICT_WORDS +
                           patterns::conflicting_word(threadIdx.x % 32, ways);
    *word = x[i];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < READS; ++k) sum += *word;
    y[i] = sum;
}

// Neighbouring lanes access every STRIDE-th word.
template <int STRIDE>
__global__ void __launch_bounds__(BANK_THREADS) bank_stride(const float* x, float* y) {
    __shared__ float words[BANK_THREADS * STRIDE];
    const int i = blockIdx.x * BANK_THREADS + threadIdx.x;
    volatile float* word = words + threadIdx.x * STRIDE;
    *word = x[i];
    float sum = 0;
#pragma unroll
    for (int k = 0; k < READS; ++k) sum += *word;
    y[i] = sum;
}

// Column k of a row-major tile, s[warp][k]: all lanes of a warp read the same word, in one pass. The words are zeros,
// which the compiler does not know (NaN - NaN is not 0); they are added to x, READS times.
__global__ void __launch_bounds__(BANK_THREADS) bank_broadcast(const float* x, float* y) {
    __shared__ float words[BANK_WARPS][32];
    const int i = blockIdx.x * BANK_THREADS + threadIdx.x;
    const volatile float* row = words[threadIdx.x / 32];
    const float v = x[i];
    *const_cast<volatile float*>(row + threadIdx.x % 32) = v - v;
    __syncwarp();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < READS; ++k) sum += row[k] + v;
    y[i] = sum;
}

// Sixteen bytes per lane: 512 bytes per warp take four passes, none of them a conflict.
__global__ void __launch_bounds__(BANK_THREADS) bank_vector(const float* x, float* y) {
    __shared__ float4 words[BANK_THREADS];
    const int i = blockIdx.x * BANK_THREADS + threadIdx.x;
    const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(words + threadIdx.x));
    const float v = x[i], zero = v - v;
    asm volatile("st.volatile.shared.v4.f32 [%0], {%1, %2, %2, %2};" ::"r"(address), "f"(v), "f"(zero) : "memory");
    float sum = 0;
#pragma unroll
    for (int k = 0; k < READS; ++k) {
        float4 word;
        asm volatile("ld.volatile.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(word.x), "=f"(word.y), "=f"(word.z), "=f"(word.w)
                     : "r"(address)
                     : "memory");
        sum += (word.x + word.y) + (word.z + word.w);
    }
    y[i] = sum;
}
