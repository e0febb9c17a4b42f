// wave: WAVES blocks per SM, one at a time, and EXTRA blocks more; all of them share out the elements.
//
// Idea         Unused shared memory makes each block have an SM to itself. One block more than fits in whole waves
//              starts when the others have ended, and all SMs but one are idle until it ends. Blocks are equal, with
//              512 dependent multiply-adds per element.
// Expected     1/2 of the time if one wave becomes of two, 2/3 if two become of three.
// Cost         None.
// Constraints  n times the number of blocks below 2^32.
// Source       NVIDIA, Matrix Multiplication Background User's Guide, wave quantization.

#include "planted.cuh"

constexpr int STEPS = 512;

__global__ void __launch_bounds__(THREADS) wave(const int* __restrict__ x, int* __restrict__ y, unsigned n, int zero) {
    const int begin = n * blockIdx.x / gridDim.x, end = n * (blockIdx.x + 1) / gridDim.x;
#pragma unroll 1
    for (int i = begin + threadIdx.x; i < end; i += THREADS) y[i] = spin<STEPS>(x[i], zero);
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    int sms = 0, bytes = 0;
    cudaError_t error = sms_of_gpu(&sms);
    if (error == cudaSuccess) error = limit_residency(wave, 1, &bytes);
    if (error != cudaSuccess) return error;
    wave<<<sms * WAVES + EXTRA, THREADS, bytes, stream>>>(x, y, n, zero);
    return cudaGetLastError();
}
