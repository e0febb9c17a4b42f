// cublasGemmEx in bf16 with fp32 sums: the kernel that the heuristics of the library select.
#pragma once

#include <cuda_bf16.h>

#include "cublas.cuh"

namespace {
namespace cublas {

constexpr int TRANSPOSE = 1;     // CUBLAS_OP_T
constexpr int DEFAULT_MATH = 0;  // CUBLAS_DEFAULT_MATH
constexpr int COMPUTE_32F = 68;  // CUBLAS_COMPUTE_32F

// C = A B, row-major. `transpose_b` is TRANSPOSE if K is contiguous in B, else NO_TRANSPOSE. The library is
// column-major, where a row-major matrix is its transpose, so that it computes C^T = B^T A^T.
inline cudaError_t multiply_bf16(const __nv_bfloat16* A, const __nv_bfloat16* B, int transpose_b, void* C,
                                 cudaDataType c_type, int M, int N, int K, cudaStream_t stream) {
    Session* session = nullptr;
    Handle handle = nullptr;
    cudaError_t error = current_session(&session);
    if (error == cudaSuccess) error = session->bind(stream, DEFAULT_MATH, &handle);
    if (error != cudaSuccess) return error;
    const float alpha = 1.0f, beta = 0.0f;
    return as_cuda_error(library().gemm_ex(handle, transpose_b, NO_TRANSPOSE, N, M, K, &alpha, B, CUDA_R_16BF,
                                           transpose_b ? K : N, A, CUDA_R_16BF, K, &beta, C, c_type, N, COMPUTE_32F,
                                           GEMM_DEFAULT));
}

}  // namespace cublas
}  // namespace
