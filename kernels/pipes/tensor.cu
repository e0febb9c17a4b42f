// tensor: the multiply-adds on tensor cores, back to back; no operand is loaded but from shared memory.
//
// Idea         A product of 64 x 256 results and 16 terms is 2048 multiply-adds per thread of a warpgroup, 16 for each
//              of its 128 sums. Both operands are 1, so that each product adds 16 to each sum. Products of a group
//              follow each other without a wait, and one group is always waiting for the tensor cores.
// Expected     128 cycles per product with four warps per SM: 95 to 100 % of the cycles of the tensor cores, and a
//              sixteenth of the time of four chains on the FMA pipe.
// Cost         128 registers for the sums; 32 KiB of shared memory.
// Constraints  sm_90a; `fmas` a multiple of 16384; four warps per SM. All SMs compute the same.
// Source       PTX ISA, wgmma.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "wgmma.cuh"

constexpr int WARPS = 4, THREADS = 32 * WARPS;  // a warpgroup
constexpr int SUMS = 128, IN_A_ROW = 8;         // of a thread; products of a group
constexpr int OF_PRODUCT = wgmma::K * SUMS;     // multiply-adds of a thread
constexpr int ROWS = 256, TERMS = 64;           // of a tile; those of both operands lie in the same

__global__ void __launch_bounds__(THREADS)
    pipes_tensor(const float* __restrict__ x, float* y, int fmas) {
    __shared__ __align__(1024) __nv_bfloat16 ones[ROWS * TERMS];
    for (int i = threadIdx.x; i < ROWS * TERMS; i += THREADS) ones[i] = __float2bfloat16(1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const uint64_t tile = wgmma::describe(ones);
    float sum[SUMS] = {};
#pragma unroll 1
    for (int done = 0; done < fmas; done += IN_A_ROW * OF_PRODUCT) {
        wgmma::fence();
#pragma unroll
        for (int k = 0; k < IN_A_ROW; ++k) wgmma::multiply(sum, tile, tile, 1);
        wgmma::commit();
        wgmma::wait<1>();
    }
    wgmma::wait<0>();
    wgmma::pin(sum);
    float result = x[threadIdx.x];
#pragma unroll
    for (int s = 0; s < SUMS; ++s) result += sum[s];
    y[threadIdx.x] = result;
}

extern "C" int launch(const float* x, float* y, int, int fmas, float, cudaStream_t stream) {
    int device = 0, sms = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    pipes_tensor<<<sms, THREADS, 0, stream>>>(x, y, fmas);
    return cudaGetLastError();
}
