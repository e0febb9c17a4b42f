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

#include "cublas_bf16.cuh"

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, float* C, int M, int N, int K,
                      cudaStream_t stream) {
    return cublas::multiply_bf16(A, B, cublas::NO_TRANSPOSE, C, CUDA_R_32F, M, N, K, stream);
}
