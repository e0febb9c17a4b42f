// three_passes: a GEMM, and then a kernel each for scale, bias and ReLU.
//
// Idea         What a framework does that runs a layer operator by operator. Each kernel reads the M x N results and
//              writes them again, rounded to bf16. The workspace and C take turns.
// Expected     A pass moves 4 * M * N bytes, 67 MB at 4096 x 4096: 16 us at the bandwidth of an H200, less if part of
//              its input is still in L2. This does not depend on K, so it weighs the more, the smaller K is.
// Cost         2 * M * N bytes of workspace; three roundings instead of one.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; M * N up to
//              2^34.
// Source       Deep dive 02, CUDA programming, chapter 14; the GEMM: bf16_gemm, wgmma_stmatrix.

#include "passes.cuh"

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, const __nv_bfloat16* bias, __nv_bfloat16* C,
                      void* workspace, int M, int N, int K, float scale, cudaStream_t stream) {
    __nv_bfloat16* other = static_cast<__nv_bfloat16*>(workspace);
    cudaError_t error = launch_gemm(A, B, other, M, N, K, Steps<false, false, false>{scale, bias}, stream);
    if (error == cudaSuccess) error = launch_pass(other, C, M, N, Steps<true, false, false>{scale, bias}, stream);
    if (error == cudaSuccess) error = launch_pass(C, other, M, N, Steps<false, true, false>{scale, bias}, stream);
    if (error == cudaSuccess) error = launch_pass(other, C, M, N, Steps<false, false, true>{scale, bias}, stream);
    return error;
}
