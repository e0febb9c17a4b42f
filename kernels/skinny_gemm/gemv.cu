// gemv: up to eight rows of A without tensor cores and shared memory; a warp has two rows of W.
//
// Idea         With few rows of A, the time is that of reading W, and fp32 units are fast enough: 2 M operations per
//              element of W. Each lane reads 16 bytes of ROWS rows of W and of each row of A, which stays in L1, so that
//              one load of A serves all of these rows. Loads of W need no tile and no barrier, and 2048 warps, 15 per SM,
//              have some of them in flight. The sums of the lanes are added at the end: in each step, lanes exchange half
//              of their sums, so that 16 sums need 15 exchanges and one more.
// Expected     The fastest at M = 1: 14 to 17 us on an H100, where a sum of as many bytes takes 15.5 us (reduction). At
//              M = 8, 64 products per 16 bytes of W and eight loads of A per two of W take longer than the bytes.
// Cost         M * ROWS sums per lane; the conversion of bf16 to fp32.
// Constraints  M up to 8, K a multiple of 8, arrays aligned to 16 bytes; any N.
// Source       NVIDIA cuBLAS and TensorRT-LLM have such kernels for single rows; M. Harris, Optimizing parallel reduction
//              in CUDA, for the exchange of halves.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

constexpr int CHUNK = 8;  // bf16 in 16 bytes
static_assert(BLOCK % 32 == 0, "a block has whole warps");
static_assert((ROWS & (ROWS - 1)) == 0 && ROWS <= 4, "the sums of all rows are divided evenly among the lanes");

__device__ __forceinline__ void widen(float (&to)[CHUNK], uint4 chunk) {
    const uint32_t pairs[] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        to[2 * i] = __uint_as_float(pairs[i] << 16);
        to[2 * i + 1] = __uint_as_float(pairs[i] & 0xFFFF0000);
    }
}

// Adds each of `Count` sums over the lanes of a warp; lane l gets sum number l / (32 / Count) in sum[0].
template <int Count>
__device__ __forceinline__ void add_up(float (&sum)[Count]) {
    int count = Count;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        if (count > 1) {
            count /= 2;
            const bool is_upper = threadIdx.x & distance;
#pragma unroll
            for (int i = 0; i < Count / 2; ++i) {
                if (i >= count) continue;
                const float keep = is_upper ? sum[i + count] : sum[i], give = is_upper ? sum[i] : sum[i + count];
                sum[i] = keep + __shfl_xor_sync(~0u, give, distance);
            }
        } else {
            sum[0] += __shfl_xor_sync(~0u, sum[0], distance);
        }
    }
}

// MOST is at least M; a row of A that does not exist repeats the last one.
template <int MOST>
__global__ void __launch_bounds__(BLOCK)
    skinny_gemm_gemv(const __nv_bfloat16* __restrict__ A, const __nv_bfloat16* __restrict__ W,
                     __nv_bfloat16* __restrict__ C, int M, int N, int K) {
    const int lane = threadIdx.x % 32, first = (blockIdx.x * BLOCK + threadIdx.x) / 32 * ROWS;
    if (first >= N) return;
    const __nv_bfloat16 *w[ROWS], *a[MOST];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) w[r] = W + static_cast<size_t>(min(first + r, N - 1)) * K;
#pragma unroll
    for (int m = 0; m < MOST; ++m) a[m] = A + static_cast<size_t>(min(m, M - 1)) * K;

    float sum[ROWS * MOST] = {};
#pragma unroll 4
    for (int k = lane * CHUNK; k < K; k += 32 * CHUNK) {
        float w_part[ROWS][CHUNK];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) widen(w_part[r], __ldcs(reinterpret_cast<const uint4*>(w[r] + k)));
#pragma unroll
        for (int m = 0; m < MOST; ++m) {
            float a_part[CHUNK];
            widen(a_part, *reinterpret_cast<const uint4*>(a[m] + k));
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
#pragma unroll
                for (int i = 0; i < CHUNK; ++i) sum[r * MOST + m] += w_part[r][i] * a_part[i];
        }
    }
    add_up(sum);
    constexpr int LANES = 32 / (ROWS * MOST);  // that hold the same sum
    const int mine = lane / LANES, row = first + mine / MOST, m = mine % MOST;
    if (lane % LANES == 0 && row < N && m < M) C[static_cast<size_t>(m) * N + row] = __float2bfloat16(sum[0]);
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* W, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    const int blocks = (N - 1) / (BLOCK / 32 * ROWS) + 1;
    if (M == 1)
        skinny_gemm_gemv<1><<<blocks, BLOCK, 0, stream>>>(A, W, C, M, N, K);
    else if (M == 2)
        skinny_gemm_gemv<2><<<blocks, BLOCK, 0, stream>>>(A, W, C, M, N, K);
    else if (M <= 4)
        skinny_gemm_gemv<4><<<blocks, BLOCK, 0, stream>>>(A, W, C, M, N, K);
    else
        skinny_gemm_gemv<8><<<blocks, BLOCK, 0, stream>>>(A, W, C, M, N, K);
    return cudaGetLastError();
}
