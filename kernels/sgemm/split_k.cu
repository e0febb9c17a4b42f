// split_k: several blocks share a tile of C, each with a part of K.
//
// Idea         A small C has few tiles: 512 x 512 has 64 tiles of 64 x 64, and half of the 132 SMs of an H200 would be
//              idle while the others walk along all of K. Here K is split as well, until there are enough blocks for
//              WAVES waves on all SMs. Each block writes its partial sums to a workspace, and a second kernel adds them
//              in a fixed order, so that the result is the same every time. With atomic additions it would not be.
// Expected     3 to 4 times double_buffered at 128 to 512 (on an H200, cuBLAS takes 7.7, 10.2 and 15.6 us, cold); no
//              gain from 2048 on, where C has enough tiles and smaller ones only add traffic.
// Cost         The partial sums pass through L2 once, and a second kernel starts: 1 to 2 us. A static workspace of 16
//              MiB. The tiles are smaller than those of double_buffered (BN = 64 instead of 128), so that each loaded
//              element is used in fewer products.
// Constraints  Any M, N, K >= 1, any alignment. Wide accesses require rows aligned to 16 bytes: K and N multiples of 4,
//              aligned arrays. The launcher checks this and otherwise uses the instantiation that copies float by
//              float. M up to 65535 * BM. One stream at a time: concurrent streams would share the workspace.
// Source       NVIDIA CUTLASS, efficient GEMM, parallelized reductions (media/docs/cpp/efficient_gemm.md).

#include "double_buffer.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;
using Loop = sgemm::DoubleBuffer<Warp, BK>;

static_assert(Loop::SHARED_BYTES <= 48 * 1024, "more shared memory must be requested");
static_assert(MIN_K % BK == 0, "a part of K has whole steps");

constexpr size_t WORKSPACE = size_t{4} << 20;  // floats
__device__ __align__(16) float workspace[WORKSPACE];

// Block z multiplies part z of K, which is `part` long. Results go to C if there is one part, else to the workspace.
template <bool WIDE>
__global__ void __launch_bounds__(Warp::THREADS, BLOCKS_PER_SM)
    sgemm_split_k(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K,
                  int part, float alpha, float beta) {
    extern __shared__ __align__(16) float shared[];

    const Warp warp(threadIdx.x);
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;
    const int k_begin = blockIdx.z * part, k_size = min(part, K - k_begin);
    float sum[Warp::ROWS][Warp::COLUMNS] = {};
    Loop::multiply<WIDE>(sum, shared, A, B, M, N, K, block_row, block_column, k_begin, k_size, warp);
    if (gridDim.z == 1) {
        warp.finish<WIDE>(C, M, N, block_row, block_column, sum, alpha, beta);
    } else {
        float* const partial = workspace + static_cast<size_t>(blockIdx.z) * M * N;
        warp.finish<WIDE>(partial, M, N, block_row, block_column, sum, 1.0f, 0.0f);
    }
}

constexpr int SUM_THREADS = 128;

// Adds the parts. `size` is the number of elements of C, whose rows are contiguous.
template <bool WIDE>
__global__ void __launch_bounds__(SUM_THREADS)
    sgemm_split_k_sum(float* __restrict__ C, int size, int parts, float alpha, float beta) {
    const int at = (blockIdx.x * SUM_THREADS + threadIdx.x) * 4;
    float4 sum = load_quad<WIDE>(workspace + at, size - at);
#pragma unroll 4
    for (int z = 1; z < parts; ++z)
        add_quad(sum, load_quad<WIDE>(workspace + static_cast<size_t>(z) * size + at, size - at));
    sgemm::finish_quad<WIDE>(C + at, size - at, sum, alpha, beta);
}

static int ceil_div(int a, int b) { return (a - 1) / b + 1; }

// Length of a part of K: whole steps, at least MIN_K, and short enough for WAVES waves on all SMs.
static int part_of_k(int M, int N, int K, int multiprocessors) {
    const int64_t tiles = static_cast<int64_t>(ceil_div(M, BM)) * ceil_div(N, BN), size = static_cast<int64_t>(M) * N;
    int64_t parts = WAVES * multiprocessors / tiles;
    if (parts > static_cast<int64_t>(WORKSPACE) / size) parts = static_cast<int64_t>(WORKSPACE) / size;
    if (parts > K / MIN_K) parts = K / MIN_K;
    if (parts <= 1) return K;
    return ceil_div(ceil_div(K, static_cast<int>(parts)), BK) * BK;
}

template <bool WIDE>
static cudaError_t start(const float* A, const float* B, float* C, int M, int N, int K, int part, float alpha,
                         float beta, cudaStream_t stream) {
    const dim3 grid(ceil_div(N, BN), ceil_div(M, BM), ceil_div(K, part));
    sgemm_split_k<WIDE><<<grid, Warp::THREADS, Loop::SHARED_BYTES, stream>>>(A, B, C, M, N, K, part, alpha, beta);
    if (grid.z > 1) {
        const int blocks = ceil_div(ceil_div(M * N, 4), SUM_THREADS);
        sgemm_split_k_sum<WIDE><<<blocks, SUM_THREADS, 0, stream>>>(C, M * N, grid.z, alpha, beta);
    }
    return cudaGetLastError();
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    int device = 0, multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    const int part = part_of_k(M, N, K, multiprocessors);
    return sgemm::rows_on_16_bytes(A, B, C, N, K) ? start<true>(A, B, C, M, N, K, part, alpha, beta, stream)
                                                  : start<false>(A, B, C, M, N, K, part, alpha, beta, stream);
}
