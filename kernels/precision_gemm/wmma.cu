// wmma: the warp matrix functions of CUDA C++ in five types, on the same tiles.
//
// Idea         With nvcuda::wmma, another type is another template argument: fragments of 16 x 16 results, whose layout
//              the compiler knows. A step takes 64 bytes of each row, whatever the type: 16 tf32, 32 fp16 or bf16, 64
//              int8. cp.async copies STAGES - 1 steps ahead. Operands of tf32 must be rounded by the program, one
//              conversion per element of a fragment.
// Expected     On an H100 at 4096: bf16 and fp16 at most 370 TFLOP/s, as mma_sync of bf16_gemm; mma alone cannot keep
//              Hopper's tensor cores busy. tf32 at most half of it, and int8 less than twice, since the loads of fragments
//              are not faster for narrow types.
// Cost         WM * WN / 32 accumulators per thread, half as many registers with sums in fp16. Results pass through
//              shared memory, since the mapping of elements to lanes is unspecified.
// Constraints  K a multiple of 16, A and B aligned to 16 bytes (copies are 16 bytes wide); any M and N. Not fp8, which
//              wmma does not have. M up to 65535 * BM.
// Source       CUDA C++ Programming Guide, warp matrix functions; Deep dive 02, CUDA programming, which names the types.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cstdint>

#include "mma.cuh"
#include "types.cuh"

namespace wmma = nvcuda::wmma;

constexpr int TILE = 16;                          // rows and columns of a fragment of results
constexpr int ROW_BYTES = 64, CHUNK_BYTES = 16;   // of a step
constexpr int CHUNKS = ROW_BYTES / CHUNK_BYTES;
constexpr int PITCH_BYTES = ROW_BYTES + CHUNK_BYTES;  // so that eight rows lie in different banks
constexpr int WARPS_N = BN / WN, WARPS = BM / WM * WARPS_N, THREADS = WARPS * 32;
constexpr int LINES = THREADS / CHUNKS;  // rows that all threads copy at a time
constexpr int STAGE_BYTES = (BM + BN) * PITCH_BYTES;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES;

static_assert(BM % WM == 0 && BN % WN == 0 && WM % TILE == 0 && WN % TILE == 0, "tiles are divided into whole tiles");
static_assert(BM % LINES == 0 && BN % LINES == 0, "the copies take whole steps");
static_assert(WARPS * TILE * TILE * 4 <= SHARED_BYTES, "results pass through the memory of the stages");

// A type of operands: how it lies in memory, its fragments, and the type of sums. DEPTH terms are one product.
template <typename ElementType, typename FragmentType, typename SumType, int Depth>
struct Operands {
    using Element = ElementType;
    using Sum = SumType;
    static constexpr int DEPTH = Depth, BK = ROW_BYTES / sizeof(Element), PITCH = PITCH_BYTES / sizeof(Element);
    using A = wmma::fragment<wmma::matrix_a, TILE, TILE, Depth, FragmentType, wmma::row_major>;
    using B = wmma::fragment<wmma::matrix_b, TILE, TILE, Depth, FragmentType, wmma::col_major>;
    using Results = wmma::fragment<wmma::accumulator, TILE, TILE, Depth, Sum>;

    template <typename Fragment>
    __device__ __forceinline__ static void load(Fragment& to, const Element* from) {
        wmma::load_matrix_sync(to, from, PITCH);
        if constexpr (sizeof(Element) == 4)
            for (int i = 0; i < to.num_elements; ++i) to.x[i] = wmma::__float_to_tf32(to.x[i]);
    }
};

using Tf32 = Operands<float, wmma::precision::tf32, float, 8>;
using Fp16 = Operands<__half, __half, float, 16>;
using Fp16InFp16 = Operands<__half, __half, __half, 16>;
using Bf16 = Operands<__nv_bfloat16, __nv_bfloat16, float, 16>;
using Int8 = Operands<signed char, signed char, int, 16>;

template <typename Of>
__global__ void __launch_bounds__(THREADS, 2)
    precision_gemm_wmma(const typename Of::Element* __restrict__ A, const typename Of::Element* __restrict__ B,
                        typename Of::Sum* __restrict__ C, int M, int N, int K) {
    extern __shared__ __align__(128) uint8_t stages[];  // each has BM rows of A, then BN rows of B
    using Element = typename Of::Element;
    using Sum = typename Of::Sum;

    const int tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;
    const int warp_row = warp / WARPS_N * WM, warp_column = warp % WARPS_N * WN;
    const int steps = (K - 1) / Of::BK + 1;

    // A thread copies the same chunk of every LINES-th row, and commits one group per step, also an empty one, so that
    // groups count steps. What lies outside of the matrices becomes zero and is not read; its address is that of the
    // array, which is valid.
    const int line = tid / CHUNKS, chunk = tid % CHUNKS, my_k = chunk * (CHUNK_BYTES / int{sizeof(Element)});
    const auto copy = [&](const Element* from, int row, int rows, int k, uint8_t* to) {
        const bool is_inside = row < rows && k < K;
        mma::copy_async(to, is_inside ? from + static_cast<size_t>(row) * K + k : from, is_inside ? CHUNK_BYTES : 0);
    };
    const auto fetch = [&](int step) {
        if (step < steps) {
            uint8_t* const to = stages + step % STAGES * STAGE_BYTES + line * PITCH_BYTES + chunk * CHUNK_BYTES;
            const int k = step * Of::BK + my_k;
#pragma unroll
            for (int i = 0; i < BM; i += LINES) copy(A, block_row + line + i, M, k, to + i * PITCH_BYTES);
#pragma unroll
            for (int i = 0; i < BN; i += LINES) copy(B, block_column + line + i, N, k, to + (BM + i) * PITCH_BYTES);
        }
        mma::commit_copies();
    };

    typename Of::Results sum[WM / TILE][WN / TILE];
#pragma unroll
    for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j) wmma::fill_fragment(sum[i][j], Sum(0));

    for (int step = 0; step < STAGES - 1; ++step) fetch(step);
    for (int step = 0; step < steps; ++step) {
        mma::wait_copies<STAGES - 2>();
        __syncthreads();  // the step has arrived, and the stage that is filled next has been read
        fetch(step + STAGES - 1);
        const Element* const a = reinterpret_cast<const Element*>(stages + step % STAGES * STAGE_BYTES);
        const Element* const b = a + BM * Of::PITCH;
#pragma unroll
        for (int k = 0; k < Of::BK; k += Of::DEPTH) {
            typename Of::A a_part[WM / TILE];
            typename Of::B b_part[WN / TILE];
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i) Of::load(a_part[i], a + (warp_row + i * TILE) * Of::PITCH + k);
#pragma unroll
            for (int j = 0; j < WN / TILE; ++j) Of::load(b_part[j], b + (warp_column + j * TILE) * Of::PITCH + k);
#pragma unroll
            for (int i = 0; i < WM / TILE; ++i)
#pragma unroll
                for (int j = 0; j < WN / TILE; ++j) wmma::mma_sync(sum[i][j], a_part[i], b_part[j], sum[i][j]);
        }
    }

    __syncthreads();  // all stages have been read
    Sum* const results = reinterpret_cast<Sum*>(stages) + warp * TILE * TILE;
#pragma unroll
    for (int i = 0; i < WM / TILE; ++i) {
#pragma unroll
        for (int j = 0; j < WN / TILE; ++j) {
            wmma::store_matrix_sync(results, sum[i][j], TILE, wmma::mem_row_major);
            __syncwarp();
            for (int e = lane; e < TILE * TILE; e += 32) {
                const int row = block_row + warp_row + i * TILE + e / TILE;
                const int column = block_column + warp_column + j * TILE + e % TILE;
                if (row < M && column < N) C[static_cast<size_t>(row) * N + column] = results[e];
            }
            __syncwarp();  // before the next fragment overwrites it
        }
    }
}

template <typename Of>
static cudaError_t start(const void* A, const void* B, void* C, int M, int N, int K, cudaStream_t stream) {
    const cudaError_t error =
        cudaFuncSetAttribute(precision_gemm_wmma<Of>, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    precision_gemm_wmma<Of><<<grid, THREADS, SHARED_BYTES, stream>>>(
        static_cast<const typename Of::Element*>(A), static_cast<const typename Of::Element*>(B),
        static_cast<typename Of::Sum*>(C), M, N, K);
    return cudaGetLastError();
}

extern "C" int launch(const void* A, const void* B, const float*, const float*, void* C, int M, int N, int K, int type,
                      cudaStream_t stream) {
    switch (type) {
        case TF32: return start<Tf32>(A, B, C, M, N, K, stream);
        case FP16: return start<Fp16>(A, B, C, M, N, K, stream);
        case FP16_ACC16: return start<Fp16InFp16>(A, B, C, M, N, K, stream);
        case BF16: return start<Bf16>(A, B, C, M, N, K, stream);
        case INT8: return start<Int8>(A, B, C, M, N, K, stream);
        default: return cudaErrorNotSupported;
    }
}
