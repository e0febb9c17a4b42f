// double_buffered: the next tiles are loaded while the current ones are multiplied.
//
// Idea         warptile copies, waits at a barrier, multiplies and waits again: its arithmetic units are idle during
//              the copy. Here shared memory holds two stages. The loads of the next tiles are issued at the first k of
//              a step, stay in registers during the step, and are stored to the other stage at its last k: one barrier
//              per step instead of two. The operands of the next k are read from shared memory during the products of
//              the current k, also across the barrier, so that no multiply-add waits for an access that was just
//              issued. The block tile is 128 x 128 instead of 64 x 128, and the thread tile is 16 x 8: 6 reads for 128
//              multiply-adds instead of 8, since at 700 W each read costs speed.
// Expected     1.12 to 1.2 times warptile on an H200: 50 to 54 TFLOP/s, where the power limit of the board begins to
//              matter.
// Cost         Twice the shared memory, and over 200 registers for the thread tile, the staged tiles and the operands
//              of two k. With eight warps per SM, latency is hidden by the order of instructions within a warp and
//              hardly by other warps.
// Constraints  Any M, N, K >= 1, any alignment. Wide accesses require rows aligned to 16 bytes: K and N multiples of 4,
//              aligned arrays. The launcher checks this and otherwise uses the instantiation that copies float by
//              float.
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
