// cp_async_pipelined: copies into shared memory run several steps ahead, behind the back of the registers.
//
// Idea         double_buffered carries the next tiles through registers for a whole step. cp.async (sm_80) copies from
//              global to shared memory without them, and the copies of STAGES - 1 steps are under way at once. Sixteen
//              bytes at a time it cannot transpose. So A lands in a queue of the thread that copied it, and in the
//              middle of a step that thread takes its part of the next tile and transposes it as before. B is read
//              where it lands.
// Expected     0.98 to 1.03 times double_buffered: with 16 k a step that one hides memory's latency as well, and this
//              one does the same math; it gains where a load takes longer than a step.
// Cost         Shared memory: STAGES times A and B, and A twice more, transposed.
// Constraints  sm_80. Right for any M, N, K >= 1 and any alignment. Wide accesses need rows that start on 16 bytes: K
//              and N multiples of 4 and aligned arrays; the launcher looks, and otherwise picks the instance that
//              copies float by float. M up to 65535 * BM.
// Source       CUDA C++ Programming Guide, asynchronous copies; NVIDIA CUTLASS, its multistage SIMT kernels.

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
constexpr int QUEUE_STAGE = BM * BK;
constexpr int SHARED_BYTES = (2 * A_STAGE + STAGES * (B_STAGE + QUEUE_STAGE)) * 4;

static_assert(BM % WM == 0 && BN % WN == 0, "the block is split into whole warp tiles");
static_assert(TM % 4 == 0 && TN % 4 == 0 && TM * LANES_M == WM && TN * LANES_N == WN, "patches are whole float4");
static_assert(LANES_M % 2 == 0 && LANES_N % 2 == 0, "lanes are laid out in squares of two by two");
static_assert(BK % SECTOR == 0, "A is copied by whole sectors");
static_assert(STAGES >= 2, "one stage is filled while another is read");
static_assert(SHARED_BYTES <= 227 * 1024, "the stages must fit an SM");
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

// Copies the first `count` of four neighbouring floats to shared memory, and zeros for the rest; WIDE: count is at
// least 4, or nothing is read.
template <bool WIDE>
__device__ __forceinline__ void copy_quad_async(uint32_t to, const float* from, int count) {
    if constexpr (WIDE) {
        const int bytes = count > 0 ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int bytes = i < count ? 4 : 0;
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + i * 4), "l"(from + i), "r"(bytes)
                         : "memory");
        }
    }
}

__device__ __forceinline__ void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the last LEFT groups of this thread's copies have landed.
template <int LEFT>
__device__ __forceinline__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
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

template <bool WIDE>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sgemm_cp_async(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                   float alpha, float beta) {
    // Two tiles of A, transposed; the stages of B; the stages of the queue that holds A as the threads copied it.
    extern __shared__ __align__(16) float shared[];

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;

    // The copy: the pointers walk along K.
    const Place first = place_in_a(tid);
    const int b_k = tid / (BN / 4), b_col = tid % (BN / 4) * 4;
    const float* a = A + (static_cast<size_t>(block_row) + first.row) * K + first.k;
    const float* b = B + static_cast<size_t>(b_k) * N + block_col + b_col;
    const int rows_left = M - block_row - first.row, cols_left = N - block_col - b_col;
    float* const a_to = shared + first.k * A_PITCH + first.row;
    const uint32_t b_to = static_cast<uint32_t>(__cvta_generic_to_shared(shared + 2 * A_STAGE + b_k * BN + b_col));
    float4* const queue = reinterpret_cast<float4*>(shared + 2 * A_STAGE + STAGES * B_STAGE) + tid;
    const uint32_t queue_to = static_cast<uint32_t>(__cvta_generic_to_shared(queue));

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

    const auto start_copies = [&](int stage, int k_left) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            const int count = step.row < rows_left ? k_left - first.k - step.k : 0;
            copy_quad_async<WIDE>(queue_to + (stage * QUEUE_STAGE + i * THREADS * 4) * 4,
                                  a + static_cast<size_t>(step.row) * K + step.k, count);
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int k = i * (THREADS / (BN / 4));
            copy_quad_async<WIDE>(b_to + (stage * B_STAGE + k * BN) * 4, b + static_cast<size_t>(k) * N,
                                  b_k + k < k_left ? cols_left : 0);
        }
        close_group();
        a += BK;
        b += static_cast<size_t>(BK) * N;
    };
    float4 a_quad[A_QUADS];
    const auto take_from_queue = [&](int stage) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) a_quad[i] = queue[stage * (QUEUE_STAGE / 4) + i * THREADS];
    };
    const auto transpose_into = [&](int half) {
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const Place step = place_in_a(i * THREADS);
            float* to = a_to + half * A_STAGE + step.k * A_PITCH + step.row;
            to[0 * A_PITCH] = a_quad[i].x;
            to[1 * A_PITCH] = a_quad[i].y;
            to[2 * A_PITCH] = a_quad[i].z;
            to[3 * A_PITCH] = a_quad[i].w;
        }
    };

    float a_column[2][TM], b_row[2][TN];
    const auto load_operands = [&](int to, int half, int stage, int k) {
#pragma unroll
        for (int i = 0; i < TM; i += 4)
            *reinterpret_cast<float4*>(&a_column[to][i]) =
                *reinterpret_cast<const float4*>(a_from + half * A_STAGE + k * A_PITCH + i * LANES_M);
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&b_row[to][j]) =
                *reinterpret_cast<const float4*>(b_from + stage * B_STAGE + k * BN + j * LANES_N);
    };

    int k_left = K;  // of the step that is copied next
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage, k_left -= BK) start_copies(stage, k_left);
    wait_for_groups<STAGES - 2>();
    take_from_queue(0);
    transpose_into(0);
    __syncthreads();
    load_operands(0, 0, 0, 0);

    float sum[TM][TN] = {};
    int half = 0, reading = 0, filling = STAGES - 1;
    for (int k_done = 0; k_done < K; k_done += BK, k_left -= BK) {
        const int next = reading + 1 == STAGES ? 0 : reading + 1;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == 0) start_copies(filling, k_left);  // what this stage held was read before the last barrier
            if (k == BK / 2) {
                wait_for_groups<STAGES - 2>();
                take_from_queue(next);
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
    wait_for_groups<0>();

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
    const cudaError_t error = cudaFuncSetAttribute(sgemm_cp_async<WIDE>,
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    sgemm_cp_async<WIDE><<<grid, THREADS, SHARED_BYTES, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    const bool wide = K % 4 == 0 && N % 4 == 0 && on_16_bytes(A) && on_16_bytes(B) && on_16_bytes(C);
    return wide ? start<true>(grid, A, B, C, M, N, K, alpha, beta, stream)
                : start<false>(grid, A, B, C, M, N, K, alpha, beta, stream);
}
