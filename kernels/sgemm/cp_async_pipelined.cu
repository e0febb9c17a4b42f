// cp_async_pipelined: copies into shared memory run several steps ahead, without registers.
//
// Idea         double_buffered keeps the next tiles in registers for a whole step. cp.async (sm_80) copies from global
//              to shared memory without registers, and the copies of STAGES - 1 steps are in flight at once. A copy of
//              16 bytes cannot transpose, so A is first copied into a queue per thread; in the middle of a step each
//              thread takes its part of the next tile from its queue and transposes it as before. B is used where it
//              was copied to.
// Expected     0.98 to 1.03 times double_buffered, which with BK = 16 already hides the memory latency and computes the
//              same products. It gains where a load takes longer than a step.
// Cost         Shared memory: STAGES tiles of A and B, and two more of A, transposed.
// Constraints  sm_80. Any M, N, K >= 1, any alignment. Wide accesses require rows aligned to 16 bytes: K and N
//              multiples of 4, aligned arrays. The launcher checks this and otherwise uses the instantiation that
//              copies float by float. M up to 65535 * BM.
// Source       CUDA C++ Programming Guide, asynchronous copies; NVIDIA CUTLASS, multistage SIMT kernels.

#include "double_buffer.cuh"
#include "timeline.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;
using Copy = sgemm::TileCopy<Warp, BK>;
using sgemm::Place;

constexpr int THREADS = Warp::THREADS;
constexpr int QUEUE_STAGE = BM * BK;
constexpr int SHARED_BYTES = (2 * Copy::A_STAGE + STAGES * (Copy::B_STAGE + QUEUE_STAGE)) * 4;

static_assert(STAGES >= 2, "one stage is filled while another is read");
static_assert(SHARED_BYTES <= 227 * 1024, "the stages must fit into an SM");

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

// Waits until all but the newest LEFT groups of this thread's copies are complete.
template <int LEFT>
__device__ __forceinline__ void wait_for_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

template <bool WIDE>
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sgemm_cp_async(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                   float alpha, float beta) {
    // Two tiles of A, transposed; the stages of B; the stages of the queue that holds A as the threads copied it.
    extern __shared__ __align__(16) float shared[];
    TIMELINE_TRACK(track);

    const int tid = threadIdx.x;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;

    // The copy: the pointers move along K.
    const Place first = Copy::place_in_a(tid);
    const int b_k = tid / (BN / 4), b_column = tid % (BN / 4) * 4;
    const float* a = A + (static_cast<size_t>(block_row) + first.row) * K + first.k;
    const float* b = B + static_cast<size_t>(b_k) * N + block_column + b_column;
    const int rows_left = M - block_row - first.row, columns_left = N - block_column - b_column;
    float* const a_to = shared + first.k * Copy::A_PITCH + first.row;
    float* const b_stages = shared + 2 * Copy::A_STAGE;
    const uint32_t b_to = static_cast<uint32_t>(__cvta_generic_to_shared(b_stages + b_k * BN + b_column));
    float4* const queue = reinterpret_cast<float4*>(b_stages + STAGES * Copy::B_STAGE) + tid;
    const uint32_t queue_to = static_cast<uint32_t>(__cvta_generic_to_shared(queue));

    const auto start_copies = [&](int stage, int k_left) {
#pragma unroll
        for (int i = 0; i < Copy::A_QUADS; ++i) {
            const Place step = Copy::place_in_a(i * THREADS);
            const int count = step.row < rows_left ? k_left - first.k - step.k : 0;
            copy_quad_async<WIDE>(queue_to + (stage * QUEUE_STAGE + i * THREADS * 4) * 4,
                                  a + static_cast<size_t>(step.row) * K + step.k, count);
        }
#pragma unroll
        for (int i = 0; i < Copy::B_QUADS; ++i) {
            const int k = i * Copy::B_ROWS;
            copy_quad_async<WIDE>(b_to + (stage * Copy::B_STAGE + k * BN) * 4, b + static_cast<size_t>(k) * N,
                                  b_k + k < k_left ? columns_left : 0);
        }
        close_group();
        a += BK;
        b += static_cast<size_t>(BK) * N;
    };
    float4 a_quad[Copy::A_QUADS];
    const auto take_from_queue = [&](int stage) {
#pragma unroll
        for (int i = 0; i < Copy::A_QUADS; ++i) a_quad[i] = queue[stage * (QUEUE_STAGE / 4) + i * THREADS];
    };
    const auto transpose_into = [&](int half) {
#pragma unroll
        for (int i = 0; i < Copy::A_QUADS; ++i)
            Copy::transpose(a_to + half * Copy::A_STAGE, Copy::place_in_a(i * THREADS), a_quad[i]);
    };

    const Warp warp(tid);
    float a_column[2][Warp::ROWS], b_row[2][Warp::COLUMNS];
    const auto load_operands = [&](int to, int half, int stage, int k) {
        Warp::load_rows(a_column[to], shared + half * Copy::A_STAGE + k * Copy::A_PITCH + warp.row);
        Warp::load_columns(b_row[to], b_stages + stage * Copy::B_STAGE + k * BN + warp.column);
    };

    int k_left = K;  // of the step that is copied next
    TIMELINE(track, LOAD);
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage, k_left -= BK) start_copies(stage, k_left);
    TIMELINE(track, WAIT);
    wait_for_groups<STAGES - 2>();
    take_from_queue(0);
    transpose_into(0);
    __syncthreads();
    TIMELINE(track, COMPUTE);
    load_operands(0, 0, 0, 0);

    float sum[Warp::ROWS][Warp::COLUMNS] = {};
    int half = 0, reading = 0, filling = STAGES - 1;
    for (int k_done = 0; k_done < K; k_done += BK, k_left -= BK) {
        const int next = reading + 1 == STAGES ? 0 : reading + 1;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == 0) start_copies(filling, k_left);  // its content was read before the last barrier
            if (k == BK / 2) {
                TIMELINE(track, WAIT);
                wait_for_groups<STAGES - 2>();
                TIMELINE(track, COMPUTE);
                take_from_queue(next);
            }
            if (k == BK - 1) {
                transpose_into(half ^ 1);
                TIMELINE(track, SYNC);
                __syncthreads();
                TIMELINE(track, COMPUTE);
                half ^= 1;
                filling = reading;
                reading = next;
            }
            load_operands((k + 1) % 2, half, reading, (k + 1) % BK);
            sgemm::multiply_line_by_line(sum, a_column[k % 2], b_row[k % 2]);
        }
    }
    TIMELINE(track, STORE);
    wait_for_groups<0>();
    warp.finish<WIDE>(C, M, N, block_row, block_column, sum, alpha, beta);
}

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
    return sgemm::rows_on_16_bytes(A, B, C, N, K) ? start<true>(grid, A, B, C, M, N, K, alpha, beta, stream)
                                                  : start<false>(grid, A, B, C, M, N, K, alpha, beta, stream);
}
