// one_exponential: e^x is computed once per element and kept in registers until the sum of the row is known.
//
// Idea         `cluster` keeps the logits and computes e^x twice per element, for the sum and for the result, and each
//              step of its reductions rescales a sum. In bf16 these exponentials and the unpacking of logits are the
//              limit: 178 instructions per 16 bytes, 23 of them on the special function unit. That unit is busy 66 % of
//              the time on average, in bursts, between which it waits for memory. Here a warp first finds its largest
//              logit and then keeps e^(x - largest) in fp32. Once the sum of the row is known, a result takes one
//              multiplication. Reductions find the maximum first and rescale each sum once. Each warp sends its maximum
//              and its sum to all blocks of the cluster itself, without a barrier of its block. 112 instructions per 16
//              bytes remain, 9 of them on the special function unit.
//              Rows of up to 4 KiB run the kernel of `warp_per_row`, and rows of up to 32 KiB that of `registers`: at
//              4096 x 4096 (16 KiB per row, 8 KiB in bf16) this variant runs the code of `registers`.
// Expected     1.12 times `cluster` at 1024 x 65536 bf16, 66 to 68 us on an H200, at least 0.92 of the bandwidth of a
//              copy: it executes fewer instructions per byte than `cluster` in fp32, which reaches 0.96. In fp32 as
//              fast as `cluster`, which DRAM already limits.
// Cost         In bf16 a thread keeps 32 registers of exponentials instead of 16 of logits: 1280 threads per SM instead
//              of 1536, and 80 KiB of loads in flight instead of 96. At 1024 x 65536 bf16 each block receives 64
//              messages, one per warp of the cluster, instead of 4, one per block.
// Constraints  As `cluster`.
// Source       Dao-AILab, quack (softmax: exponentials stay in registers until the sum is known); NVIDIA, PTX ISA,
//              st.async.

#include <cuda_runtime.h>

#include "clusters.cuh"
#include "one_read.cuh"
#include "warp_exchange.cuh"

constexpr int PACKS = 4;             // per thread
constexpr int OF_A_BLOCK = 4 * 512;  // packs of the longest row that one block handles
constexpr int LARGE_BLOCK = 512;     // for rows that MOST_BLOCKS blocks of BLOCK threads cannot hold

static_assert(BLOCK % 32 == 0 && BLOCK <= LARGE_BLOCK, "a block has whole warps and at most 512 threads");

// Threads that an SM has registers for: a thread keeps 16 (fp32) or 32 (bf16) exponentials.
template <typename T>
constexpr int RESIDENT = sizeof(T) == 4 ? 1536 : 1280;

// One cluster per row, in which each warp has PACKS * 32 consecutive packs.
template <typename T, int THREADS>
__global__ void __launch_bounds__(THREADS, RESIDENT<T> / THREADS)
    softmax_one_exponential(const T* __restrict__ x, T* __restrict__ y, int columns) {
    constexpr int SIZE = rows::Pack<T>::SIZE;
    __shared__ WarpExchange<THREADS / 32> exchange;
    exchange.begin();
    const int index = exchange.cluster(), lane = threadIdx.x % 32, first = exchange.warp() * PACKS * 32 + lane;
    const rows::Row<T, true> row(x, index, columns);
    rows::Pack<T> pack[PACKS];
    load_packs(row, first, 32, pack);

    float max = LOWEST;
#pragma unroll
    for (int j = 0; j < PACKS; ++j) max = fmaxf(max, pack[j].max());
    max = rows::over_lanes<32>(max, rows::Max());
    float value[PACKS][SIZE], sum = 0.0f;
#pragma unroll
    for (int j = 0; j < PACKS; ++j)
#pragma unroll
        for (int i = 0; i < SIZE; ++i) sum += value[j][i] = exponential(pack[j][i] - max);
    sum = rows::over_lanes<32>(sum, rows::Sum());

    exchange.complete_begin();
    exchange.send(make_float4(max, sum, 0.0f, 0.0f));
    const float4* of_warp = exchange.all();
    float row_max = LOWEST, row_sum = 0.0f;
#pragma unroll 1
    for (int w = lane; w < exchange.warps(); w += 32) row_max = fmaxf(row_max, of_warp[w].x);
    row_max = rows::over_lanes<32>(row_max, rows::Max());
#pragma unroll 1
    for (int w = lane; w < exchange.warps(); w += 32) row_sum += of_warp[w].y * exponential(of_warp[w].x - row_max);
    row_sum = rows::over_lanes<32>(row_sum, rows::Sum());

    const float scale = exponential(max - row_max) * __fdividef(1.0f, row_sum);
    T* out = y + static_cast<size_t>(index) * columns;
#pragma unroll
    for (int j = 0; j < PACKS; ++j) {
#pragma unroll
        for (int i = 0; i < SIZE; ++i) value[j][i] *= scale;
        row.store(out, first + j * 32, value[j]);
    }
}

// Launches a cluster of 2, 4 or 8 blocks of at most THREADS threads per row.
template <int THREADS, typename T>
static cudaError_t launch_clusters(const T* x, T* y, int row_count, int columns, int packs, cudaStream_t stream) {
    int blocks = 2;
    while (blocks * PACKS * THREADS < packs) blocks *= 2;
    const int threads = rows::threads_for((packs - 1) / blocks + 1, PACKS);
    ClusterLaunch launch(row_count, blocks, threads, stream);
    return cudaLaunchKernelEx(&launch.config, softmax_one_exponential<T, THREADS>, x, y, columns);
}

template <typename T>
static cudaError_t softmax(const T* x, T* y, int row_count, int columns, cudaStream_t stream) {
    const int packs = columns / rows::Pack<T>::SIZE;
    if (!rows::are_aligned<T>(columns, x, y) || packs > MOST_BLOCKS * PACKS * LARGE_BLOCK)
        launch_two_reads(x, y, row_count, columns, stream);
    else if (packs > MOST_BLOCKS * PACKS * BLOCK)
        return launch_clusters<LARGE_BLOCK>(x, y, row_count, columns, packs, stream);
    else if (packs > OF_A_BLOCK)
        return launch_clusters<BLOCK>(x, y, row_count, columns, packs, stream);
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
