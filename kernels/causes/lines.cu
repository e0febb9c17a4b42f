// lines: each warp reads 1024 words PASSES times from L2, with requests that touch LINES lines of 128 bytes each, and
// then copies them.
//
// Idea         A request of 32 neighbouring words touches one line and its four sectors. If the lanes are spread over
//              more lines, each sector is fetched for fewer words: all 32 of a line's words are read in any case, but
//              a sector of 32 bytes brings 4 (32 lines), 8 (16 lines) or 16 (8 lines) bytes that are used. PASSES
//              reads the same words more often: more traffic of L2, with requests as they should be.
// Expected     L2 delivers sectors at a fixed rate: half the sectors take half the time.
// Cost         None: the loads bypass L1 (ld.relaxed.gpu), which would hide the sectors that are fetched twice.
// Constraints  n a multiple of 8192.
// Source       CUDA C++ Best Practices Guide, coalesced access to global memory.

#include "planted.cuh"

constexpr int GROUP = 1024, WIDTH = LANES / LINES;  // words of a warp, and neighbouring ones of them in a request

__device__ __forceinline__ int from_l2(const int* word) {
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(word));  // again in each pass
    return value;
}

__global__ void __launch_bounds__(THREADS) lines(const int* __restrict__ x, int* __restrict__ y, int zero) {
    const int lane = threadIdx.x % LANES, begin = (blockIdx.x * THREADS + threadIdx.x) / LANES * GROUP;
    const int* own = x + begin + lane / WIDTH * LANES + lane % WIDTH;
    int sum = 0;
#pragma unroll 1
    for (int pass = 0; pass < PASSES; ++pass) {
#pragma unroll
        for (int step = 0; step < GROUP / LANES; ++step)
            sum += from_l2(own + step / LINES * LINES * LANES + step % LINES * WIDTH);
    }
#pragma unroll 8
    for (int i = lane; i < GROUP; i += LANES) y[begin + i] = x[begin + i] + (sum & zero);
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int zero, cudaStream_t stream) {
    lines<<<n / (THREADS / LANES * GROUP), THREADS, 0, stream>>>(x, y, zero);
    return cudaGetLastError();
}
