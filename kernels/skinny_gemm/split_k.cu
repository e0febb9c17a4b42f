// split_k: several blocks share the rows of W, each with a part of K.
//
// Idea         64 rows of W per block are 64 blocks, for 132 SMs. Here PARTS blocks share the same rows, each with a part
//              of K: 256 blocks of a quarter of the steps. Each writes its partial sums to a workspace in fp32, and a
//              second kernel adds them in the order of K, so that the result is the same every time.
// Expected     1.1 to 1.45 times swapped up to M = 32, where partial sums are 2 MB and stay in L2. No faster than
//              swapped_narrow, which has as many busy SMs without a second kernel.
// Cost         The second kernel, about 2 us of 16; PARTS * M * N * 4 bytes that are written and read again.
// Constraints  M up to 128, K and N multiples of 8, arrays aligned to 16 bytes. One stream at a time: concurrent streams
//              would share the workspace.
// Source       NVIDIA CUTLASS, efficient GEMM, parallelized reductions; Deep dive 02, CUDA programming, which advises
//              split-K for skinny shapes.

#include "strip.cuh"
#include "workspace.cuh"

// Partial sums of part p lie at p * M * N, in the order of C.
template <int Columns>
__global__ void __launch_bounds__(THREADS)
    skinny_gemm_split_k(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ W,
                        float* __restrict__ partial, int M, int N, int K) {
    extern __shared__ __align__(128) __nv_bfloat16 stages[];  // each has BN rows of W, then all of A
    const int first = blockIdx.x * BN, part = blockIdx.y, steps = steps_of(K);
    float sum[Columns / 8][4] = {};
    multiply<Columns>(sum, stages, A, W, M, N, K, first, part * steps / PARTS, (part + 1) * steps / PARTS);
    partial += static_cast<size_t>(part) * M * N + first;
    for_each_sum<Columns>(sum, [&](int row, int column, float value) {
        if (first + row < N && column < M) partial[static_cast<size_t>(column) * N + row] = value;
    });
}

constexpr int SUM_THREADS = 128;

// `quads` times four results.
__global__ void __launch_bounds__(SUM_THREADS)
    skinny_gemm_split_k_sum(const float4* __restrict__ partial, uint2* __restrict__ C, int quads) {
    const int at = blockIdx.x * SUM_THREADS + threadIdx.x;
    if (at >= quads) return;
    float4 part[PARTS];
#pragma unroll
    for (int p = 0; p < PARTS; ++p) part[p] = partial[static_cast<size_t>(p) * quads + at];
    float4 sum = part[0];
#pragma unroll
    for (int p = 1; p < PARTS; ++p)
        sum = make_float4(sum.x + part[p].x, sum.y + part[p].y, sum.z + part[p].z, sum.w + part[p].w);
    const __nv_bfloat162 low = __floats2bfloat162_rn(sum.x, sum.y), high = __floats2bfloat162_rn(sum.z, sum.w);
    C[at] = make_uint2(*reinterpret_cast<const unsigned*>(&low), *reinterpret_cast<const unsigned*>(&high));
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* W, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    void* memory = nullptr;
    cudaError_t error = workspace(size_t{PARTS} * M * N * sizeof(float), &memory);
    if (error != cudaSuccess) return error;
    float* const partial = static_cast<float*>(memory);
    error = with_columns(M, [=](auto columns) {
        constexpr int BYTES = shared_bytes<columns()>;
        const auto kernel = skinny_gemm_split_k<columns()>;
        const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
        if (error != cudaSuccess) return error;
        kernel<<<dim3((N - 1) / BN + 1, PARTS), THREADS, BYTES, stream>>>(A, W, partial, M, N, K);
        return cudaGetLastError();
    });
    if (error != cudaSuccess) return error;
    const int quads = M * (N / 4);
    skinny_gemm_split_k_sum<<<(quads - 1) / SUM_THREADS + 1, SUM_THREADS, 0, stream>>>(
        reinterpret_cast<const float4*>(partial), reinterpret_cast<uint2*>(C), quads);
    return cudaGetLastError();
}
