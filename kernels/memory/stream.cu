// stream: all threads read the ring with loads of 16 bytes, of which each has LOADS in flight.
//
// Idea         The bytes in flight are the bandwidth times the latency (Little's law): 2 MB for the device memory of an
//              H100, 15 KB per SM. A thread provides them by loads that do not depend on each other, or the SM by more
//              warps. Each SM reads the whole ring by itself, `rounds` times, each beginning elsewhere; or, if
//              `together`, all SMs share the ring and read it once.
// Expected     With one load in flight, four warps per SM reach a quarter of the bandwidth of device memory; 64 warps
//              reach all of it. With four loads, 16 warps do. From L1, 128 bytes per cycle and SM.
// Cost         Four registers per load in flight.
// Constraints  n a multiple of 512; 1 to 32 warps per SM, or an even number up to 64.
// Source       V. Volkov, Better performance at lower occupancy, GTC 2010.

#include <cuda_runtime.h>

#include "sweep.cuh"

// Of the blocks that share a ring: their sum, and how many have added to it. The last one sets both to 0 again.
__device__ unsigned gathered, ended;

__global__ void __launch_bounds__(MOST_THREADS, 2)
    memory_stream(const Word* __restrict__ ring, unsigned* out, int pieces, int rounds, bool together) {
    const int warps = blockDim.x / 32, blocks = gridDim.x, block = blockIdx.x;
    const int begin = (together ? block * warps : 0) + threadIdx.x / 32, step = together ? blocks * warps : warps;
    const int first = together ? 0 : pieces / blocks * block;
    const unsigned total = block_total(sweep(ring, pieces, begin, rounds * pieces, step, first));
    if (threadIdx.x > 0) return;
    if (!together) {
        *out = total;  // every block has the same
        return;
    }
    atomicAdd(&gathered, total);
    __threadfence();
    if (atomicInc(&ended, blocks - 1) == blocks - 1) *out = atomicExch(&gathered, 0);
}

extern "C" int launch(const int* ring, unsigned* out, void*, int n, int, int, int rounds, int warps, int together,
                      cudaStream_t stream) {
    int device = 0, sms = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    const int per_sm = (32 * warps - 1) / MOST_THREADS + 1;
    memory_stream<<<sms * per_sm, 32 * warps / per_sm, 0, stream>>>(reinterpret_cast<const Word*>(ring), out,
                                                                    n / PIECE, rounds, together);
    return cudaGetLastError();
}
