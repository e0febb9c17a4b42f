// products: warps multiply on tensor cores, and read LOADS times 512 bytes from L2 for every 32 products.
//
// Idea         Look-alike of `lines` with fewer passes: the traffic of L2 halves where it does not matter. Eight
//              accumulators per warp and 32 warps per SM keep the tensor cores busy, while an SM reads less than it
//              could.
// Expected     No difference.
// Cost         None.
// Constraints  n a multiple of 2048.
// Source       PTX ISA, mma.sync.

#include "planted.cuh"

constexpr int SUMS = 8, ROUNDS = 16, PER_ROUND = 4 * SUMS, GROUP = 256;  // words that a warp copies

__device__ __forceinline__ void multiply(float (&sum)[4], unsigned a, unsigned b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, "
        "%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a), "r"(b));
}

__device__ __forceinline__ int4 from_l2(const int* words) {
    int4 v;
    asm volatile("ld.relaxed.gpu.global.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(words));
    return v;
}

__global__ void __launch_bounds__(THREADS, 4)
    products(const int* __restrict__ x, int* __restrict__ y, const int* __restrict__ w, int zero) {
    const int lane = threadIdx.x % LANES, begin = (blockIdx.x * THREADS + threadIdx.x) / LANES * GROUP;
    const int* own = w + begin + 4 * lane;
    float sum[SUMS][4] = {};
    int bits = 0;
#pragma unroll 1
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int k = 0; k < LOADS; ++k) {
            const int4 v = from_l2(own + (round * LOADS + k) % 2 * 128);
            bits |= v.x | v.y | v.z | v.w;
        }
#pragma unroll
        for (int k = 0; k < PER_ROUND; ++k) multiply(sum[k % SUMS], zero, zero);
    }
    float total = 0;
#pragma unroll
    for (int s = 0; s < SUMS; ++s) total += (sum[s][0] + sum[s][1]) + (sum[s][2] + sum[s][3]);
    const int nothing = bits + static_cast<int>(total);
#pragma unroll 8
    for (int i = lane; i < GROUP; i += LANES) y[begin + i] = x[begin + i] + nothing;
}

extern "C" int launch(const int* x, int* y, const int* w, void*, int n, int, int zero, cudaStream_t stream) {
    products<<<n / (THREADS / LANES * GROUP), THREADS, 0, stream>>>(x, y, w, zero);
    return cudaGetLastError();
}
