// autotuned, tuned_for_a6000, tuned_for_a100: vectorized with tile sizes for one GPU.
//
// Idea         The best block tile, depth of a step and thread tile depend on registers, shared memory and the number
//              of SMs, and so differ between GPUs. Here the sizes are left open: `snakemake tune` measures all sensible
//              combinations (family.yaml, `tune`) and keeps the best one for the current GPU. Each side of a thread
//              tile may be 2, 4, 8 or 16; accesses to shared and global memory are as wide as that allows.
//              tuned_for_a6000 and tuned_for_a100 have the best settings of those GPUs.
// Expected     autotuned, on the GPU that it was tuned for: 1.08 times vectorized on an RTX A6000 (18237 to 19721
//              GFLOP/s at 128/128/16/8/8, Boehm).
//              tuned_for_a6000: slower than autotuned at 4096, since it was tuned for another GPU.
//              tuned_for_a100: slower than autotuned at 4096, since it was tuned for another GPU; on an A100,
//              64/64/16/4/4 is faster than 128/128/16/8/8: 12.6 against 12.0 TFLOP/s (Boehm).
// Cost         A search of some minutes per GPU. The best setting may be the best only at the sizes of the search. The
//              transposing stores of A still have bank conflicts, as in vectorized; the reads of B have them only where
//              TN is 8 or more, as in tuned_for_a6000.
// Constraints  Any M, N, K >= 1, any alignment. Wide accesses require rows aligned to 16 bytes: K and N multiples of 4,
//              aligned arrays. The launcher checks this and otherwise uses the instantiation that copies float by
//              float. M up to 65535 * BM.
// Source       S. Boehm, How to optimize a CUDA matmul kernel, kernel 9 (siboehm.com/articles/22/CUDA-MMM).

#include <cuda_runtime.h>

#include "alignment.cuh"

constexpr int THREADS = (BM / TM) * (BN / TN);
constexpr int A_QUADS = BM * BK / 4 / THREADS;  // float4 of A that a thread copies per step
constexpr int B_QUADS = BK * BN / 4 / THREADS;

static_assert(BM % TM == 0 && BN % TN == 0, "the block is split into whole patches");
static_assert(BM % 4 == 0 && BN % 4 == 0 && BK % 4 == 0, "tiles are copied in groups of four floats");
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(A_QUADS >= 1 && A_QUADS * 4 * THREADS == BM * BK, "the copy of A takes whole steps");
static_assert(B_QUADS >= 1 && B_QUADS * 4 * THREADS == BK * BN, "the copy of B takes whole steps");
static_assert(4 * BK * (BM + BN) <= 48 * 1024, "static shared memory is limited to 48 KiB");

// The width, in floats, of the widest accesses that COUNT neighbouring floats of a thread tile can be divided into.
template <int COUNT>
constexpr int WIDTH_OF = COUNT % 4 == 0 ? 4 : COUNT % 2 == 0 ? 2 : 1;

template <int WIDTH>
struct alignas(4 * WIDTH) Group {
    float lane[WIDTH];
};

// The first `left` of WIDTH neighbouring floats, the rest zero; WIDE: `left` is at least WIDTH, or nothing is read.
template <bool WIDE, int WIDTH>
__device__ __forceinline__ Group<WIDTH> load_group(const float* __restrict__ from, int left) {
    Group<WIDTH> group = {};
    if constexpr (WIDE) {
        if (left > 0) group = *reinterpret_cast<const Group<WIDTH>*>(from);
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            if (left > i) group.lane[i] = from[i];
    }
    return group;
}

template <bool WIDE, int WIDTH>
__device__ __forceinline__ void store_group(float* to, int left, Group<WIDTH> group) {
    if constexpr (WIDE) {
        if (left > 0) *reinterpret_cast<Group<WIDTH>*>(to) = group;
    } else {
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            if (left > i) to[i] = group.lane[i];
    }
}

// COUNT neighbouring floats of shared memory, starting at a multiple of COUNT.
template <int COUNT>
__device__ __forceinline__ void read_patch(float (&into)[COUNT], const float* from) {
    constexpr int WIDTH = WIDTH_OF<COUNT>;
#pragma unroll
    for (int i = 0; i < COUNT; i += WIDTH) {
        const Group<WIDTH> group = *reinterpret_cast<const Group<WIDTH>*>(from + i);
#pragma unroll
        for (int lane = 0; lane < WIDTH; ++lane) into[i + lane] = group.lane[lane];
    }
}

template <bool WIDE>
__global__ void __launch_bounds__(THREADS)
    sgemm_autotuned(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                    int K, float alpha, float beta) {
    __shared__ __align__(16) float a_tile[BK][BM];  // transposed: the rows of one k are contiguous
    __shared__ __align__(16) float b_tile[BK][BN];

    const int tid = threadIdx.x;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int c_row = tid / (BN / TN) * TM, c_col = tid % (BN / TN) * TN;
    float sum[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK) {
        // All loads are issued before the first store waits for one.
        Group<4> a_quad[A_QUADS], b_quad[B_QUADS];
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const int quad = tid + i * THREADS, row = block_row + quad / (BK / 4), k = k0 + quad % (BK / 4) * 4;
            a_quad[i] = load_group<WIDE, 4>(A + static_cast<size_t>(row) * K + k, row < M ? K - k : 0);
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int quad = tid + i * THREADS, k = k0 + quad / (BN / 4), col = block_col + quad % (BN / 4) * 4;
            b_quad[i] = load_group<WIDE, 4>(B + static_cast<size_t>(k) * N + col, k < K ? N - col : 0);
        }
#pragma unroll
        for (int i = 0; i < A_QUADS; ++i) {
            const int quad = tid + i * THREADS, row = quad / (BK / 4), k = quad % (BK / 4) * 4;
#pragma unroll
            for (int lane = 0; lane < 4; ++lane) a_tile[k + lane][row] = a_quad[i].lane[lane];
        }
#pragma unroll
        for (int i = 0; i < B_QUADS; ++i) {
            const int quad = tid + i * THREADS;
            *reinterpret_cast<Group<4>*>(&b_tile[quad / (BN / 4)][quad % (BN / 4) * 4]) = b_quad[i];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a_column[TM], b_row[TN];
            read_patch(a_column, &a_tile[k][c_row]);
            read_patch(b_row, &b_tile[k][c_col]);
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a_column[i] * b_row[j];
        }
        __syncthreads();
    }

    constexpr int WIDTH = WIDTH_OF<TN>;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; j += WIDTH) {
            const int row = block_row + c_row + i, col = block_col + c_col + j;
            const int left = row < M ? N - col : 0;
            float* c = C + static_cast<size_t>(row) * N + col;
            Group<WIDTH> old = {};
            if (beta != 0.0f) old = load_group<WIDE, WIDTH>(c, left);  // with beta == 0, C may hold NaN: not read
            Group<WIDTH> result;
#pragma unroll
            for (int lane = 0; lane < WIDTH; ++lane)
                result.lane[lane] = alpha * sum[i][j + lane] + beta * old.lane[lane];
            store_group<WIDE, WIDTH>(c, left, result);
        }
    }
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    const bool wide = K % 4 == 0 && N % 4 == 0 && on_16_bytes(A) && on_16_bytes(B) && on_16_bytes(C);
    if (wide)
        sgemm_autotuned<true><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    else
        sgemm_autotuned<false><<<grid, THREADS, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
