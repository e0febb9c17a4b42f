// What the threads of a row combine: sums, or the count, mean and squared deviations of their parts. See welford.cu.
#pragma once

#include <cuda_runtime.h>

#include "rows.cuh"

namespace {

// Of some elements: how many, their mean, and the sum of the squares of their differences from it.
struct Moments {
    float count, mean, squares;
};

__device__ __forceinline__ Moments no_elements() { return {0.0f, 0.0f, 0.0f}; }

struct Merge {
    __device__ __forceinline__ Moments operator()(Moments a, Moments b) const {
        const float count = a.count + b.count, delta = b.mean - a.mean;
        const float share = count > 0.0f ? __fdividef(b.count, count) : 0.0f;  // counts are below 2^126
        return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share};
    }
};

__device__ __forceinline__ Moments other_lane(Moments moments, int distance) {
    return {rows::other_lane(moments.count, distance), rows::other_lane(moments.mean, distance),
            rows::other_lane(moments.squares, distance)};
}

__device__ __forceinline__ float square(float x) { return x * x; }

// What each element is multiplied by once the mean is subtracted; `squares` is that of the whole row.
__device__ __forceinline__ float scale_of(float squares, int columns, float epsilon) {
    return rsqrtf(squares / columns + epsilon);
}

// Packs first, first + step, ... of a row; 0 where there is no column.
template <typename T, bool ALIGNED, int PACKS>
__device__ __forceinline__ void load_packs(const rows::Row<T, ALIGNED>& row, int first, int step,
                                           rows::Pack<T> (&pack)[PACKS]) {
#pragma unroll
    for (int j = 0; j < PACKS; ++j) pack[j] = row.load(first + j * step, 0.0f);
}

template <typename T, int PACKS>
__device__ __forceinline__ float sum_of(const rows::Pack<T> (&pack)[PACKS]) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < PACKS; ++j)
#pragma unroll
        for (int i = 0; i < rows::Pack<T>::SIZE; ++i) sum += pack[j][i];
    return sum;
}

// The squares of the differences from `mean` of the elements in packs first, first + step, ... of a row.
template <typename T, bool ALIGNED, int PACKS>
__device__ __forceinline__ float squares_of(const rows::Row<T, ALIGNED>& row, int first, int step,
                                            const rows::Pack<T> (&pack)[PACKS], float mean) {
    float squares = 0.0f;
#pragma unroll
    for (int j = 0; j < PACKS; ++j) {
        const int p = first + j * step;
        if (row.is_whole(p)) {
#pragma unroll
            for (int i = 0; i < rows::Pack<T>::SIZE; ++i) squares += square(pack[j].again(i) - mean);
        } else if (!ALIGNED) {
#pragma unroll
            for (int i = 0; i < rows::Pack<T>::SIZE; ++i)
                if (row.holds(p, i)) squares += square(pack[j].again(i) - mean);
        }
    }
    return squares;
}

// Writes the results of packs first, first + step, ... to the row `out`.
template <typename T, bool ALIGNED, int PACKS>
__device__ __forceinline__ void write_packs(const rows::Row<T, ALIGNED>& row, const T* __restrict__ gamma,
                                            const T* __restrict__ beta, T* out, int first, int step,
                                            const rows::Pack<T> (&pack)[PACKS], float mean, float scale) {
#pragma unroll
    for (int j = 0; j < PACKS; ++j) {
        const int p = first + j * step;
        const rows::Pack<T> factor = row.load_from(gamma, p, 0.0f), summand = row.load_from(beta, p, 0.0f);
        float value[rows::Pack<T>::SIZE];
#pragma unroll
        for (int i = 0; i < rows::Pack<T>::SIZE; ++i)
            value[i] = (pack[j].again(i) - mean) * scale * factor[i] + summand[i];
        row.store(out, p, value);
    }
}

}  // namespace
