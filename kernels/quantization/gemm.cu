// gemm: an fp32 GEMM with a fixed number of blocks per SM, so that tiles and waves can be counted.
//
// Idea         C is divided into tiles of BM x BN, one per block. A tile at the border takes as many operations as a
//              whole one, and the last wave of blocks nearly as long as a full one, however few blocks it has, so time
//              rises in steps while the work grows evenly. The launcher requests more shared memory than needed, so
//              that exactly BLOCKS_PER_SM blocks share an SM, and a wave is SMs * BLOCKS_PER_SM blocks on any GPU.
//              Otherwise the kernel is a plain one, with TM x TN results per thread.
// Expected     One block more than a wave doubles the time of one wave. With two blocks per SM, a block that has an SM
//              to itself runs faster, so that the step is smaller.
// Cost         Results outside C are computed as well, from zeros.
// Constraints  Any M, N, K >= 1, any alignment. M up to 65535 * BM.
// Source       A. Gordic, Anatomy of high performance matmul kernels; NVIDIA, Matrix Multiplication Background User's
//              Guide (tile and wave quantization).

#include <cuda_runtime.h>

#include <algorithm>

constexpr int THREADS_N = BN / TN;
constexpr int THREADS = BM / TM * THREADS_N;
constexpr int PITCH = BM + (TM % 4 == 0 ? 4 : 1);  // reduces bank conflicts of lanes that store a row of A
constexpr int TILE_BYTES = BK * (PITCH + BN) * 4;

static_assert(BM % TM == 0 && BN % TN == 0, "the tile is split into whole patches");
static_assert(THREADS % 32 == 0 && THREADS <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0, "copies take whole steps");
static_assert(BK * PITCH % 4 == 0 && BN % 4 == 0, "rows of the tile of B begin on 16 bytes");
static_assert(TILE_BYTES <= 48 * 1024, "the tiles fit into the shared memory of any GPU");

__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    quantization_gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N,
                      int K) {
    extern __shared__ __align__(16) float tiles[];
    float* a_tile = tiles;               // [BK][PITCH], the rows of one k are contiguous
    float* b_tile = tiles + BK * PITCH;  // [BK][BN]

    const int tid = threadIdx.x;
    const int block_row = blockIdx.y * BM, block_col = blockIdx.x * BN;
    const int my_row = tid / THREADS_N * TM, my_col = tid % THREADS_N * TN;
    float sum[TM][TN] = {};

    for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
        for (int i = tid; i < BM * BK; i += THREADS) {
            const int row = block_row + i / BK, k = k0 + i % BK;
            a_tile[i % BK * PITCH + i / BK] = row < M && k < K ? A[static_cast<size_t>(row) * K + k] : 0.0f;
        }
#pragma unroll
        for (int i = tid; i < BK * BN; i += THREADS) {
            const int k = k0 + i / BN, col = block_col + i % BN;
            b_tile[i] = k < K && col < N ? B[static_cast<size_t>(k) * N + col] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; ++i) a[i] = a_tile[k * PITCH + my_row + i];
#pragma unroll
            for (int j = 0; j < TN; ++j) b[j] = b_tile[k * BN + my_col + j];
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int row = block_row + my_row + i, col = block_col + my_col + j;
            if (row < M && col < N) C[static_cast<size_t>(row) * N + col] = sum[i][j];
        }
    }
}

// Dynamic shared memory with which BLOCKS_PER_SM blocks fit into an SM, and one more does not.
static cudaError_t shared_bytes(int* bytes) {
    int device = 0, of_sm = 0, reserved = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&of_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&reserved, cudaDevAttrReservedSharedMemoryPerBlock, device);
    const int too_much_for_another = of_sm / (BLOCKS_PER_SM + 1) + 1024 - reserved;  // 1024: more than any rounding
    *bytes = std::max(TILE_BYTES, too_much_for_another / 1024 * 1024);
    return error;
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, cudaStream_t stream) {
    int bytes = 0;
    cudaError_t error = shared_bytes(&bytes);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(quantization_gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(quantization_gemm, cudaFuncAttributePreferredSharedMemoryCarveout,
                                     cudaSharedmemCarveoutMaxShared);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    quantization_gemm<<<grid, THREADS, bytes, stream>>>(A, B, C, M, N, K);
    return cudaGetLastError();
}
