// online: the largest logit and the sum in one pass over the row.
//
// Idea         A thread keeps the largest logit so far and the sum of exponentials relative to it. A larger logit
//              rescales the sum by e^(old - new), which is rare after the first few. Two such pairs combine in the same
//              way, so that one reduction over the block replaces two, and a row is read twice instead of three times.
// Expected     1.2 to 1.4 times `shuffle` where reading is the limit: two reads and a write per element instead of
//              three reads and a write.
// Cost         Each addition to the sum depends on a comparison; two exponentials per combination.
// Constraints  As `naive`.
// Source       M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867.

#include <cuda_runtime.h>

#include "pair.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

template <typename T>
__global__ void __launch_bounds__(BLOCK) softmax_online(const T* __restrict__ x, T* __restrict__ y, int columns) {
    __shared__ Pair part[32];
    const T* in = x + static_cast<size_t>(blockIdx.x) * columns;
    T* out = y + static_cast<size_t>(blockIdx.x) * columns;
    Pair pair = no_logits();
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        const float logit = rows::to_float(in[i]);
        if (logit > pair.max) {
            pair.sum *= exponential(pair.max - logit);
            pair.max = logit;
        }
        pair.sum += exponential(logit - pair.max);
    }
    pair = rows::over_block(pair, no_logits(), part, Combine());
    const float scale = __fdividef(1.0f, pair.sum);
    for (int i = threadIdx.x; i < columns; i += BLOCK)
        out[i] = rows::from_float<T>(exponential(rows::to_float(in[i]) - pair.max) * scale);
}

extern "C" int launch(const void* x, void* y, int row_count, int columns, int element_bytes, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        softmax_online<T><<<row_count, BLOCK, 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(y), columns);
        return cudaGetLastError();
    });
}
