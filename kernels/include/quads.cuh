// Four neighbouring floats at a time, from and to global memory, also if fewer than four are left.
#pragma once

#include <cuda_runtime.h>

// Internal to each shared object, as in workspace.cuh.
namespace {

// The first `count` of four neighbouring floats, the rest zero; WIDE: `count` is at least 4, or nothing is read.
template <bool WIDE>
__device__ __forceinline__ float4 load_quad(const float* __restrict__ from, int count) {
    float4 quad = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if constexpr (WIDE) {
        if (count > 0) quad = *reinterpret_cast<const float4*>(from);
    } else {
        if (count > 0) quad.x = from[0];
        if (count > 1) quad.y = from[1];
        if (count > 2) quad.z = from[2];
        if (count > 3) quad.w = from[3];
    }
    return quad;
}

template <bool WIDE>
__device__ __forceinline__ void store_quad(float* to, int count, float4 quad) {
    if constexpr (WIDE) {
        if (count > 0) *reinterpret_cast<float4*>(to) = quad;
    } else {
        if (count > 0) to[0] = quad.x;
        if (count > 1) to[1] = quad.y;
        if (count > 2) to[2] = quad.z;
        if (count > 3) to[3] = quad.w;
    }
}

__device__ __forceinline__ void add_quad(float4& sum, float4 quad) {
    sum.x += quad.x;
    sum.y += quad.y;
    sum.z += quad.z;
    sum.w += quad.w;
}

}  // namespace
