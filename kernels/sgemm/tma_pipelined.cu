// tma_pipelined: the copy engine brings the tiles, and no thread computes an address.
//
// Idea         In cp_async_pipelined every thread still works out where its part of a tile lies and whether it is
//              inside. Here one thread asks the tensor memory accelerator (TMA, sm_90) for both tiles of a step; it
//              knows the matrices from two descriptors, fills what lies outside with zeros, and reports the bytes to an
//              mbarrier, STAGES steps ahead. It cannot transpose floats, so all threads do that for A half a step
//              early, from rows that it has swizzled: 16 bytes of eight rows lie in different banks. The barrier at the
//              end of a step, which that needs anyway, also says that a stage is free; so no warp is set apart as the
//              producer.
// Expected     1.01 to 1.03 times cp_async_pipelined: 94 % of the issued instructions multiply and add.
// Cost         Shared memory: STAGES times A and B, and A twice more, transposed. Two descriptors encoded a launch.
// Constraints  sm_90. Right for any M, N, K >= 1 and any alignment. TMA needs rows that start on 16 bytes: K and N
//              multiples of 4 and aligned arrays; the launcher looks, and otherwise picks the instance that copies
//              float by float and waits. M up to 65535 * BM. BM, BN <= 256.
// Source       CUDA C++ Programming Guide, tensor memory access; PTX ISA, cp.async.bulk.tensor and its swizzles; NVIDIA
//              CUTLASS, its sm90 main loops.

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int WARPS_N = BN / WN;  // warps beside one another in a block
constexpr int THREADS = BM / WM * WARPS_N * 32;
constexpr int LANES_N = 32 / LANES_M;  // a warp is LANES_M x LANES_N lanes
constexpr int TM = WM / LANES_M, TN = WN / LANES_N;
constexpr int SHORT = TM < TN ? TM : TN;        // the short side of a patch
constexpr int SWIZZLE = BK * 4;  // bytes of a row of the tile of A, whose 16-byte chunks TMA swizzles
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // float4 of A that a thread transposes a step
constexpr int A_STAGE = BM * BK, B_STAGE = BK * BN;
constexpr int ALIGNMENT = 1024;  // of a tile that TMA swizzles
constexpr int SHARED_BYTES = ALIGNMENT + (STAGES * (A_STAGE + B_STAGE) + 2 * A_STAGE) * 4 + STAGES * 8;

static_assert(BM % WM == 0 && BN % WN == 0, "the block is split into whole warp tiles");
static_assert(TM % 4 == 0 && TN % 4 == 0 && TM * LANES_M == WM && TN * LANES_N == WN, "patches are whole float4");
static_assert(LANES_M % 2 == 0 && LANES_N % 2 == 0, "lanes are laid out in squares of two by two");
static_assert(BK == 8 || BK == 16 || BK == 32, "TMA swizzles 32, 64 or 128 bytes");
static_assert(BM % 32 == 0 && BM <= 256 && BN % 32 == 0 && BN <= 256, "TMA copies at most 256 along a side");
static_assert(STAGES >= 3, "what is copied in one step without TMA is read after the barrier of the next");
static_assert(THREADS <= 1024, "a block holds at most 1024 threads");
static_assert(SHARED_BYTES <= 227 * 1024, "the stages must fit an SM");
static_assert(A_QUADS >= 1 && A_QUADS * 4 * THREADS == BM * BK, "the transposition takes whole steps");
static_assert(BM % THREADS == 0 || THREADS % BM == 0, "the transposition takes whole steps of rows or of chunks");

struct Place {
    int row, k;
};

// Where float4 number `quad` of the tile of A lies: lanes read one chunk of neighbouring rows.
__device__ constexpr Place place_in_a(int quad) { return {quad % BM, quad / BM * 4}; }

// Where element (row, k) of the tile of A lies in shared memory: the chunk's number is changed by bits of the row's.
__device__ __forceinline__ int swizzled(int row, int k) {
    const int chunk = k / 4 ^ row * SWIZZLE / 128 % (SWIZZLE / 16);
    return row * BK + chunk * 4 + k % 4;
}

__device__ __forceinline__ uint32_t shared_address(const void* at) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

__device__ __forceinline__ void init_barrier(uint64_t* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void expect_bytes(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

// Asks for the tile whose first element is number `x` of row `y`; its bytes count for `barrier`.
__device__ __forceinline__ void copy_tile(float* to, const CUtensorMap& map, int x, int y, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
        "l"(&map), "r"(x), "r"(y), "r"(shared_address(barrier))
        : "memory");
}

// Waits for the end of the phase with this parity.
__device__ __forceinline__ void wait_for_bytes(uint64_t* barrier, int parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile(
            "{\n.reg .pred done;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "selp.b32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
}

// The first `count` of four neighbouring floats, the rest zero; WIDE: count is at least 4, or nothing is read.
template <bool WIDE>
__device__ __forceinline__ float4 load_quad(const float* __restrict__ from, int count) {
    float4 quad = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (WIDE) {
        if (count > 0) quad = *reinterpret_cast<const float4*>(from);
    } else {
        if (count > 0) quad.x = from[0];
        if (count > 1) quad.y = from[1];
        if (count > 2) quad.z = from[2];
        if (count > 3) quad.w = from[3];
    }
    return quad;
}

template <bool WIDE>
__device__ __forceinline__ void store_quad(float* to, int count, float4 quad) {
    if constexpr (WIDE) {
        if (count > 0) *reinterpret_cast<float4*>(to) = quad;
    } else {
        if (count > 0) to[0] = quad.x;
        if (count > 1) to[1] = quad.y;
        if (count > 2) to[2] = quad.z;
        if (count > 3) to[3] = quad.w;
    }
}

template <bool BULK>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sgemm_tma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
              const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
              float alpha, float beta) {
    // The stages of A, those of B, two tiles of A transposed, and a barrier for each stage.
    extern __shared__ float shared_begin[];
    float* const a_stages = shared_begin + (ALIGNMENT - shared_address(shared_begin) % ALIGNMENT) % ALIGNMENT / 4;
    float* const b_stages = a_stages + STAGES * A_STAGE;
    float* const transposed = b_stages + STAGES * B_STAGE;
    uint64_t* const landed = reinterpret_cast<uint64_t*>(transposed + 2 * A_STAGE);

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;

    const int steps = (K - 1) / BK + 1;
    const auto start_copies = [&](int stage, int step) {
        float *const a_to = a_stages + stage * A_STAGE, *const b_to = b_stages + stage * B_STAGE;
        if constexpr (BULK) {
            if (tid == 0) {
                expect_bytes(&landed[stage], (A_STAGE + B_STAGE) * 4);  // zeros outside count as well
                copy_tile(a_to, a_map, step * BK, block_row, &landed[stage]);
                copy_tile(b_to, b_map, block_col, step * BK, &landed[stage]);
            }
        } else {
#pragma unroll 1
            for (int i = tid; i < A_STAGE; i += THREADS) {
                const int row = block_row + i / BK, k = step * BK + i % BK;
                a_to[swizzled(i / BK, i % BK)] = row < M && k < K ? A[static_cast<size_t>(row) * K + k] : 0.0f;
            }
#pragma unroll 1
            for (int i = tid; i < B_STAGE; i += THREADS) {
                const int k = step * BK + i / BN, col = block_col + i % BN;
                b_to[i] = k < K && col < N ? B[static_cast<size_t>(k) * N + col] : 0.0f;
            }
        }
    };

    const Place first = place_in_a(tid);
    float4 a_quad[A_QUADS];
    const auto take_quads = [&](int stage) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            a_quad[i] = *reinterpret_cast<const float4*>(a_stages + stage * A_STAGE + step.row * BK +
                                                         swizzled(first.row, first.k + step.k));
        }
    };
    const auto transpose_into = [&](int half) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            float* to = transposed + half * A_STAGE + (first.k + step.k) * BM + first.row + step.row;
            to[0 * BM] = a_quad[i].x;
            to[1 * BM] = a_quad[i].y;
            to[2 * BM] = a_quad[i].z;
            to[3 * BM] = a_quad[i].w;
        }
    };

    // The products: lanes lie in squares of two by two, lane bit 0 a row, bit 1 a column, so that LDS.128 takes 2
    // cycles of shared memory, not 4. A patch is made of groups of four, LANES_M * 4 rows and LANES_N * 4 columns
    // apart.
    const int square = lane / 4;
    const int lane_row = square / (LANES_N / 2) * 2 + lane % 2;
    const int lane_col = square % (LANES_N / 2) * 2 + lane / 2 % 2;
    const int c_row = warp / WARPS_N * WM + lane_row * 4;
    const int c_col = warp % WARPS_N * WN + lane_col * 4;
    const float* const a_from = transposed + c_row;
    const float* const b_from = b_stages + c_col;

    float a_column[2][TM], b_row[2][TN];
    const auto load_operands = [&](int to, int half, int stage, int k) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *reinterpret_cast<float4*>(&a_column[to][i]) =
                *reinterpret_cast<const float4*>(a_from + half * A_STAGE + k * BM + i * LANES_M);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&b_row[to][j]) =
                *reinterpret_cast<const float4*>(b_from + stage * B_STAGE + k * BN + j * LANES_N);
    };

    if constexpr (BULK) {
        if (tid == 0) {
#pragma unroll
            for (int stage = 0; stage < STAGES; ++stage) init_barrier(&landed[stage]);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine must see them too
        }
        __syncthreads();
    }
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage)
        if (stage < steps) start_copies(stage, stage);
    if constexpr (BULK)
        wait_for_bytes(&landed[0], 0);
    else
        __syncthreads();
    take_quads(0);
    transpose_into(0);
    __syncthreads();
    load_operands(0, 0, 0, 0);

    float sum[TM][TN] = {};
    int half = 0, reading = 0, filling = STAGES - 1, parity = 0;
    for (int step = 0; step < steps; ++step) {
        const int next = reading + 1 == STAGES ? 0 : reading + 1;
        if (next == 0) parity ^= 1;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            // What this stage held was read before the last barrier.
            if (k == 0 && step > 0 && step + STAGES - 1 < steps) start_copies(filling, step + STAGES - 1);
            if (k == BK / 2) {
                if (BULK && step + 1 < steps) wait_for_bytes(&landed[next], parity);
                take_quads(next);  // after the last step these are old, and nobody uses them
            }
            if (k == BK - 1) {
                transpose_into(half ^ 1);
                __syncthreads();
                half ^= 1;
                filling = reading;
                reading = next;
            }
            load_operands((k + 1) % 2, half, reading, (k + 1) % BK);
            // There and back along the short side, so that each multiply-add finds an operand of the one before in the
            // reuse cache, and the other two lie in different banks of the register file.
#pragma unroll
            for (int p = 0; p < TM * TN; ++p) {
                const int line = p / SHORT, there = p % SHORT, step = line % 2 ? SHORT - 1 - there : there;
                const int i = TN == SHORT ? line : step, j = TN == SHORT ? step : line;
                sum[i][j] += a_column[k % 2][i] * b_row[k % 2][j];
            }
        }
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int row = block_row + c_row + i / 4 * LANES_M * 4 + i % 4;
            const int col = block_col + c_col + j * LANES_N;
            const int count = row < M ? N - col : 0;
            float* c = C + static_cast<size_t>(row) * N + col;
            float4 result = make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2],
                                        alpha * sum[i][j + 3]);
            if (beta != 0.0f) {  // with beta == 0, C may hold NaN: not read
                const float4 old = load_quad<BULK>(c, count);
                result.x += beta * old.x;
                result.y += beta * old.y;
                result.z += beta * old.z;
                result.w += beta * old.w;
            }
            store_quad<BULK>(c, count, result);
        }
    }
}

static bool on_16_bytes(const void* array) { return reinterpret_cast<uintptr_t>(array) % 16 == 0; }

// cuTensorMapEncodeTiled, asked of the driver, so that the library needs no -lcuda; null where there is none.
using Encode = decltype(&cuTensorMapEncodeTiled);
static Encode find_encode() {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
    if (error != cudaSuccess) cudaGetLastError();
    return error == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(found) : nullptr;
}

// Describes a row-major matrix and the tile that a copy takes of it.
static bool describe(CUtensorMap* map, const float* matrix, int rows, int cols, int tile_rows, int tile_cols,
                     CUtensorMapSwizzle swizzle) {
    static const Encode encode = find_encode();
    const cuuint64_t size[] = {static_cast<cuuint64_t>(cols), static_cast<cuuint64_t>(rows)};
    const cuuint64_t pitch[] = {static_cast<cuuint64_t>(cols) * 4};
    const cuuint32_t tile[] = {static_cast<cuuint32_t>(tile_cols), static_cast<cuuint32_t>(tile_rows)};
    const cuuint32_t every[] = {1, 1};
    return encode && encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(matrix), size, pitch, tile,
                            every, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <bool BULK>
static cudaError_t start(const CUtensorMap& a_map, const CUtensorMap& b_map, const float* A, const float* B, float* C,
                         int M, int N, int K, float alpha, float beta, cudaStream_t stream) {
    const cudaError_t error =
        cudaFuncSetAttribute(sgemm_tma<BULK>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    sgemm_tma<BULK><<<grid, THREADS, SHARED_BYTES, stream>>>(a_map, b_map, A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    constexpr CUtensorMapSwizzle SWIZZLES = BK == 8    ? CU_TENSOR_MAP_SWIZZLE_32B
                                            : BK == 16 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                       : CU_TENSOR_MAP_SWIZZLE_128B;
    CUtensorMap a_map = {}, b_map = {};
    const bool aligned = K % 4 == 0 && N % 4 == 0 && on_16_bytes(A) && on_16_bytes(B) && on_16_bytes(C);
    const bool bulk = aligned && describe(&a_map, A, M, K, BM, BK, SWIZZLES) &&
                      describe(&b_map, B, K, N, BK, BN, CU_TENSOR_MAP_SWIZZLE_NONE);
    return bulk ? start<true>(a_map, b_map, A, B, C, M, N, K, alpha, beta, stream)
                : start<false>(a_map, b_map, A, B, C, M, N, K, alpha, beta, stream);
}
