// bank_padded: vectorized without bank conflicts, by padding in shared memory.
//
// Idea         vectorized has two kinds of bank conflicts. Two lanes store the same row of A for k and k + 4, a
//              multiple of 32 words apart; and eight lanes that each read a float4 of B, 32 bytes apart, use only every
//              other group of four banks. Here rows of A are four words longer, so that k + 4 lies 16 banks further,
//              and every eight float4 of B are followed by an empty one, so that the next eight use the other banks.
// Expected     0.85 to 1.1 times vectorized. Boehm's kernel with padding is slower than his vectorized one (23255
//              against 31437 GFLOP/s on an H200).
// Cost         3 % more shared memory for A and 12 % for B. The address of a column needs a division instead of an XOR.
// Constraints  As vectorized.
// Source       S. Boehm, How to optimize a CUDA matmul kernel (siboehm.com/articles/22/CUDA-MMM), kernel with extra
//              columns.

#include "vectorized_layout.cuh"

struct Layout {
    static constexpr int A_PITCH = BM + 4, B_PITCH = BN + BN / 32 * 4;
    static constexpr int A_FLOATS = BK * A_PITCH, B_FLOATS = BK * B_PITCH;

    __host__ __device__ static constexpr int a_at(int k, int row) { return k * A_PITCH + row; }
    __host__ __device__ static constexpr int b_at(int k, int column) { return k * B_PITCH + column + column / 32 * 4; }
};

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    return sgemm::start_vectorized<Layout, BM, BN, BK, TM, TN>(A, B, C, M, N, K, alpha, beta, stream);
}
