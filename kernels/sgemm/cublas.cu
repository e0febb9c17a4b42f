// cublas: the baseline, NVIDIA's library in pedantic fp32.
//
// Idea         What the vendor's library reaches under the same rules: fp32 multiply-adds, no tensor cores, no TF32.
//              The library is column-major, where a row-major matrix is its transpose, so the launcher requests C^T =
//              B^T A^T: the operands swap places, and nothing is transposed.
// Expected     23250 GFLOP/s on an RTX A6000 (Boehm). It selects one of many kernels by shape, with split K at small
//              sizes.
// Cost         A workspace of 32 MiB per device. The first launch creates the handle and allocates; later ones only
//              launch.
// Constraints  Any M, N, K >= 1, any alignment. cuBLAS 12 or newer must be loaded in the process or found by the
//              dynamic linker; otherwise the launch returns cudaErrorSharedObjectInitFailed. One stream at a time:
//              concurrent streams would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasGemmEx, cublasSetWorkspace).

#include "cublas.cuh"

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    cublas::Session* session = nullptr;
    cublas::Handle handle = nullptr;
    cudaError_t error = cublas::current_session(&session);
    if (error == cudaSuccess) error = session->bind(stream, cublas::PEDANTIC_MATH, &handle);
    if (error != cudaSuccess) return error;
    return cublas::as_cuda_error(cublas::library().gemm_ex(
        handle, cublas::NO_TRANSPOSE, cublas::NO_TRANSPOSE, N, M, K, &alpha, B, CUDA_R_32F, N, A, CUDA_R_32F, K, &beta,
        C, CUDA_R_32F, N, cublas::COMPUTE_32F_PEDANTIC, cublas::GEMM_DEFAULT));
}
