// one_exchange: a cluster handles two rows, with one exchange of moments and one load of gamma and beta, and ends.
//
// Idea         `cluster` launches as many clusters as can run at once, and each repeats for row after row: load, two
//              barriers, exchange, write. With two blocks per SM there are times without loads in flight: 1024 x 65536
//              bf16 takes 1.43 times as long as a copy. Here a cluster ends after one exchange, and while it waits,
//              loads of other clusters are in flight: 128 KiB per SM instead of 64. For both rows, each warp finds the
//              mean of its part and the sum of squared differences from it, and sends them to all blocks. Each warp
//              combines what all of them sent: one wait, and no barrier of the block.
//              A cluster that starts invalidates L1, so that gamma and beta come from L2. With one row per cluster they
//              would be twice the bytes of x. Two rows share the loading and unpacking of gamma and beta: 122
//              instructions per 16 bytes of bf16 instead of 179.
//              Rows of up to 16 KiB are handled in the same way without a cluster: one block per two rows, which finds
//              gamma and beta in L1. So no cluster is launched at 4096 x 4096 (16 KiB per row, 8 KiB in bf16). Rows of
//              up to 4 KiB run the kernel of `warp_per_row`.
// Expected     1.35 times `cluster` at 1024 x 65536 bf16 and 1.15 times at 1024 x 32768 fp32: at least 0.92 of the
//              bandwidth of a copy in both cases. 1.08 times at 4096 x 4096 bf16: about 0.92 of a copy. As fast as
//              `cluster` where DRAM already limits that.
// Cost         64 registers per thread: 1024 threads per SM. If there are only a few long rows, half as many SMs have
//              work.
// Constraints  As `cluster`. Rows of more than 128 KiB are handled one per cluster.
// Source       Dao-AILab, quack (norms over clusters, which end with their row); NVIDIA, PTX ISA, st.async; T. Chan,
//              G. Golub and R. LeVeque, Updating formulae and a pairwise algorithm for computing sample variances,
//              1979.

#include <cuda_runtime.h>

#include "clusters.cuh"
#include "one_read.cuh"
#include "warp_exchange.cuh"

constexpr int PACKS = 4;               // per thread and row
constexpr int OF_A_WARP = PACKS * 32;  // packs of each row
constexpr int LARGE_BLOCK = 512;       // for rows that MOST_BLOCKS blocks of BLOCK threads cannot hold

static_assert(BLOCK % 32 == 0 && BLOCK <= LARGE_BLOCK, "a block has whole warps and at most 512 threads");
static_assert(ROWS_AT_ONCE == 1 || ROWS_AT_ONCE == 2, "a message holds the moments of two rows");

// Threads that an SM has registers for: a thread keeps 16 registers of packs for each of its rows.
template <int ROWS>
constexpr int RESIDENT = ROWS == 1 ? 1280 : 1024;

// 1 / value, from an instruction of the special function unit and a step of Newton's method.
__device__ __forceinline__ float reciprocal(float value) {
    const float estimate = __fdividef(1.0f, value);
    return estimate + estimate * (1.0f - value * estimate);
}

// The pack at `from`, or zeros.
template <typename T>
__device__ __forceinline__ rows::Pack<T> load_pack(const uint4* from, bool is_held) {
    uint4 wide = {};
    if (is_held) wide = __ldg(from);
    return {{wide.x, wide.y, wide.z, wide.w}};
}

// The mean of the elements of a warp's packs, and the sum of their squared differences from it; `per_pack` is 1 / the
// number of these packs. Differences are first taken from the mean of their pack, so that an element is unpacked once.
template <typename T>
__device__ __forceinline__ float2 moments_of(const rows::Pack<T> (&pack)[PACKS], int first, int packs, float per_pack) {
    constexpr int SIZE = rows::Pack<T>::SIZE;
    float mean_of[PACKS], sum = 0.0f, squares = 0.0f;
#pragma unroll
    for (int j = 0; j < PACKS; ++j) {
        float value[SIZE], of_pack = 0.0f;
#pragma unroll
        for (int i = 0; i < SIZE; ++i) of_pack += value[i] = pack[j][i];
        mean_of[j] = of_pack * (1.0f / SIZE);
        sum += mean_of[j];
#pragma unroll
        for (int i = 0; i < SIZE; ++i) squares += square(value[i] - mean_of[j]);
    }
    const float mean = rows::over_lanes<32>(sum, rows::Sum()) * per_pack;
#pragma unroll
    for (int j = 0; j < PACKS; ++j)
        if (first + j * 32 < packs) squares += SIZE * square(mean_of[j] - mean);
    return make_float2(mean, rows::over_lanes<32>(squares, rows::Sum()));
}

// One cluster, or one block, per ROWS rows; each warp has PACKS * 32 consecutive packs of each. Where the last cluster
// has fewer rows, it handles the last row twice.
template <typename T, int THREADS, int BLOCKS, int ROWS>
__global__ void __launch_bounds__(THREADS, RESIDENT<ROWS> / THREADS) layernorm_one_exchange(const Layer<T> layer) {
    constexpr int SIZE = rows::Pack<T>::SIZE, WARPS = BLOCKS * THREADS / 32, LANES = WARPS < 32 ? WARPS : 32;
    __shared__ WarpExchange<THREADS / 32, BLOCKS> exchange;
    exchange.begin();
    const int packs = layer.columns / SIZE, first = exchange.warp() * OF_A_WARP + threadIdx.x % 32;
    const auto is_held = [&](int j) { return first + j * 32 < packs; };
    const auto begin = [&](int r) {
        const int index = min(exchange.cluster() * ROWS + r, layer.row_count - 1);
        return static_cast<size_t>(index) * packs + first;
    };
    rows::Pack<T> pack[ROWS][PACKS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const uint4* from = reinterpret_cast<const uint4*>(layer.x) + begin(r);
#pragma unroll
        for (int j = 0; j < PACKS; ++j) pack[r][j] = load_pack<T>(from + j * 32, is_held(j));
    }
    // Here, although only send requires it, since the compiler moves no load of x behind it.
    exchange.complete_begin();

    const auto packs_of = [&](int warp) { return max(0, min(packs - warp * OF_A_WARP, OF_A_WARP)); };
    const float per_pack = reciprocal(max(1, packs_of(exchange.warp())));
    float2 part[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) part[r] = moments_of(pack[r], first, packs, per_pack);
    exchange.send(make_float4(part[0].x, part[0].y, part[ROWS - 1].x, part[ROWS - 1].y));

    rows::Pack<T> factor, summand;
    const auto load_factors = [&](int j) {
        const int column = first + j * 32;
        factor = load_pack<T>(reinterpret_cast<const uint4*>(layer.gamma) + column, is_held(j));
        summand = load_pack<T>(reinterpret_cast<const uint4*>(layer.beta) + column, is_held(j));
    };
    load_factors(0);
    const float2* of_warp = reinterpret_cast<const float2*>(exchange.all());
    const float per_column = reciprocal(layer.columns);
    float scale[ROWS], shift[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        float2 of[(WARPS - 1) / LANES + 1];
        float sum = 0.0f, squares = 0.0f;
#pragma unroll
        for (int w = threadIdx.x % LANES, i = 0; i < (WARPS - 1) / LANES + 1; ++i, w += LANES) {
            of[i] = packs_of(w) > 0 ? of_warp[w * 2 + r] : make_float2(0.0f, 0.0f);
            sum += of[i].x * (packs_of(w) * SIZE);
        }
        const float mean = rows::over_lanes<LANES>(sum, rows::Sum()) * per_column;
#pragma unroll
        for (int w = threadIdx.x % LANES, i = 0; i < (WARPS - 1) / LANES + 1; ++i, w += LANES)
            squares += of[i].y + square(of[i].x - mean) * (packs_of(w) * SIZE);
        squares = rows::over_lanes<LANES>(squares, rows::Sum());
        scale[r] = rsqrtf(squares * per_column + layer.epsilon);
        shift[r] = -mean * scale[r];
    }

    uint4* out[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) out[r] = reinterpret_cast<uint4*>(layer.y) + begin(r);
#pragma unroll
    for (int j = 0; j < PACKS; ++j) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            float value[SIZE];
#pragma unroll
            for (int i = 0; i < SIZE; ++i)
                value[i] = (pack[r][j].again(i) * scale[r] + shift[r]) * factor[i] + summand[i];
            const rows::Pack<T> result = rows::packed<T>(value);
            if (is_held(j)) out[r][j * 32] = make_uint4(result.word[0], result.word[1], result.word[2], result.word[3]);
        }
        if (j + 1 < PACKS) load_factors(j + 1);
        __syncwarp();  // keeps the compiler from unpacking more of gamma and beta than registers can hold
    }
}

// Launches clusters of 2, 4 or 8 blocks of at most THREADS threads.
template <int THREADS, int ROWS, typename T>
static cudaError_t launch_clusters(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    int blocks = 2;
    while (blocks * PACKS * THREADS < packs) blocks *= 2;
    const int threads = rows::threads_for((packs - 1) / blocks + 1, PACKS);
    ClusterLaunch launch((layer.row_count - 1) / ROWS + 1, blocks, threads, stream);
    return cudaLaunchKernelEx(&launch.config, layernorm_one_exchange<T, THREADS, MOST_BLOCKS, ROWS>, layer);
}

template <typename T>
static cudaError_t layernorm(const Layer<T>& layer, cudaStream_t stream) {
    const int packs = layer.packs();
    if (!layer.is_aligned() || packs > MOST_BLOCKS * PACKS * LARGE_BLOCK)
        launch_two_reads(layer, stream);
    else if (packs > MOST_BLOCKS * PACKS * BLOCK)
        return launch_clusters<LARGE_BLOCK, 1>(layer, stream);
    else if (packs > PACKS * BLOCK)
        return launch_clusters<BLOCK, ROWS_AT_ONCE>(layer, stream);
    else if (packs > MOST_OF_A_WARP)
        layernorm_one_exchange<T, BLOCK, 1, ROWS_AT_ONCE>
            <<<(layer.row_count - 1) / ROWS_AT_ONCE + 1, rows::threads_for(packs, PACKS), 0, stream>>>(layer);
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
