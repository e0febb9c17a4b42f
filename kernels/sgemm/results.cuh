// C = alpha * A B + beta * C, four neighbouring columns at a time.
#pragma once

#include <cuda_runtime.h>

#include "alignment.cuh"
#include "quads.cuh"

// Internal to each shared object, as in workspace.cuh.
namespace {
namespace sgemm {

// For the first `count` of four columns, of which `sum` holds A B.
template <bool WIDE>
__device__ __forceinline__ void finish_quad(float* c, int count, float4 sum, float alpha, float beta) {
    float4 result = make_float4(alpha * sum.x, alpha * sum.y, alpha * sum.z, alpha * sum.w);
    if (beta != 0.0f) {  // with beta == 0, C may hold NaN: not read
        const float4 old = load_quad<WIDE>(c, count);
        result.x += beta * old.x;
        result.y += beta * old.y;
        result.z += beta * old.z;
        result.w += beta * old.w;
    }
    store_quad<WIDE>(c, count, result);
}

// Whether every row of the three matrices is aligned to 16 bytes, so that one instruction can move four floats.
inline bool rows_on_16_bytes(const float* A, const float* B, const float* C, int N, int K) {
    return K % 4 == 0 && N % 4 == 0 && on_16_bytes(A) && on_16_bytes(B) && on_16_bytes(C);
}

}  // namespace sgemm
}  // namespace
