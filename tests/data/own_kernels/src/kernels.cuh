// Declares the kernels that another source defines and launches.
#pragma once

#include <cuComplex.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

struct Inputs {
    const __nv_fp8_e4m3* e4;
    const __nv_fp8_e5m2* e5;
    const signed char* i8;
    const unsigned char* u8;
    const short* i16;
    const bool* mask;
};

__device__ inline float added(const Inputs& in, int i) {
    return static_cast<float>(in.e4[i]) + static_cast<float>(in.e5[i]) + in.i8[i] + in.u8[i] + in.i16[i] +
           (in.mask[i] ? 1.0f : 0.0f);
}

int launch_both(Inputs in, const cuFloatComplex* z, float* scratch, float* sum, __nv_fp8_e4m3* narrow,
                cuFloatComplex* square, bool* positive, int n, cudaStream_t stream);
