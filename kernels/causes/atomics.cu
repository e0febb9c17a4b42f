// atomics: a copy in which a lane of each warp adds 1 to one of ADDRESSES words in global memory.
//
// Idea         L2 adds to one address one request after the other, and to different addresses at the same time. The
//              number of additions is the same; the words are 1 KiB apart.
// Expected     1.5 to 2 ns per addition to one address; 1/8 of that with eight addresses; with 64, the copy is the
//              limit.
// Cost         None.
// Constraints  n a multiple of 256.
// Source       CUDA C++ Programming Guide, atomic functions.

#include "planted.cuh"

constexpr int APART = 256;  // words

static_assert((ADDRESSES & (ADDRESSES - 1)) == 0, "a power of two");

__global__ void __launch_bounds__(THREADS)
    atomics(const int* __restrict__ x, int* __restrict__ y, unsigned* scratch, int zero) {
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i];
    // The compiler must not know of a single address: it would first count the lanes that add to it.
    const unsigned word = i / LANES & (ADDRESSES - 1 | zero);
    if (threadIdx.x % LANES == 0) atomicAdd(scratch + word * APART, 1);
}

extern "C" int launch(const int* x, int* y, const int*, void* scratch, int n, int, int zero, cudaStream_t stream) {
    atomics<<<n / THREADS, THREADS, 0, stream>>>(x, y, static_cast<unsigned*>(scratch), zero);
    return cudaGetLastError();
}
