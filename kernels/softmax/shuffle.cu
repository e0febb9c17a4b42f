// shuffle: warps combine their results through registers.
//
// Idea         Five SHFL combine the values of a warp. Each warp writes one number to shared memory, and after the only
//              barrier of the reduction every warp combines these numbers again, so that all threads have the result
//              without a further barrier.
// Expected     1.1 to 1.3 times `block_per_row`: two barriers per row instead of twenty. The gain is largest where rows
//              are short.
// Cost         A row is still read three times.
// Constraints  As `naive`.
// Source       J. Luitjens, developer.nvidia.com/blog/faster-parallel-reductions-kepler.

#include <cuda_runtime.h>

#include "pair.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

template <typename T>
__global__ void __launch_bounds__(BLOCK) softmax_shuffle(const T* __restrict__ x, T* __restrict__ y, int columns) {
    __shared__ float maxima[32], sums[32];
    const T* in = x + static_cast<size_t>(blockIdx.x) * columns;
    T* out = y + static_cast<size_t>(blockIdx.x) * columns;
    float max = LOWEST, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += BLOCK) max = fmaxf(max, rows::to_float(in[i]));
    max = rows::over_block(max, LOWEST, maxima, rows::Max());
    for (int i = threadIdx.x; i < columns; i += BLOCK) sum += exponential(rows::to_float(in[i]) - max);
    const float scale = __fdividef(1.0f, rows::over_block(sum, 0.0f, sums, rows::Sum()));
    for (int i = threadIdx.x; i < columns; i += BLOCK)
        out[i] = rows::from_float<T>(exponential(rows::to_float(in[i]) - max) * scale);
}

extern "C" int launch(const void* x, void* y, int row_count, int columns, int element_bytes, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        softmax_shuffle<T><<<row_count, BLOCK, 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(y), columns);
        return cudaGetLastError();
    });
}
