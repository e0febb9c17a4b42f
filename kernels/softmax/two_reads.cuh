// A row that one block reads twice, in packs of 16 bytes: rows of any length. See vectorized.cu.
#pragma once

#include <cuda_runtime.h>

#include "pair.cuh"

namespace {

constexpr int LOADS = 4;  // packs in flight per thread

// The pair of this thread's packs.
template <typename T, bool ALIGNED>
__device__ __forceinline__ Pair read_row(const rows::Row<T, ALIGNED>& row) {
    Pair pair = no_logits();
    for (int p = threadIdx.x; p < row.packs(); p += LOADS * blockDim.x) {
        rows::Pack<T> pack[LOADS];
        load_packs(row, p, blockDim.x, pack);
        pair = Combine()(pair, pair_of(pack));
    }
    return pair;
}

template <typename T, bool ALIGNED>
__device__ __forceinline__ void write_row(const rows::Row<T, ALIGNED>& row, T* out, Pair pair) {
    for (int p = threadIdx.x; p < row.packs(); p += LOADS * blockDim.x) {
        rows::Pack<T> pack[LOADS];
        load_packs(row, p, blockDim.x, pack);
        write_packs(row, out, p, blockDim.x, pack, pair);
    }
}

// One block of THREADS threads per row.
template <typename T, bool ALIGNED, int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_vectorized(const T* __restrict__ x, T* __restrict__ y, int columns) {
    __shared__ Pair part[32];
    const rows::Row<T, ALIGNED> row(x, blockIdx.x, columns);
    const Pair pair = rows::over_block(read_row(row), no_logits(), part, Combine());
    write_row(row, y + static_cast<size_t>(blockIdx.x) * columns, pair);
}

template <int THREADS = 512, typename T>
void launch_two_reads(const T* x, T* y, int row_count, int columns, cudaStream_t stream) {
    const bool is_aligned = rows::are_aligned<T>(columns, x, y);
    const auto kernel = is_aligned ? softmax_vectorized<T, true, THREADS> : softmax_vectorized<T, false, THREADS>;
    kernel<<<row_count, THREADS, 0, stream>>>(x, y, columns);
}

}  // namespace
