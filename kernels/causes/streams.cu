// streams: a copy of x, and copies of STREAMS - 1 further arrays of the same size.
//
// Idea         Each further array adds its bytes to those that device memory reads and writes, in the same
//              proportion. Nothing else changes: a thread copies 16 bytes of each array.
// Expected     Device memory is the limit, so that half the bytes take half the time.
// Cost         The further copies, which nobody asked for.
// Constraints  n a multiple of 1024; arrays larger than L2.
// Source       None.

#include "planted.cuh"

__global__ void __launch_bounds__(THREADS)
    streams(const int4* __restrict__ x, int4* __restrict__ y, const int4* __restrict__ w, int4* __restrict__ scratch,
            int quads) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    int4 values[STREAMS];
#pragma unroll
    for (int s = 0; s < STREAMS; ++s) values[s] = s == 0 ? x[i] : w[static_cast<size_t>(s - 1) * quads + i];
#pragma unroll
    for (int s = 0; s < STREAMS; ++s) (s == 0 ? y[i] : scratch[static_cast<size_t>(s - 1) * quads + i]) = values[s];
}

extern "C" int launch(const int* x, int* y, const int* w, void* scratch, int n, int, int, cudaStream_t stream) {
    streams<<<n / 4 / THREADS, THREADS, 0, stream>>>(reinterpret_cast<const int4*>(x), reinterpret_cast<int4*>(y),
                                                     reinterpret_cast<const int4*>(w), static_cast<int4*>(scratch),
                                                     n / 4);
    return cudaGetLastError();
}
