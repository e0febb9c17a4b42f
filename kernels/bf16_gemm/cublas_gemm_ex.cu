// cublas_gemm_ex: NVIDIA's library in bf16 with fp32 sums, without any selection by the caller.
//
// Idea         What the vendor's library reaches without tuning: the kernel that its heuristics select first.
//              The library is column-major, where a row-major matrix is its transpose, so the launcher requests C^T = B
//              A^T. Only B, the library's first operand, is passed as transposed, since K is contiguous in both
//              matrices.
// Expected     At most 2 % faster than cublas, which replaces the first suggestion of the library only for a gain above
//              2 %: 756 TFLOP/s at 4096 and 793 at 8192 on an H200.
// Cost         A workspace of 32 MiB per device. The first launch creates the handle and allocates; later ones only
//              launch.
// Constraints  Any M, N, K >= 1, any alignment. cuBLAS 12 or newer must be loaded in the process or found by the
//              dynamic linker; otherwise the launch returns cudaErrorSharedObjectInitFailed. One stream at a time:
//              concurrent streams would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasGemmEx, cublasSetWorkspace).

#include "cublas_bf16.cuh"

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    return cublas::multiply_bf16(A, B, cublas::TRANSPOSE, C, CUDA_R_16BF, M, N, K, stream);
}
