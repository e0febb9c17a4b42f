// double_buffered: the next tiles are on their way while the products of the present ones run.
//
// Idea         warptile copies, waits at a barrier, multiplies, waits again: its math stands still during the copy.
//              Here shared memory holds two stages. The loads of the next tiles leave at the first k of a step, spend
//              the step in registers, and go into the other stage at its last k: one barrier a step instead of two. The
//              operands of the next k are read from shared memory during the products of this one, over the barrier
//              too, so that no multiply-add waits for an access that was just issued. And a thread owns a 16 x 8 patch:
//              6 reads for 128 multiply-adds instead of 8, since at 700 W each of them costs speed.
// Expected     1.12 to 1.2 times warptile on an H200: 50 to 54 TFLOP/s, where the board's power begins to limit.
// Cost         Twice the shared memory, and over 200 registers: patch, staged tiles, operands of two k. Eight warps an
//              SM, so that latency is hidden by the order of instructions within a warp, hardly by other warps.
// Constraints  Right for any M, N, K >= 1 and any alignment. Wide accesses need rows that start on 16 bytes: K and N
//              multiples of 4 and aligned arrays; the launcher looks, and otherwise picks the instance that copies
//              float by float. M up to 65535 * BM.
// Source       NVIDIA CUTLASS, efficient GEMM (github.com/NVIDIA/cutlass, media/docs/cpp/efficient_gemm.md,
//              pipelining).

#include <cuda_runtime.h>

#include <cstdint>

constexpr int WARPS_N = BN / WN;  // warps beside one another in a block
constexpr int THREADS = BM / WM * WARPS_N * 32;
constexpr int LANES_N = 32 / LANES_M;  // a warp is LANES_M x LANES_N lanes
constexpr int TM = WM / LANES_M, TN = WN / LANES_N;
constexpr int SHORT = TM < TN ? TM : TN;        // the short side of a patch
constexpr int SECTOR = 8;                       // floats in a 32-byte sector
constexpr int A_PITCH = BM + 4;                 // the two halves of a sector then go to different banks
constexpr int A_STAGE = BK * A_PITCH, B_STAGE = BK * BN;
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // float4 of A that a thread copies a step
constexpr int B_QUADS = BK * BN / 4 / THREADS;
constexpr int SHARED_BYTES = 2 * (A_STAGE + B_STAGE) * 4;

static_assert(BM % WM == 0 && BN % WN == 0, "the block is split into whole warp tiles");
static_assert(TM % 4 == 0 && TN % 4 == 0 && TM * LANES_M == WM && TN * LANES_N == WN, "patches are whole float4");
static_assert(LANES_M % 2 == 0 && LANES_N % 2 == 0, "lanes are laid out in squares of two by two");
static_assert(BK % SECTOR == 0, "A is copied by whole sectors");
static_assert(THREADS <= 1024, "a block holds at most 1024 threads");
static_assert(A_QUADS >= 1 && A_QUADS * 4 * THREADS == BM * BK, "the copy of A takes whole steps");
static_assert(B_QUADS >= 1 && B_QUADS * 4 * THREADS == BK * BN, "the copy of B takes whole steps");
static_assert(BM % (THREADS / 2) == 0 || THREADS / 2 % BM == 0, "copies of A are whole steps of rows or of sectors");
static_assert(THREADS % (BN / 4) == 0, "a step of the copy of B is whole rows");

struct Place {
    int row, k;
};

// Where float4 number `quad` of the tile of A lies: two lanes read a sector, sixteen pairs of lanes read sixteen rows.
__device__ constexpr Place place_in_a(int quad) { return {quad / 2 % BM, quad / 2 / BM * SECTOR + quad % 2 * 4}; }

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

template <bool WIDE>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sgemm_double_buffered(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                          int K, float alpha, float beta) {
    extern __shared__ __align__(16) float shared[];  // two stages of A, transposed, then two of B

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;

    // The copy: the pointers walk along K.
    const Place first = place_in_a(tid);
    const int b_k = tid / (BN / 4), b_col = tid % (BN / 4) * 4;
    const float* a = A + (static_cast<size_t>(block_row) + first.row) * K + first.k;
    const float* b = B + static_cast<size_t>(b_k) * N + block_col + b_col;
    const int rows_left = M - block_row - first.row, cols_left = N - block_col - b_col;
    float* const a_to = shared + first.k * A_PITCH + first.row;
    float* const b_to = shared + 2 * A_STAGE + b_k * BN + b_col;

    // The products: lanes lie in squares of two by two, lane bit 0 a row, bit 1 a column, so that LDS.128 takes 2
    // cycles of shared memory, not 4. A patch is made of groups of four, LANES_M * 4 rows and LANES_N * 4 columns
    // apart.
    const int square = lane / 4;
    const int lane_row = square / (LANES_N / 2) * 2 + lane % 2;
    const int lane_col = square % (LANES_N / 2) * 2 + lane / 2 % 2;
    const int c_row = warp / WARPS_N * WM + lane_row * 4;
    const int c_col = warp % WARPS_N * WN + lane_col * 4;
    const float* const a_from = shared + c_row;
    const float* const b_from = shared + 2 * A_STAGE + c_col;

    float4 a_quad[A_QUADS], b_quad[B_QUADS];
    const auto load_tiles = [&](int k_left) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            const int count = step.row < rows_left ? k_left - first.k - step.k : 0;
            a_quad[i] = load_quad<WIDE>(a + static_cast<size_t>(step.row) * K + step.k, count);
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int k = i * (THREADS / (BN / 4));
            b_quad[i] = load_quad<WIDE>(b + static_cast<size_t>(k) * N, b_k + k < k_left ? cols_left : 0);
        }
        a += BK;
        b += static_cast<size_t>(BK) * N;
    };
    const auto store_tiles = [&](int stage) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            float* to = a_to + stage * A_STAGE + step.k * A_PITCH + step.row;
            to[0 * A_PITCH] = a_quad[i].x;
            to[1 * A_PITCH] = a_quad[i].y;
            to[2 * A_PITCH] = a_quad[i].z;
            to[3 * A_PITCH] = a_quad[i].w;
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i)
            *reinterpret_cast<float4*>(b_to + stage * B_STAGE + i * (THREADS / (BN / 4)) * BN) = b_quad[i];
    };

    float a_column[2][TM], b_row[2][TN];
    const auto load_operands = [&](int to, int stage, int k) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *reinterpret_cast<float4*>(&a_column[to][i]) =
                *reinterpret_cast<const float4*>(a_from + stage * A_STAGE + k * A_PITCH + i * LANES_M);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&b_row[to][j]) =
                *reinterpret_cast<const float4*>(b_from + stage * B_STAGE + k * BN + j * LANES_N);
    };

    float sum[TM][TN] = {};
    load_tiles(K);
    store_tiles(0);
    __syncthreads();
    load_operands(0, 0, 0);

    int stage = 0;
    for (int k_left = K; k_left > 0; k_left -= BK) {
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK - 1) {
                // The other stage is free: its last operands were read before the barrier of the step before.
                store_tiles(stage ^ 1);
                __syncthreads();
                stage ^= 1;
            }
            load_operands((k + 1) % 2, stage, (k + 1) % BK);
            if (k == 0) load_tiles(k_left - BK);  // beyond K nothing is read: zeros
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
                const float4 old = load_quad<WIDE>(c, count);
                result.x += beta * old.x;
                result.y += beta * old.y;
                result.z += beta * old.z;
                result.w += beta * old.w;
            }
            store_quad<WIDE>(c, count, result);
        }
    }
}

static bool on_16_bytes(const void* array) { return reinterpret_cast<uintptr_t>(array) % 16 == 0; }

template <bool WIDE>
static cudaError_t start(dim3 grid, const float* A, const float* B, float* C, int M, int N, int K, float alpha,
                         float beta, cudaStream_t stream) {
    const cudaError_t error = cudaFuncSetAttribute(sgemm_double_buffered<WIDE>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    sgemm_double_buffered<WIDE><<<grid, THREADS, SHARED_BYTES, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    const bool wide = K % 4 == 0 && N % 4 == 0 && on_16_bytes(A) && on_16_bytes(B) && on_16_bytes(C);
    return wide ? start<true>(grid, A, B, C, M, N, K, alpha, beta, stream)
                : start<false>(grid, A, B, C, M, N, K, alpha, beta, stream);
}
