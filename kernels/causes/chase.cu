// chase: each thread follows eight rings of indices, CHAINS of them at a time, and copies each index that it reads.
//
// Idea         A hop needs the index that the hop before it loaded, and waits for device memory. Rings do not depend
//              on each other: two that are followed at once take the time of one. Neighbouring threads are at
//              neighbouring words, and there is one warp per SM, so that latency is all that counts.
// Expected     1/2, 1/4 and 1/8 of the time.
// Cost         A register per chain.
// Constraints  n a multiple of `rings`, and `rings` of 256.
// Source       V. Volkov, Better performance at lower occupancy, GTC 2010.

#include "planted.cuh"

constexpr int RINGS = 8;  // of a thread

__global__ void __launch_bounds__(LANES) chase(const int* __restrict__ x, int* __restrict__ y, int hops, int threads) {
    const int thread = blockIdx.x * LANES + threadIdx.x;
#pragma unroll 1
    for (int first = 0; first < RINGS; first += CHAINS) {
        int at[CHAINS];
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) at[c] = thread + (first + c) * threads;
#pragma unroll 1
        for (int hop = 0; hop < hops; ++hop) {
            int next[CHAINS];
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) next[c] = x[at[c]];
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) {
                y[at[c]] = next[c];
                at[c] = next[c];
            }
        }
    }
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int rings, int, cudaStream_t stream) {
    const int threads = rings / RINGS;
    chase<<<threads / LANES, LANES, 0, stream>>>(x, y, n / rings, threads);
    return cudaGetLastError();
}
