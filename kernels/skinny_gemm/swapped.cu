// swapped, swapped_narrow: the rows of W take the place of the rows of A in mma.
//
// Idea         mma computes 16 x 8 results. With A as its first operand, M rows become at least 16, and in the tile of a
//              square GEMM 128. C^T = W A^T has the 4096 rows of W there, and M is the short side: a block computes BN
//              rows of W times all rows of A, padded to 16, 32, 64 or 128. So W is read once, by as many blocks as its
//              rows give.
//              swapped has 64 rows per block, for 64 blocks on 132 SMs; swapped_narrow has 32 rows, for 128 blocks.
// Expected     A sum over as many bytes as W has, 33.6 MB, takes 15.5 us on an H100 (reduction). 64 blocks keep 64 SMs
//              busy, each with 56 KiB of W in flight: 17 to 25 us. 128 blocks: 14 to 17.5 us at small M.
// Cost         Every block reads all of A: 64 or 128 MB from L2 at M = 128, which is more than W. The rows of A also take
//              shared memory, so that fewer stages fit at M above 32.
// Constraints  M up to 128, K a multiple of 8, arrays aligned to 16 bytes; any N.
// Source       PTX ISA, mma, ldmatrix, cp.async; NVIDIA TensorRT-LLM and FasterTransformer swap the operands of small
//              batches.

#include "strip.cuh"

template <int Columns>
__global__ void __launch_bounds__(THREADS)
    skinny_gemm_swapped(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ W,
                        __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    extern __shared__ __align__(128) __nv_bfloat16 stages[];  // each has BN rows of W, then all of A
    const int first = blockIdx.x * BN;
    float sum[Columns / 8][4] = {};
    multiply<Columns>(sum, stages, A, W, M, N, K, first, 0, steps_of(K));
    for_each_sum<Columns>(sum, [&](int row, int column, float value) {
        if (first + row < N && column < M)
            C[static_cast<size_t>(column) * N + first + row] = __float2bfloat16(value);
    });
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* W, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    return with_columns(M, [=](auto columns) {
        constexpr int BYTES = shared_bytes<columns()>;
        const auto kernel = skinny_gemm_swapped<columns()>;
        const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES);
        if (error != cudaSuccess) return error;
        kernel<<<(N - 1) / BN + 1, THREADS, BYTES, stream>>>(A, W, C, M, N, K);
        return cudaGetLastError();
    });
}
