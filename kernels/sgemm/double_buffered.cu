// double_buffered: the next tiles are on their way while the products of the present ones run.
//
// Idea         warptile copies, waits at a barrier, multiplies, waits again: its math stands still during the copy.
//              Here shared memory holds two stages. The loads of the next tiles leave at the first k of a step, spend
//              the step in registers, and go into the other stage at its last k: one barrier a step instead of two. The
//              operands of the next k are read from shared memory during the products of this one, over the barrier
//              too, so that no multiply-add waits for an access that was just issued. And a thread owns a 16 x 8 patch:
//              6 reads for 128 multiply-adds instead of 8, since at 700 W each of them costs speed.
// Expected     1.12 to 1.2 times warptile on an H200: 50 to 54 TFLOP/s, where the board's power begins to limit.
// Cost         Twice the shared memory, and over 200 registers: patch, staged tiles, operands of two k. Eight warps an
//              SM, so that latency is hidden by the order of instructions within a warp, hardly by other warps.
// Constraints  Right for any M, N, K >= 1 and any alignment. Wide accesses need rows that start on 16 bytes: K and N
//              multiples of 4 and aligned arrays; the launcher looks, and otherwise picks the instance that copies
//              float by float.
// Source       NVIDIA CUTLASS, efficient GEMM (github.com/NVIDIA/cutlass, media/docs/cpp/efficient_gemm.md,
//              pipelining).

#include "double_buffer.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const auto start = sgemm::rows_on_16_bytes(A, B, C, N, K)
                           ? sgemm::start_double_buffered<Warp, BK, BLOCKS_PER_SM, 1, true>
                           : sgemm::start_double_buffered<Warp, BK, BLOCKS_PER_SM, 1, false>;
    return start(A, B, C, M, N, K, alpha, beta, stream);
}
