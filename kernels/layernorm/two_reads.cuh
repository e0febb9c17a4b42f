// A row that one block reads twice, in packs of 16 bytes: rows of any length. See vectorized.cu.
#pragma once

#include <cuda_runtime.h>

#include "moments.cuh"

namespace {

constexpr int LOADS = 4;  // packs in flight per thread

// Arrays and sizes of a launch.
template <typename T>
struct Layer {
    const T *x, *gamma, *beta;
    T* y;
    int row_count, columns;
    float epsilon;

    bool is_aligned() const { return rows::are_aligned<T>(columns, x, gamma, beta, y); }
    int packs() const { return columns / rows::Pack<T>::SIZE; }  // if aligned
    __device__ __forceinline__ T* out(int row) const { return y + static_cast<size_t>(row) * columns; }
};

template <typename T>
Layer<T> layer_of(const void* x, const void* gamma, const void* beta, void* y, int row_count, int columns,
                  float epsilon) {
    return {static_cast<const T*>(x), static_cast<const T*>(gamma), static_cast<const T*>(beta), static_cast<T*>(y),
            row_count,                columns,                      epsilon};
}

// The moments of this thread's packs: of LOADS packs at a time, around their own mean.
template <typename T, bool ALIGNED>
__device__ __forceinline__ Moments read_row(const rows::Row<T, ALIGNED>& row) {
    Moments moments = no_elements();
    for (int p = threadIdx.x; p < row.packs(); p += LOADS * blockDim.x) {
        rows::Pack<T> pack[LOADS];
        load_packs(row, p, blockDim.x, pack);
        int count = 0;
#pragma unroll
        for (int j = 0; j < LOADS; ++j) count += row.count(p + j * blockDim.x);
        const float mean = sum_of(pack) / count;
        const Moments more = {static_cast<float>(count), mean, squares_of(row, p, blockDim.x, pack, mean)};
        moments = Merge()(moments, more);
    }
    return moments;
}

template <typename T, bool ALIGNED>
__device__ __forceinline__ void write_row(const rows::Row<T, ALIGNED>& row, const T* __restrict__ gamma,
                                          const T* __restrict__ beta, T* out, float mean, float scale) {
    for (int p = threadIdx.x; p < row.packs(); p += LOADS * blockDim.x) {
        rows::Pack<T> pack[LOADS];
        load_packs(row, p, blockDim.x, pack);
        write_packs(row, gamma, beta, out, p, blockDim.x, pack, mean, scale);
    }
}

// One block of THREADS threads per row.
template <typename T, bool ALIGNED, int THREADS>
__global__ void __launch_bounds__(THREADS) layernorm_vectorized(const Layer<T> layer) {
    __shared__ Moments part[32];
    const rows::Row<T, ALIGNED> row(layer.x, blockIdx.x, layer.columns);
    const Moments moments = rows::over_block(read_row(row), no_elements(), part, Merge());
    const float scale = scale_of(moments.squares, layer.columns, layer.epsilon);
    write_row(row, layer.gamma, layer.beta, layer.out(blockIdx.x), moments.mean, scale);
}

template <int THREADS = 512, typename T>
void launch_two_reads(const Layer<T>& layer, cudaStream_t stream) {
    const auto kernel =
        layer.is_aligned() ? layernorm_vectorized<T, true, THREADS> : layernorm_vectorized<T, false, THREADS>;
    kernel<<<layer.row_count, THREADS, 0, stream>>>(layer);
}

}  // namespace
