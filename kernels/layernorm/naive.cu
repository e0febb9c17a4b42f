// naive: one thread computes one row.
//
// Idea         The definition: a thread reads its row for the mean, again for the squared differences from the mean,
//              and again to write. Neighbouring lanes read neighbouring rows, so that a load of a warp touches 32
//              lines, and few rows leave most of the GPU idle.
// Expected     A few percent of the bandwidth of a copy at 4096 rows; less with fewer rows, down to one busy lane.
// Cost         Three reads, each of 32 sectors per request; no thread shares any work.
// Constraints  At most 32768 columns, since the rounding errors of a serial fp32 sum of more terms exceed the
//              tolerance; any rows and alignment.
// Source       J. Ba, J. Kiros and G. Hinton, Layer normalization, arXiv:1607.06450.

#include <cuda_runtime.h>

#include "moments.cuh"

template <typename T>
__global__ void __launch_bounds__(BLOCK)
    layernorm_naive(const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta,
                    T* __restrict__ y, int row_count, int columns, float epsilon) {
    const int row = blockIdx.x * BLOCK + threadIdx.x;
    if (row >= row_count) return;
    const T* in = x + static_cast<size_t>(row) * columns;
    T* out = y + static_cast<size_t>(row) * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < columns; ++i) sum += rows::to_float(in[i]);
    const float mean = sum / columns;
    for (int i = 0; i < columns; ++i) squares += square(rows::to_float(in[i]) - mean);
    const float scale = scale_of(squares, columns, epsilon);
    for (int i = 0; i < columns; ++i)
        out[i] = rows::from_float<T>((rows::to_float(in[i]) - mean) * scale * rows::to_float(gamma[i]) +
                                     rows::to_float(beta[i]));
}

extern "C" int launch(const void* x, const void* gamma, const void* beta, void* y, int row_count, int columns,
                      int element_bytes, float epsilon, cudaStream_t stream) {
    return rows::by_type(element_bytes, [=](auto zero) {
        using T = decltype(zero);
        layernorm_naive<T><<<(row_count - 1) / BLOCK + 1, BLOCK, 0, stream>>>(
            static_cast<const T*>(x), static_cast<const T*>(gamma), static_cast<const T*>(beta), static_cast<T*>(y),
            row_count, columns, epsilon);
        return cudaGetLastError();
    });
}
