// What the threads of a row combine: the largest logit and the sum of exponentials relative to it. See online.cu.
#pragma once

#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>

#include "rows.cuh"

namespace {

// e^x; 0 where the result is below 2^-126. One multiplication and one instruction of the special function unit.
__device__ __forceinline__ float exponential(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504f));
    return result;
}

// The sum of e^(x - max) over some logits x.
struct Pair {
    float max, sum;
};

constexpr float LOWEST = -FLT_MAX;  // not -inf: the difference of two such maxima must be 0, not NaN

__device__ __forceinline__ Pair no_logits() { return {LOWEST, 0.0f}; }

struct Combine {
    __device__ __forceinline__ Pair operator()(Pair a, Pair b) const {
        const float max = fmaxf(a.max, b.max);
        return {max, a.sum * exponential(a.max - max) + b.sum * exponential(b.max - max)};
    }
};

__device__ __forceinline__ Pair other_lane(Pair pair, int distance) {
    return {rows::other_lane(pair.max, distance), rows::other_lane(pair.sum, distance)};
}

// Packs first, first + step, ... of a row; -inf, which changes no pair, where there is no column.
template <typename T, bool ALIGNED, int PACKS>
__device__ __forceinline__ void load_packs(const rows::Row<T, ALIGNED>& row, int first, int step,
                                           rows::Pack<T> (&pack)[PACKS]) {
#pragma unroll
    for (int j = 0; j < PACKS; ++j) pack[j] = row.load(first + j * step, -INFINITY);
}

template <typename T, int PACKS>
__device__ __forceinline__ Pair pair_of(const rows::Pack<T> (&pack)[PACKS]) {
    Pair pair = no_logits();
#pragma unroll
    for (int j = 0; j < PACKS; ++j) pair.max = fmaxf(pair.max, pack[j].max());
#pragma unroll
    for (int j = 0; j < PACKS; ++j)
#pragma unroll
        for (int i = 0; i < rows::Pack<T>::SIZE; ++i) pair.sum += exponential(pack[j][i] - pair.max);
    return pair;
}

// Writes the results of packs first, first + step, ... to the row `out`; `pair` is that of the whole row.
template <typename T, bool ALIGNED, int PACKS>
__device__ __forceinline__ void write_packs(const rows::Row<T, ALIGNED>& row, T* out, int first, int step,
                                            const rows::Pack<T> (&pack)[PACKS], Pair pair) {
    const float scale = __fdividef(1.0f, pair.sum);
#pragma unroll
    for (int j = 0; j < PACKS; ++j) {
        float value[rows::Pack<T>::SIZE];
#pragma unroll
        for (int i = 0; i < rows::Pack<T>::SIZE; ++i) value[i] = exponential(pack[j].again(i) - pair.max) * scale;
        row.store(out, first + j * step, value);
    }
}

}  // namespace
