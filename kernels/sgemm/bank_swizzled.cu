// bank_swizzled: vectorized without bank conflicts, by permuting the rows of shared memory.
//
// Idea         vectorized has two kinds of bank conflicts. Two lanes store the same row of A for k and k + 4, a
//              multiple of 32 words apart; and eight lanes that each read a float4 of B, 32 bytes apart, use only every
//              other group of four banks. Here the row number is changed by bits of k, and the number of a float4 by
//              bits of the number of its group of eight: the same bytes, in an order that uses all 32 banks.
// Expected     0.9 to 1.1 times vectorized, which spends 40 % of its wavefronts on conflicts but also waits for other
//              things. Boehm's kernel of this kind is slower than his vectorized one (28042 against 31437 GFLOP/s on an
//              H200).
// Cost         One XOR per address that is not known at compile time.
// Constraints  As vectorized. TN / 4 and BK / 4 are powers of two, at most 8.
// Source       S. Boehm, How to optimize a CUDA matmul kernel (siboehm.com/articles/22/CUDA-MMM), kernel that resolves
//              bank conflicts; the permutation is that of CUTLASS and of TMA's swizzles.

#include "vectorized_layout.cuh"

struct Layout {
    static constexpr int A_FLOATS = BK * BM, B_FLOATS = BK * BN;
    static constexpr int ROWS = 32 / (BK / 4);  // rows that the lanes of a warp store for one k

    __host__ __device__ static constexpr int a_at(int k, int row) { return k * BM + (row ^ k / 4 * ROWS); }
    __host__ __device__ static constexpr int b_at(int k, int column) {
        const int quad = column / 4;
        return k * BN + (quad ^ quad / 8 % (TN / 4)) * 4 + column % 4;
    }
};

static_assert((TN / 4 & (TN / 4 - 1)) == 0 && TN <= 32, "the float4 of each group of eight are permuted within it");
static_assert((BK / 4 & (BK / 4 - 1)) == 0 && BK <= 32 && BM % 32 == 0, "rows are permuted by groups of float4");

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    return sgemm::start_vectorized<Layout, BM, BN, BK, TM, TN>(A, B, C, M, N, K, alpha, beta, stream);
}
