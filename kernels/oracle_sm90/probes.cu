// probes: kernels with known results for features of Hopper. `probe` selects one, `amount` its size.
//
// Idea         As in `oracle`: known operations of wgmma, warps that wait for them, sixteen barriers per block,
//              clusters.
// Expected     Every verdict of `snakemake oracle` is right.
// Cost         None: the probes are not meant to be fast.
// Constraints  sm_90a; n as each probe requires (family.yaml has it); x holds integers, y = x + adds.
// Source       PTX ISA, wgmma and bar; CUDA Programming Guide, thread-block clusters.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "wgmma.cuh"

enum Probe { WGMMA = 0, GMMA = 1, BY_BARRIERS = 2, CLUSTER = 3 };

constexpr int GROUP = 128;             // threads of a warpgroup, and of a block
constexpr int RIVALS = 4;              // warpgroups of a block that share the tensor cores
constexpr int ROW = 64;                // bf16 values in the 128 bytes of a row
constexpr int BARRIER_THREADS = 64, BARRIERS = 16;
constexpr int CLUSTER_THREADS = 1024, CLUSTER_BLOCKS = 8;

// All operands are ones, so that neither their layout nor that of the results matters: every product adds 16 to all
// 64 x 2 COUNT results of the warpgroup, of which a thread holds COUNT.
template <int COUNT, int PRODUCTS, int GROUPS, int IN_FLIGHT>
__device__ __forceinline__ void grow(__nv_bfloat16* ones, const float* x, float* y, int rounds) {
    for (int i = threadIdx.x; i < (wgmma::M + 2 * COUNT) * ROW; i += GROUPS * GROUP) ones[i] = __float2bfloat16(1.0f);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const int first = (blockIdx.x * GROUPS + threadIdx.x / GROUP) * GROUP * COUNT + threadIdx.x % GROUP;
    float sum[COUNT];
#pragma unroll
    for (int j = 0; j < COUNT; ++j) sum[j] = x[first + j * GROUP];
    const uint64_t a = wgmma::describe(ones), b = wgmma::describe(ones + wgmma::M * ROW);
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
        wgmma::fence();
#pragma unroll
        for (int k = 0; k < PRODUCTS; ++k) wgmma::multiply(sum, a, b, 1);
        wgmma::commit();
        wgmma::wait<IN_FLIGHT>();
        if (IN_FLIGHT == 0) wgmma::pin(sum);
    }
    wgmma::wait<0>();
    wgmma::pin(sum);
#pragma unroll
    for (int j = 0; j < COUNT; ++j) y[first + j * GROUP] = sum[j];
}

// 64 x 64 x 16 products: 131072 operations each.
__global__ void __launch_bounds__(GROUP) count_wgmma(const float* x, float* y, int rounds) {
    __shared__ __align__(1024) __nv_bfloat16 ones[(wgmma::M + 64) * ROW];
    grow<32, 1, 1, 0>(ones, x, y, rounds);
}

// gmma: four warpgroups start products while those of the others occupy the tensor cores. A warp that waits for its own
// products to end is reported as waiting at a `barrier`.
__global__ void __launch_bounds__(RIVALS * GROUP) stall_gmma(const float* x, float* y, int rounds) {
    __shared__ __align__(1024) __nv_bfloat16 ones[(wgmma::M + 64) * ROW];
    grow<32, 8, RIVALS, 1>(ones, x, y, rounds);
}

template <int FIRST>
__device__ __forceinline__ void wait_at() {
    asm volatile("bar.sync %0, %1;" ::"n"(FIRST), "n"(BARRIER_THREADS) : "memory");
    if constexpr (FIRST + 1 < BARRIERS) wait_at<FIRST + 1>();
}

// An SM has two barriers for each of the 32 blocks it can hold: if each block uses sixteen, four blocks fit.
__global__ void __launch_bounds__(BARRIER_THREADS) limited_by_barriers(const float* x, float* y) {
    const int i = blockIdx.x * BARRIER_THREADS + threadIdx.x;
    const float v = x[i] + 1;
    wait_at<0>();
    y[i] = v;
}

// A cluster limits how many blocks the GPU holds, not how many an SM holds.
__global__ void __cluster_dims__(CLUSTER_BLOCKS) __launch_bounds__(CLUSTER_THREADS)
    blocks_in_clusters(const float* x, float* y) {
    const int i = blockIdx.x * CLUSTER_THREADS + threadIdx.x;
    y[i] = x[i] + 1;
}

extern "C" int launch(const float* x, float* y, int n, int probe, int amount, cudaStream_t stream) {
    switch (probe) {
        case WGMMA: count_wgmma<<<n / (64 * 64), GROUP, 0, stream>>>(x, y, amount); break;
        case GMMA: stall_gmma<<<n / (64 * 64 * RIVALS), RIVALS * GROUP, 0, stream>>>(x, y, amount); break;
        case BY_BARRIERS: limited_by_barriers<<<n / BARRIER_THREADS, BARRIER_THREADS, 0, stream>>>(x, y); break;
        case CLUSTER: blocks_in_clusters<<<n / CLUSTER_THREADS, CLUSTER_THREADS, 0, stream>>>(x, y); break;
        default: return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}
