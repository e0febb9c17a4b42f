// copy_with_work: a copy with STEPS integer instructions per word.
//
// Idea         Look-alike of `integers`: fewer instructions where they do not matter. In the time that device memory
//              takes for a word per lane of a warp, both ways, an SM executes 40 multiply-adds of integers for that
//              warp.
// Expected     No difference.
// Cost         None.
// Constraints  n a multiple of 1024; arrays larger than L2.
// Source       None.

#include "planted.cuh"

__global__ void __launch_bounds__(THREADS)
    copy_with_work(const int4* __restrict__ x, int4* __restrict__ y, int zero) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    int4 v = x[i];
    v.x = spin<STEPS>(v.x, zero);
    v.y = spin<STEPS>(v.y, zero);
    v.z = spin<STEPS>(v.z, zero);
    v.w = spin<STEPS>(v.w, zero);
    y[i] = v;
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    copy_with_work<<<n / 4 / THREADS, THREADS, 0, stream>>>(reinterpret_cast<const int4*>(x),
                                                            reinterpret_cast<int4*>(y), zero);
    return cudaGetLastError();
}
