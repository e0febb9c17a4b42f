// cluster: a long row is split over a cluster of up to eight blocks, which combine through distributed shared memory.
//
// Idea         A row of more than 32 KiB is divided among 2, 4 or 8 blocks of at most 512 threads, each of which keeps
//              its part in registers. Each block stores its pair to the shared memory of all of them; these stores
//              count their bytes at an mbarrier of the receiver, which replaces the fence and the cluster barrier after
//              them. An SM thus holds parts of several rows in different phases, and loads stay in flight while other
//              parts wait. Rows of up to 256 KiB are read once, and one row of 65536 fp32 elements is the work of eight
//              SMs.
//              Rows of up to 4 KiB run the kernel of `warp_per_row`, and rows of up to 32 KiB that of `registers`: at
//              4096 x 4096 (16 KiB per row, 8 KiB in bf16) this variant runs the code of `registers`.
// Expected     1.2 times `warp_per_row` at 128 KiB per row, where one block of 1024 threads occupies its SM alone; four
//              times at one row of 65536 fp32. At least 0.9 of the bandwidth of a copy above 64 MB.
// Cost         A round trip between SMs per row, hidden where the SM has other blocks to run. Eight blocks of a cluster
//              must find room in one part of the GPU (GPC) at the same time.
// Constraints  sm_90 or later; otherwise as `vectorized`. Rows of more than 256 KiB are read twice.
// Source       NVIDIA, CUDA C++ Programming Guide, thread block clusters; Dao-AILab, quack (softmax over clusters).

#include <cuda_runtime.h>

#include "clusters.cuh"
#include "exchange.cuh"
#include "one_read.cuh"

constexpr int PACKS = 4;  // per thread

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// One cluster per row; its blocks have the packs of the row in their order.
template <typename T>
__global__ void __launch_bounds__(BLOCK, rows::RESIDENT_THREADS / BLOCK)
    softmax_cluster(const T* __restrict__ x, T* __restrict__ y, int columns) {
    __shared__ Pair part[32];
    __shared__ Exchange exchange;
    exchange.begin();
    const int blocks = cluster_blocks(), index = blockIdx.x / blocks;
    const int first = cluster_rank() * PACKS * blockDim.x + threadIdx.x;
    const rows::Row<T, true> row(x, index, columns);
    rows::Pack<T> pack[PACKS];
    load_packs(row, first, blockDim.x, pack);
    Pair pair = rows::over_block(pair_of(pack), no_logits(), part, Combine());
    exchange.complete_begin();
    const float4* of_block = exchange.all(make_float4(pair.max, pair.sum, 0.0f, 0.0f), 0);
    pair = no_logits();
    for (int b = 0; b < blocks; ++b) pair = Combine()(pair, {of_block[b].x, of_block[b].y});
    write_packs(row, y + static_cast<size_t>(index) * columns, first, blockDim.x, pack, pair);
}

// Launches a cluster of 2, 4 or 8 blocks per row.
template <typename T>
static cudaError_t launch_clusters(const T* x, T* y, int row_count, int columns, int packs, cudaStream_t stream) {
    int blocks = 2;
    while (blocks * PACKS * BLOCK < packs) blocks *= 2;
    const int threads = rows::threads_for((packs - 1) / blocks + 1, PACKS);
    ClusterLaunch launch(row_count, blocks, threads, stream);
    return cudaLaunchKernelEx(&launch.config, softmax_cluster<T>, x, y, columns);
}

template <typename T>
static cudaError_t softmax(const T* x, T* y, int row_count, int columns, cudaStream_t stream) {
    const int packs = columns / rows::Pack<T>::SIZE;
    if (!rows::are_aligned<T>(columns, x, y) || packs > MOST_BLOCKS * PACKS * BLOCK)
        launch_two_reads(x, y, row_count, columns, stream);
    else if (packs > PACKS * BLOCK)
        return launch_clusters(x, y, row_count, columns, packs, stream);
    else if (packs > MOST_OF_A_WARP)
        launch_blocks(x, y, row_count, columns, packs, stream);
    else
        launch_warps(x, y, row_count, columns, packs, stream);
    return cudaGetLastError();
}

extern "C" int launch(const void* x, void* y, int row_count, int columns, int element_bytes, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        return softmax(static_cast<const T*>(x), static_cast<T*>(y), row_count, columns, stream);
    });
}
