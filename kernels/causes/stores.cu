// stores: each block takes tile after tile: compute it, put it into shared memory, store it from there by a bulk
// copy. WAIT 1 waits until the tile is in global memory, WAIT 0 only until the buffer before it can be used again.
//
// Idea         A bulk copy runs in the background. A block that waits for it before the next tile pays for computing
//              and for storing, one that goes on pays for the longer of them. Both variants have two buffers, the
//              same copies and barriers, and run as one block per SM; the next tile is read while this one is
//              computed.
// Expected     From spin + store to about spin.
// Cost         The second buffer.
// Constraints  n a multiple of 1024.
// Source       PTX ISA, cp.async.bulk.

#include "bulk.cuh"
#include "planted.cuh"

__device__ __forceinline__ void store(int4* to, const int4* from) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
                 "r"(shared_address(from)), "r"(static_cast<int>(THREADS * sizeof(int4)))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__global__ void __launch_bounds__(THREADS)
    stores(const int4* __restrict__ x, int4* __restrict__ y, int count, int zero) {
    __shared__ __align__(128) int4 buffers[2][THREADS];
    const int t = threadIdx.x;
    int now = 0;
    int4 v = blockIdx.x < count ? x[blockIdx.x * THREADS + t] : int4{};
#pragma unroll 1
    for (int tile = blockIdx.x; tile < count; tile += gridDim.x, now ^= 1) {
        const int next = tile + gridDim.x;
        const int4 ahead = next < count ? x[next * THREADS + t] : int4{};
        v.x = spin<SPIN>(v.x, zero);
        if (!WAIT && t == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
        __syncthreads();
        buffers[now][t] = v;
        bulk::publish_writes();
        __syncthreads();
        if (t == 0) {
            store(y + tile * THREADS, buffers[now]);
            if (WAIT) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        }
        v = ahead;
    }
    if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    int sms = 0;
    const cudaError_t error = sms_of_gpu(&sms);
    if (error != cudaSuccess) return error;
    stores<<<sms, THREADS, 0, stream>>>(reinterpret_cast<const int4*>(x), reinterpret_cast<int4*>(y), n / 4 / THREADS,
                                        zero);
    return cudaGetLastError();
}
