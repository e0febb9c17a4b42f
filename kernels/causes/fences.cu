// fences: 16 rounds of four writes per warp, FENCES of which the warp waits for until the whole GPU can see them.
//
// Idea         __threadfence() waits for the answers of L2 to the writes before it, a round trip. Without it, a warp
//              goes on as soon as it has sent a write. A lane of each warp writes, always to the same word.
// Expected     A quarter of the fences take a little over a quarter of the time; without any, the writes take the
//              rest.
// Cost         None.
// Constraints  n a multiple of 1024.
// Source       CUDA C++ Programming Guide, memory fence functions.

#include "planted.cuh"

constexpr int ROUNDS = 16, PARTS = 4;

__global__ void __launch_bounds__(THREADS)
    fences(const int4* __restrict__ x, int4* __restrict__ y, int* scratch) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    volatile int* own = scratch + i / LANES * LANES;
    const int4 v = x[i];
#pragma unroll 4
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int part = 1; part <= PARTS; ++part) {
            if (threadIdx.x % LANES == 0) *own = round * PARTS + part;
            if (FENCES > 0 && part * FENCES % PARTS == 0) __threadfence();
        }
    }
    y[i] = v;
}

extern "C" int launch(const int* x, int* y, const int*, void* scratch, int n, int, int, cudaStream_t stream) {
    fences<<<n / 4 / THREADS, THREADS, 0, stream>>>(reinterpret_cast<const int4*>(x), reinterpret_cast<int4*>(y),
                                                    static_cast<int*>(scratch));
    return cudaGetLastError();
}
