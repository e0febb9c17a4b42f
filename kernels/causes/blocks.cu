// blocks: a thread copies an element, in blocks of BLOCK threads.
//
// Idea         The GPU starts one block after the other, about 1700 per us, of whatever size. The same elements are
//              more blocks if these are small.
// Expected     Half the blocks take half the time, until device memory is the limit: with 32 to 128 threads per
//              block, the start of blocks is.
// Cost         None.
// Constraints  n a multiple of 128.
// Source       CUDA C++ Best Practices Guide, thread and block heuristics.

#include "planted.cuh"

__global__ void __launch_bounds__(BLOCK) blocks(const int* __restrict__ x, int* __restrict__ y) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    y[i] = x[i];
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int, cudaStream_t stream) {
    blocks<<<n / BLOCK, BLOCK, 0, stream>>>(x, y);
    return cudaGetLastError();
}
