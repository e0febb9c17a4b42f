// copy: out = x, 8 bytes an element; y and a are not used.
//
// Idea         A thread moves four neighbouring floats, so that every access is 16 bytes wide and every byte is moved
//              once. A kernel and no cudaMemcpy: all timers see the same thing.
// Expected     The bandwidth of the device memory where the arrays are much larger than L2.
// Constraints  Arrays that start on 16 bytes; any n from 1.

#include <cuda_runtime.h>

constexpr int THREADS = 256;
constexpr int WIDTH = 4;  // floats a thread

__global__ void __launch_bounds__(THREADS) copy(const float* __restrict__ x, float* __restrict__ out, size_t n) {
    const size_t first = (blockIdx.x * size_t(THREADS) + threadIdx.x) * WIDTH;
    if (first + WIDTH <= n) {
        *reinterpret_cast<float4*>(out + first) = *reinterpret_cast<const float4*>(x + first);
    } else {
#pragma unroll 1  // at most three: no code for more
        for (size_t i = first; i < n; ++i) out[i] = x[i];
    }
}

extern "C" int launch(const float* x, const float*, float* out, int n, float, cudaStream_t stream) {
    const int blocks = (n - 1) / (THREADS * WIDTH) + 1;
    copy<<<blocks, THREADS, 0, stream>>>(x, out, n);
    return cudaGetLastError();
}
