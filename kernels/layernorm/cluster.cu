// cluster: a long row is split over a cluster of up to eight blocks, which combine through distributed shared memory.
//
// Idea         A row of more than 32 KiB is divided among 2, 4 or 8 blocks of at most 512 threads, each of which keeps
//              its part in registers. Each block takes the mean and the squared differences of its part and stores them
//              to the shared memory of all blocks, each of which merges them, weighted by the counts of the parts.
//              These stores count their bytes at an mbarrier of the receiver: no fence is required, and no barrier of
//              the cluster, whose end would invalidate L1. Rows of up to 256 KiB are thus read once, parts of two
//              different rows share an SM, and one row of 65536 fp32 elements is the work of eight SMs.
//              There are as many clusters as can run at once, and each takes one row after another. A block requires
//              the same part of gamma and beta for each row and finds it in L1: otherwise L2 would deliver three times
//              the bytes of x. Rows of up to 4 KiB run the kernel of `warp_per_row`, and rows of up to 32 KiB that of
//              `registers`: at 4096 x 4096 (16 KiB per row, 8 KiB in bf16) this variant runs the code of `registers`.
// Expected     1.2 times `warp_per_row` at 128 KiB per row, where one block of 1024 threads occupies its SM alone; four
//              times at one row of 65536 fp32. At least 0.9 of the bandwidth of a copy above 64 MB.
// Cost         A round trip between SMs per row, hidden by the other block of the SM. Eight blocks of a cluster must
//              find room in one part of the GPU (GPC) at the same time. The last wave of rows may be partial: 17 waves
//              instead of 16.5 for 1024 rows on 62 clusters.
// Constraints  sm_90 or later; otherwise as `vectorized`. Rows of more than 256 KiB are read twice.
// Source       NVIDIA, CUDA C++ Programming Guide, thread block clusters; Dao-AILab, quack (norms over clusters).

#include <cuda_runtime.h>

#include <algorithm>

#include "clusters.cuh"
#include "exchange.cuh"
#include "one_read.cuh"

constexpr int PACKS = 4;  // per thread

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// A cluster takes every gridDim / cluster size-th row; its blocks have the packs of a row in their order.
template <typename T>
__global__ void __launch_bounds__(BLOCK, 1024 / BLOCK) layernorm_cluster(const Layer<T> layer) {
    __shared__ float sums[32], deviations[32];
    __shared__ Exchange exchange;
    exchange.begin();
    const int blocks = cluster_blocks(), clusters = gridDim.x / blocks;
    const int begin = cluster_rank() * PACKS * blockDim.x, first = begin + threadIdx.x;
    exchange.complete_begin();
    for (int round = 0, index = blockIdx.x / blocks; index < layer.row_count; ++round, index += clusters) {
        const rows::Row<T, true> row(layer.x, index, layer.columns);
        rows::Pack<T> pack[PACKS];
        load_packs(row, first, blockDim.x, pack);
        const int packs = max(0, min(row.packs() - begin, PACKS * static_cast<int>(blockDim.x)));
        const float count = packs * rows::Pack<T>::SIZE;
        const float part_mean = rows::over_block(sum_of(pack), 0.0f, sums, rows::Sum()) / fmaxf(count, 1.0f);
        float squares = squares_of(row, first, blockDim.x, pack, part_mean);
        squares = rows::over_block(squares, 0.0f, deviations, rows::Sum());

        const float4* of_block = exchange.all(make_float4(count, part_mean, squares, 0.0f), round);
        Moments moments = no_elements();
        for (int b = 0; b < blocks; ++b) moments = Merge()(moments, {of_block[b].x, of_block[b].y, of_block[b].z});
        const T *gamma = layer.gamma, *beta = layer.beta;
        asm volatile("" : "+l"(gamma), "+l"(beta));  // or the compiler would keep both in registers, 32 for each row
        write_packs(row, gamma, beta, layer.out(index), first, blockDim.x, pack, moments.mean,
                    scale_of(moments.squares, layer.columns, layer.epsilon));
    }
}

// Launches clusters of 2, 4 or 8 blocks, at most as many as run at once.
template <typename T>
static cudaError_t launch_clusters(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    int blocks = 2, clusters = 0;
    while (blocks * PACKS * BLOCK < packs) blocks *= 2;
    const int threads = rows::threads_for((packs - 1) / blocks + 1, PACKS);
    ClusterLaunch launch(1, blocks, threads, stream);
    const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, layernorm_cluster<T>, &launch.config);
    if (error != cudaSuccess) return error;
    if (clusters == 0) return cudaErrorLaunchOutOfResources;
    launch.config.gridDim = blocks * std::min(clusters, layer.row_count);
    return cudaLaunchKernelEx(&launch.config, layernorm_cluster<T>, layer);
}

template <typename T>
static cudaError_t layernorm(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    if (!layer.is_aligned() || packs > MOST_BLOCKS * PACKS * BLOCK)
        launch_two_reads(layer, stream);
    else if (packs > PACKS * BLOCK)
        return launch_clusters(layer, stream);
    else if (packs > MOST_OF_A_WARP)
        launch_blocks(layer, stream);
    else
        launch_warps(layer, stream);
    return cudaGetLastError();
}

extern "C" int launch(const void* x, const void* gamma, const void* beta, void* y, int row_count, int columns,
                      int element_bytes, float epsilon, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        return layernorm(layer_of<T>(x, gamma, beta, y, row_count, columns, epsilon), stream);
    });
}
