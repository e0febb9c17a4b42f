// tiles: each block takes tile after tile: load it into shared memory, wait, compute on it, write it. AHEAD 1 loads
// the next tile before it computes on this one.
//
// Idea         Loading and computing need different units, and a block that does one after the other pays for both.
//              With a second buffer, whose load is under way meanwhile, it pays for the longer one. Both variants
//              copy by cp.async, have two buffers and one barrier per tile, and run as one block per SM. SPIN is the
//              number of dependent multiply-adds per tile.
// Expected     From load + spin to the longer of the two: about 1/2 of the time if both take 1100 cycles.
// Cost         The second buffer.
// Constraints  n a multiple of 1024.
// Source       CUDA C++ Programming Guide, asynchronous data copies.

#include <cuda_pipeline.h>

#include "planted.cuh"

__device__ __forceinline__ void begin_load(int4* slot, const int4* word) {
    __pipeline_memcpy_async(slot, word, sizeof(int4));
    __pipeline_commit();
}

__global__ void __launch_bounds__(THREADS)
    tiles(const int4* __restrict__ x, int4* __restrict__ y, int count, int zero) {
    __shared__ int4 buffers[2][THREADS];
    const int t = threadIdx.x, other = t ^ LANES;  // reads what another warp loaded
    int now = 0;
    if (AHEAD && blockIdx.x < count) begin_load(&buffers[0][t], x + blockIdx.x * THREADS + t);
#pragma unroll 1
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x, now ^= 1) {
        if (!AHEAD) begin_load(&buffers[now][t], x + tile * THREADS + t);
        __pipeline_wait_prior(0);
        __syncthreads();
        const int next = tile + gridDim.x;
        if (AHEAD && next < count) begin_load(&buffers[now ^ 1][t], x + next * THREADS + t);
        int4 v = buffers[now][other];
        v.x = spin<SPIN>(v.x, zero);
        y[tile * THREADS + other] = v;
    }
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    int sms = 0;
    const cudaError_t error = sms_of_gpu(&sms);
    if (error != cudaSuccess) return error;
    tiles<<<sms, THREADS, 0, stream>>>(reinterpret_cast<const int4*>(x), reinterpret_cast<int4*>(y), n / 4 / THREADS,
                                       zero);
    return cudaGetLastError();
}
