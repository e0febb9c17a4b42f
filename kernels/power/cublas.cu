// cublas: NVIDIA's library, which keeps the tensor cores busiest.
//
// Idea         As in tensor_cores, the instructions, the addresses and the number of bytes are the same for all data.
//              The library comes nearest to the peak of the GPU, and so to the power limit of the board.
//              The library is column-major, where a row-major matrix is its transpose, so the launcher requests C^T = B
//              A^T. Only B, the library's first operand, is passed as transposed, since K is contiguous in both
//              matrices.
// Expected     On an H200 at 16384, random data reach 700 W, and the clock falls to about 1470 MHz.
// Cost         A workspace of 32 MiB per device. The first launch creates the handle and allocates; later ones only
//              launch.
// Constraints  Any M, N, K >= 1, any alignment. cuBLAS 12 or newer must be loaded in the process or found by the
//              dynamic linker; otherwise the launch returns cudaErrorSharedObjectInitFailed. One stream at a time:
//              concurrent streams would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasGemmEx, cublasSetWorkspace).

#include "cublas_bf16.cuh"

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      int /* pattern */, cudaStream_t stream) {
    return cublas::multiply_bf16(A, B, cublas::TRANSPOSE, C, CUDA_R_16BF, M, N, K, stream);
}
