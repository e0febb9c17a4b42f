// launches: a copy in LAUNCHES kernels, each of which copies its share.
//
// Idea         A kernel starts when the one before it has ended, which takes longer than a small copy. The bytes are
//              the same, and so few that a part of the GPU copies them as fast as all of it.
// Expected     Half the launches take half the time.
// Cost         None.
// Constraints  n a multiple of 8192.
// Source       CUDA C++ Programming Guide, streams.

#include "planted.cuh"

__global__ void __launch_bounds__(THREADS) copy_part(const int4* __restrict__ x, int4* __restrict__ y) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    y[i] = x[i];
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int, cudaStream_t stream) {
    const int part = n / LAUNCHES;
    for (int k = 0; k < LAUNCHES; ++k)
        copy_part<<<part / 4 / THREADS, THREADS, 0, stream>>>(reinterpret_cast<const int4*>(x + k * part),
                                                              reinterpret_cast<int4*>(y + k * part));
    return cudaGetLastError();
}
