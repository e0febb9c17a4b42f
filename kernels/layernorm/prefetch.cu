// prefetch: the next row is loaded while a row is reduced, exchanged and written.
//
// Idea         A block of `cluster` loads its part of a row, waits for it, passes two barriers and an exchange, and
//              writes. With two blocks per SM there are times without loads in flight: warps wait for memory in 38 % of
//              their cycles, while DRAM is busy to 57 %. Here a bulk copy brings the next row into shared memory as
//              soon as this one is in registers, so that an SM has 64 KiB in flight at all times.
//              No warp waits for its block. Each warp requests its own 2 KiB, reduces them by shuffles to a mean and
//              the squared differences from it, and sends both to all blocks of the cluster, where each warp combines
//              them: one wait per row instead of two barriers and a wait. An element is unpacked once and stays in
//              fp32: 138 instructions per 16 bytes of bf16 instead of 179.
//              A block alone handles a row of up to 32 KiB in the same way. Rows of up to 4 KiB run the kernel of
//              `warp_per_row`.
// Expected     1.3 times `cluster` at 1024 x 65536 bf16 and 1.15 times at 1024 x 32768 fp32: 0.92 of the bandwidth of a
//              copy for both. At 4096 x 4096 bf16 1.05 times, since gamma and beta stay in L1 and no barrier is left.
//              The same time where `cluster` is already limited by DRAM.
// Cost         36 KiB of shared memory per block of 512 threads; the first row of a block is not overlapped, and the
//              last wave of rows may be partial: 17 waves instead of 16.5 for 1024 rows on 62 clusters.
// Constraints  As `cluster`.
// Source       NVIDIA, CUDA C++ Programming Guide, asynchronous bulk copies; PTX ISA, st.async; T. Chan, G. Golub and
//              R. LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.

#include <cuda_runtime.h>

#include <algorithm>

#include "bulk.cuh"
#include "one_read.cuh"
#include "warp_exchange.cuh"

constexpr int PACKS = 4;               // per thread
constexpr int OF_A_WARP = PACKS * 32;  // packs

static_assert(BLOCK % 32 == 0 && BLOCK <= 512, "a block has whole warps and at most 32 KiB of their packs");
static_assert(LONGEST_OTHER >= MOST_OF_A_WARP && LONGEST_OTHER <= MOST_OF_A_BLOCK, "other kernels handle these rows");

// OF_A_WARP packs of the next row per warp, which requests them and waits for them.
extern __shared__ uint4 next_part[];

// A cluster takes every cluster_count()-th row; its warps have the packs of a row in their order.
template <typename T>
__global__ void __launch_bounds__(BLOCK, 1024 / BLOCK) layernorm_prefetch(const Layer<T> layer) {
    constexpr int SIZE = rows::Pack<T>::SIZE;
    __shared__ uint64_t arrivals[BLOCK / 32];
    __shared__ WarpExchange<BLOCK / 32> exchange;
    exchange.begin();
    const int lane = threadIdx.x % 32, begin = exchange.warp() * OF_A_WARP;
    const int packs = max(0, min(layer.columns / SIZE - begin, OF_A_WARP));  // of this warp
    const float count = packs * SIZE, per_element = 1.0f / fmaxf(count, 1.0f), per_column = 1.0f / layer.columns;
    uint4* const pack = next_part + threadIdx.x / 32 * OF_A_WARP;
    uint64_t* const arrived = &arrivals[threadIdx.x / 32];
    const auto request = [&](int row) {
        const T* from = layer.x + static_cast<size_t>(row) * layer.columns + begin * SIZE;
        mbarrier::expect(arrived, packs * 16);
        if (packs > 0) bulk::load(pack, from, packs * 16, arrived);
    };

    int index = cluster_index();
    for (int p = lane; p < OF_A_WARP; p += 32)
        if (p >= packs) pack[p] = make_uint4(0, 0, 0, 0);  // beyond the row: no copy writes here
    if (lane == 0) {
        mbarrier::init(arrived, 1);
        mbarrier::publish_inits();
        request(index);
    }
    __syncwarp();
    exchange.complete_begin();
    for (int round = 0; index < layer.row_count; ++round, index += cluster_count()) {
        float value[PACKS][SIZE], sum = 0.0f, squares = 0.0f;
        mbarrier::wait(arrived, round % 2);
        __syncwarp();
#pragma unroll
        for (int j = 0; j < PACKS; ++j) {
            const uint4 wide = pack[lane + j * 32];
            const rows::Pack<T> part = {{wide.x, wide.y, wide.z, wide.w}};
#pragma unroll
            for (int i = 0; i < SIZE; ++i) sum += value[j][i] = part[i];
        }
        const float part_mean = rows::over_lanes<32>(sum, rows::Sum()) * per_element;
        // The sum required the packs of all lanes: all of them have been read, and a copy may overwrite them.
        if (lane == 0 && index + cluster_count() < layer.row_count) request(index + cluster_count());
#pragma unroll
        for (int j = 0; j < PACKS; ++j)
            if (lane + j * 32 < packs)
#pragma unroll
                for (int i = 0; i < SIZE; ++i) squares += square(value[j][i] - part_mean);
        squares = rows::over_lanes<32>(squares, rows::Sum());

        const float4* of_warp = exchange.all(make_float4(count, part_mean, squares, 0.0f), round);
        sum = squares = 0.0f;
#pragma unroll 1
        for (int w = lane; w < exchange.warps(); w += 32) sum += of_warp[w].x * of_warp[w].y;
        const float mean = rows::over_lanes<32>(sum, rows::Sum()) * per_column;
#pragma unroll 1
        for (int w = lane; w < exchange.warps(); w += 32)
            squares += of_warp[w].z + of_warp[w].x * square(of_warp[w].y - mean);
        squares = rows::over_lanes<32>(squares, rows::Sum());
        const float scale = rsqrtf(squares * per_column + layer.epsilon), shift = -mean * scale;

        int column = begin + lane;
        asm volatile("" : "+r"(column));  // or the compiler would keep gamma and beta in registers
        const uint4 *gamma = reinterpret_cast<const uint4*>(layer.gamma) + column,
                    *beta = reinterpret_cast<const uint4*>(layer.beta) + column;
        uint4* out = reinterpret_cast<uint4*>(layer.out(index)) + column;
#pragma unroll
        for (int j = 0; j < PACKS; ++j) {
            if (lane + j * 32 >= packs) continue;
            const uint4 g = __ldg(gamma + j * 32), b = __ldg(beta + j * 32);
            const rows::Pack<T> factor = {{g.x, g.y, g.z, g.w}}, summand = {{b.x, b.y, b.z, b.w}};
#pragma unroll
            for (int i = 0; i < SIZE; ++i) value[j][i] = (value[j][i] * scale + shift) * factor[i] + summand[i];
            const rows::Pack<T> result = rows::packed<T>(value[j]);
            out[j * 32] = make_uint4(result.word[0], result.word[1], result.word[2], result.word[3]);
        }
    }
}

// Launches clusters of 1, 2, 4 or 8 blocks, at most as many as run at once.
template <typename T>
static cudaError_t launch_clusters(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    int blocks = 1, clusters = 0;
    while (blocks * PACKS * BLOCK < packs) blocks *= 2;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = rows::threads_for((packs - 1) / blocks + 1, PACKS);
    config.dynamicSmemBytes = config.blockDim.x / 32 * OF_A_WARP * sizeof(uint4);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, layernorm_prefetch<T>, &config);
    if (error != cudaSuccess) return error;
    if (clusters == 0) return cudaErrorLaunchOutOfResources;
    config.gridDim = blocks * std::min(clusters, layer.row_count);
    return cudaLaunchKernelEx(&config, layernorm_prefetch<T>, layer);
}

template <typename T>
static cudaError_t layernorm(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    if (!layer.is_aligned() || packs > MOST_BLOCKS * PACKS * BLOCK)
        launch_two_reads(layer, stream);
    else if (packs > LONGEST_OTHER)
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
