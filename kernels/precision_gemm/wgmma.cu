// wgmma, wgmma_raw_tf32: TMA and wgmma in six types, with the same tiles, ring and order.
//
// Idea         A step takes 128 bytes of each row, whatever the type: 32 tf32, 64 fp16 or bf16, 128 int8 or fp8. So
//              tiles, barriers, swizzle and descriptors are the same, each wgmma takes 32 bytes of a row, and only the
//              instruction differs. A type half as wide has twice as many terms in the same bytes, for which tensor
//              cores need the same time: each halving of the width doubles the speed and halves the traffic. One block
//              per SM has a producer and two consumers, 128 x 256 results, and takes tiles until none is left.
//              wgmma_raw_tf32 (ROUNDED = 0): tensor cores ignore the low 13 bits of an fp32 operand, which truncates
//              it. In a map of type TFLOAT32, TMA converts on the way to shared memory.
// Expected     On an H100 at 4096: tf32 380, fp16 and bf16 660, int8 and fp8 1150 TFLOP/s; the clock falls with power,
//              so that halving the width brings less than a factor of two. Sums in fp16 are as fast as in fp32.
//              wgmma_raw_tf32: as fast, with twice the error.
// Cost         192 KiB of shared memory. Results are stored while the tensor cores are idle, which takes the larger
//              share of the time the faster the products are: C has 4 bytes per element, 2 with sums in fp16.
// Constraints  K a multiple of 16 (TMA requires rows aligned to 16 bytes) and N of 8, arrays aligned to 16 bytes; any M.
// Source       PTX ISA, wgmma.mma_async, cp.async.bulk.tensor, mbarrier; CUDA driver API, cuTensorMapEncodeTiled;
//              NVIDIA CUTLASS, which has TMA convert to tf32.

// Why it cannot deadlock: see mbarrier.cuh. Producer and consumers walk through the same tiles and steps in the same
// order, and a turn is never reset. A consumer keeps at most one stage in addition to the one it waits for.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tiles.cuh"
#include "tma_types.cuh"
#include "types.cuh"
#include "wgmma_types.cuh"

constexpr int CONSUMERS = 2, ROWS = wgmma::M, BM = CONSUMERS * ROWS, BN = 256;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int ROW_BYTES = tma::BOX_BYTES_PER_ROW, PRODUCT_BYTES = 32;
constexpr int A_BYTES = BM * ROW_BYTES, STAGE_BYTES = A_BYTES + BN * ROW_BYTES;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + tma::ATOM_BYTES;  // with room for alignment

static_assert(STAGES >= 2, "a consumer keeps one stage in addition to the one it waits for");

struct Barriers {
    uint64_t full[STAGES], empty[STAGES];
};

// Stores two neighbouring results of a row. L2 evicts these lines first.
__device__ __forceinline__ void store_pair(float* to, float first, float second) {
    __stcs(reinterpret_cast<float2*>(to), make_float2(first, second));
}
__device__ __forceinline__ void store_pair(int* to, int first, int second) {
    __stcs(reinterpret_cast<int2*>(to), make_int2(first, second));
}

// Stores a warpgroup's results, 64 rows starting at (row, column), of the registers that hold them (wgmma.cuh).
template <typename Sum>
__device__ __forceinline__ void store(const Sum (&sum)[BN / 2], void* C, int row, int column, int M, int N) {
    const int thread = threadIdx.x % 128;
    const int first_row = row + thread / 32 * 16 + thread % 32 / 4, first_column = column + thread % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (first_row + 8 * h >= M) continue;
        Sum* c = static_cast<Sum*>(C) + static_cast<size_t>(first_row + 8 * h) * N + first_column;
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
            if (first_column + 8 * j < N) store_pair(c + 8 * j, sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]);
    }
}

// As above; a register holds a pair of fp16.
__device__ __forceinline__ void store(const uint32_t (&sum)[BN / 4], void* C, int row, int column, int M, int N) {
    const int thread = threadIdx.x % 128;
    const int first_row = row + thread / 32 * 16 + thread % 32 / 4, first_column = column + thread % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (first_row + 8 * h >= M) continue;
        __half* c = static_cast<__half*>(C) + static_cast<size_t>(first_row + 8 * h) * N + first_column;
#pragma unroll
        for (int j = 0; j < BN / 8; ++j)
            if (first_column + 8 * j < N) __stcs(reinterpret_cast<uint32_t*>(c + 8 * j), sum[2 * j + h]);
    }
}

// `Registers` hold the sums of a thread; BK terms are a step.
template <typename Product, typename Sum, int Registers, int BK>
__global__ void __launch_bounds__(THREADS, 1)
    precision_gemm_wgmma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, void* C,
                         int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ Barriers barriers;
    uint8_t* const stages = tma::align(shared);  // each has a tile of A, then one of B
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier::init(&barriers.full[s], 1);
            mbarrier::init(&barriers.empty[s], CONSUMERS * 4);  // one arrival per warp
        }
        mbarrier::publish_inits();
    }
    __syncthreads();

    mbarrier::Turn<STAGES> turn;
    const int tile_rows = (M - 1) / BM + 1, tile_columns = (N - 1) / BN + 1;
    if (threadIdx.x < 128) {
        if (threadIdx.x > 0) return;
        for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                uint64_t* full = &barriers.full[turn.stage];
                mbarrier::wait(&barriers.empty[turn.stage], turn.parity ^ 1);
                mbarrier::expect(full, STAGE_BYTES);
                tma::load(stage, a_map, tile.row * BM, k0, full);
                tma::load(stage + A_BYTES, b_map, tile.column * BN, k0, full);
            }
        }
        return;
    }

    const int consumer = threadIdx.x / 128 - 1;
    const bool speaks = threadIdx.x % 32 == 0;  // for its warp
    // The low words of the descriptors in the first stage, known to be the same in all lanes.
    const uint32_t a0 = __shfl_sync(~0u, wgmma::describe_low(stages + consumer * ROWS * ROW_BYTES), 0);
    const uint32_t b0 = __shfl_sync(~0u, wgmma::describe_low(stages + A_BYTES), 0);
    for (int index = blockIdx.x; index < tile_rows * tile_columns; index += gridDim.x) {
        const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
        Sum sum[Registers];
        int held = 0;  // the stage whose products may still run
        for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
            const uint32_t stage = turn.stage * (STAGE_BYTES / 16);
            mbarrier::wait(&barriers.full[turn.stage], turn.parity);
            wgmma::fence();
#pragma unroll
            for (int k = 0; k < ROW_BYTES / PRODUCT_BYTES; ++k)  // the first product of a tile does not add
                wgmma::multiply(Product{}, sum, wgmma::describe(a0 + stage + k * wgmma::NEXT_K),
                                wgmma::describe(b0 + stage + k * wgmma::NEXT_K), k0 > 0 || k > 0);
            wgmma::commit();
            wgmma::wait<1>();  // the products of the previous step are done
            if (speaks && k0 > 0) mbarrier::arrive(&barriers.empty[held]);
            held = turn.stage;
        }
        wgmma::wait<0>();
        if (speaks) mbarrier::arrive(&barriers.empty[held]);
        wgmma::pin(sum);
        store(sum, C, tile.row * BM + consumer * ROWS, tile.column * BN, M, N);
    }
}

template <typename Product, typename Sum, int Registers, int ElementBytes>
static cudaError_t start(CUtensorMapDataType type, const void* A, const void* B, void* C, int M, int N, int K,
                         cudaStream_t stream) {
    const auto kernel = precision_gemm_wgmma<Product, Sum, Registers, ROW_BYTES / ElementBytes>;
    thread_local tma::TypedMap a_map, b_map;
    int blocks = 0;
    cudaError_t error = multiprocessors(&blocks);
    if (error == cudaSuccess) error = a_map.describe(type, ElementBytes, A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(type, ElementBytes, B, N, K, BN);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    kernel<<<blocks, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N, K);
    return cudaGetLastError();
}

extern "C" int launch(const void* A, const void* B, const float*, const float*, void* C, int M, int N, int K, int type,
                      cudaStream_t stream) {
    constexpr CUtensorMapDataType TF32_MAP =
        ROUNDED ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    constexpr CUtensorMapDataType FP16_MAP = CU_TENSOR_MAP_DATA_TYPE_FLOAT16, BYTE_MAP = CU_TENSOR_MAP_DATA_TYPE_UINT8;
    switch (type) {
        case TF32: return start<wgmma::Tf32, float, 128, 4>(TF32_MAP, A, B, C, M, N, K, stream);
        case FP16: return start<wgmma::Fp16, float, 128, 2>(FP16_MAP, A, B, C, M, N, K, stream);
        case FP16_ACC16: return start<wgmma::Fp16InFp16, uint32_t, 64, 2>(FP16_MAP, A, B, C, M, N, K, stream);
        case BF16:
            return start<wgmma::Bf16, float, 128, 2>(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, A, B, C, M, N, K, stream);
        case INT8: return start<wgmma::Int8, int, 128, 1>(BYTE_MAP, A, B, C, M, N, K, stream);
        case FP8: return start<wgmma::E4m3, float, 128, 1>(BYTE_MAP, A, B, C, M, N, K, stream);
        default: return cudaErrorNotSupported;
    }
}
