// chains: 4096 multiply-adds per 16 bytes in eight chains, with RESIDENT blocks of 8 warps on an SM at a time.
//
// Idea         Look-alike of `copy` with more resident warps: occupancy doubles where nothing waits. A multiply-add
//              takes 4 cycles; two warps per scheduler with eight chains each have sixteen under way.
// Expected     No difference.
// Cost         None.
// Constraints  n a multiple of 4; n/4 times the number of blocks below 2^32.
// Source       V. Volkov, Better performance at lower occupancy, GTC 2010.

#include "planted.cuh"

constexpr int CHAINS = 8, FMAS = 4096, BLOCKS = 2;  // of an SM, in all

__global__ void __launch_bounds__(THREADS)
    chains(const int4* __restrict__ x, int4* __restrict__ y, unsigned count, int zero) {
    const int begin = count * blockIdx.x / gridDim.x + threadIdx.x, end = count * (blockIdx.x + 1) / gridDim.x;
    const float nothing = zero, one = zero + 1;
    int4 next = begin < end ? x[begin] : int4{};
#pragma unroll 1
    for (int i = begin; i < end; i += THREADS) {
        int4 v = next;
        if (i + THREADS < end) next = x[i + THREADS];
        float sum[CHAINS];
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sum[c] = zero * (i + c);  // equal chains would be computed once
#pragma unroll 16
        for (int step = 0; step < FMAS / CHAINS; ++step)
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) sum[c] = fmaf(sum[c], one, nothing);
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) v.x += static_cast<int>(sum[c]);
        y[i] = v;
    }
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    int sms = 0, bytes = 0;
    cudaError_t error = sms_of_gpu(&sms);
    if (error == cudaSuccess) error = limit_residency(chains, RESIDENT, &bytes);
    if (error != cudaSuccess) return error;
    chains<<<sms * BLOCKS, THREADS, bytes, stream>>>(reinterpret_cast<const int4*>(x), reinterpret_cast<int4*>(y),
                                                     n / 4, zero);
    return cudaGetLastError();
}
