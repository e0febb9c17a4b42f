// warptile: between the tile of the block and the patch of the thread comes the tile of the warp.
//
// Idea         C is cut into BM x BN for a block, that into WM x WN for a warp, and that into passes, in each of which
//              the 32 lanes cover one compact rectangle, a patch of TM x TN a lane. By the rules for shared memory,
//              vectorized pays 20 cycles for the operands of 64 multiply-adds, since its lanes read 32 bytes apart and
//              meet in the banks. Here neighbouring lanes read neighbouring float4, or the same ones: 8 cycles.
// Expected     1.19 times vectorized on an RTX A6000 (18237 to 21779 GFLOP/s, 93.7 % of cuBLAS, Boehm), 1.06 times on
//              an RTX 4090.
// Cost         Seven sizes that must fit each other. Blocks of 64 x 128 move more bytes through L2 than 128 x 128, but
//              four of them share an SM, so that one computes while another waits at its barrier.
// Constraints  Right for any M, N, K >= 1 and any alignment. Wide accesses need rows that start on 16 bytes: K and N
//              multiples of 4 and aligned arrays; the launcher looks, and otherwise picks the instance that copies
//              float by float. M up to 65535 * BM.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 10 (siboehm.com/articles/22/CUDA-MMM); the levels
//              are those of CUTLASS (developer.nvidia.com/blog/cutlass-linear-algebra-cuda). Reads that lanes share:
//              forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228.

#include <cuda_runtime.h>

#include <cstdint>

constexpr int WARPS_N = BN / WN;  // warps beside one another in a block
constexpr int THREADS = BM / WM * WARPS_N * 32;
constexpr int WM_PASSES = WM * WN / (32 * TM * TN * WN_PASSES);
constexpr int PASS_M = WM / WM_PASSES;  // rows and columns that the lanes of a warp cover in one pass
constexpr int PASS_N = WN / WN_PASSES;
constexpr int LANES_N = PASS_N / TN;            // lanes beside one another in a warp
constexpr int SECTOR = 8;                       // floats in a 32-byte sector
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // float4 of A that a thread copies a step
constexpr int B_QUADS = BK * BN / 4 / THREADS;

static_assert(BM % WM == 0 && BN % WN == 0, "the block is split into whole warp tiles");
static_assert(WM_PASSES >= 1 && WM_PASSES * WN_PASSES * 32 * TM * TN == WM * WN, "the warp tile is whole passes");
static_assert(WM % WM_PASSES == 0 && WN % WN_PASSES == 0, "the warp tile is split into whole passes");
static_assert(PASS_M % TM == 0 && PASS_N % TN == 0 && (PASS_M / TM) * LANES_N == 32, "one patch a lane in each pass");
static_assert(PASS_M / TM % 2 == 0 && LANES_N % 2 == 0, "lanes are laid out in squares of two by two");
static_assert(TM % 4 == 0 && TN % 4 == 0 && BK % SECTOR == 0, "tiles are moved in groups of four floats");
static_assert(THREADS <= 1024, "a block holds at most 1024 threads");
static_assert(A_QUADS * 4 * THREADS == BM * BK, "the copy of A takes whole steps");
static_assert(B_QUADS * 4 * THREADS == BK * BN, "the copy of B takes whole steps");
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
    sgemm_warptile(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                   float alpha, float beta) {
    __shared__ __align__(16) float a_tile[BK][BM];  // transposed: the rows of one k lie side by side
    __shared__ __align__(16) float b_tile[BK][BN];

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;

    // The copy: the pointers walk along K, and the thread's further float4 lie at offsets known at compile time.
    const Place first = place_in_a(tid);
    const int b_k = tid / (BN / 4), b_col = tid % (BN / 4) * 4;
    const float* a = A + (static_cast<size_t>(block_row) + first.row) * K + first.k;
    const float* b = B + static_cast<size_t>(b_k) * N + block_col + b_col;
    const int rows_left = M - block_row - first.row, cols_left = N - block_col - b_col;

    // The products: lanes lie in squares of two by two, lane bit 0 a row, bit 1 a column. Then lanes two apart want the
    // same part of A and lanes one apart the same part of B, and LDS.128 takes 2 cycles of shared memory, not 4.
    const int square = lane / 4;
    const int lane_row = square / (LANES_N / 2) * 2 + lane % 2;
    const int lane_col = square % (LANES_N / 2) * 2 + lane / 2 % 2;
    const int c_row = warp / WARPS_N * WM + lane_row * TM;  // the thread's first patch, seen from the block
    const int c_col = warp % WARPS_N * WN + lane_col * TN;

    float sum[WM_PASSES * TM][WN_PASSES * TN] = {};

    for (int k_left = K; k_left > 0; k_left -= BK) {
        // All loads leave before the first store waits for one.
        float4 a_quad[A_QUADS], b_quad[B_QUADS];
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
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            float* to = &a_tile[first.k + step.k][first.row + step.row];
            to[0 * BM] = a_quad[i].x;
            to[1 * BM] = a_quad[i].y;
            to[2 * BM] = a_quad[i].z;
            to[3 * BM] = a_quad[i].w;
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i)
            *reinterpret_cast<float4*>(&b_tile[b_k + i * (THREADS / (BN / 4))][b_col]) = b_quad[i];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_column[WM_PASSES * TM], b_row[WN_PASSES * TN];
#pragma unroll
            for (int i = 0; i < WM_PASSES * TM; i += 4)
                *reinterpret_cast<float4*>(&a_column[i]) =
                    *reinterpret_cast<const float4*>(&a_tile[k][c_row + i / TM * PASS_M + i % TM]);
#pragma unroll
            for (int j = 0; j < WN_PASSES * TN; j += 4)
                *reinterpret_cast<float4*>(&b_row[j]) =
                    *reinterpret_cast<const float4*>(&b_tile[k][c_col + j / TN * PASS_N + j % TN]);
#pragma unroll
            for (int i = 0; i < WM_PASSES * TM; ++i)
#pragma unroll
                for (int j = 0; j < WN_PASSES * TN; ++j) sum[i][j] += a_column[i] * b_row[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < WM_PASSES * TM; ++i) {
#pragma unroll
        for (int j = 0; j < WN_PASSES * TN; j += 4) {
            const int row = block_row + c_row + i / TM * PASS_M + i % TM;
            const int col = block_col + c_col + j / TN * PASS_N + j % TN;
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

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    const bool wide = K % 4 == 0 && N % 4 == 0 && on_16_bytes(A) && on_16_bytes(B) && on_16_bytes(C);
    if (wide)
        sgemm_warptile<true><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    else
        sgemm_warptile<false><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
