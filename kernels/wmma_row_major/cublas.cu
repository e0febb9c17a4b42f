// cublas: the baseline, NVIDIA's library in bf16 with fp32 sums and results.
//
// Idea         The kernel that the heuristics of cublasGemmEx select. The library is column-major, where a row-major
//              matrix is its transpose, so the launcher requests C^T = B^T A^T, without transposing anything.
// Expected     About as fast as with K contiguous in B, since wgmma reads B in both orders.
// Cost         A workspace of 32 MiB per device. The first launch creates the handle and allocates; later ones only
//              launch.
// Constraints  Any M, N, K >= 1, any alignment. cuBLAS 12 or newer must be loaded in the process or found by the
//              dynamic linker; otherwise the launch returns cudaErrorSharedObjectInitFailed. One stream at a time:
//              concurrent streams would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasGemmEx, cublasSetWorkspace).

#include "cublas.cuh"

#include <cuda_bf16.h>

constexpr int DEFAULT_MATH = 0;  // CUBLAS_DEFAULT_MATH
constexpr int COMPUTE_32F = 68;  // CUBLAS_COMPUTE_32F

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int M, int N, int K,
                      cudaStream_t stream) {
    cublas::Session* session = nullptr;
    cublas::Handle handle = nullptr;
    cudaError_t error = cublas::current_session(&session);
    if (error == cudaSuccess) error = session->bind(stream, DEFAULT_MATH, &handle);
    if (error != cudaSuccess) return error;
    const float alpha = 1.0f, beta = 0.0f;
    return cublas::as_cuda_error(cublas::library().gemm_ex(
        handle, cublas::NO_TRANSPOSE, cublas::NO_TRANSPOSE, N, M, K, &alpha, B, CUDA_R_16BF, N, A, CUDA_R_16BF, K,
        &beta, C, CUDA_R_32F, N, COMPUTE_32F, cublas::GEMM_DEFAULT));
}
