#pragma once

// Returns the sum of a warp's values in lane 0.
__device__ inline float warp_sum(float value) {
    for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_down_sync(0xffffffffu, value, lanes);
    return value;
}
