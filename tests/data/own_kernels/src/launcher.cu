// The kernels, compiled apart from the launcher that warplog calls.
#include <concepts>

#include "kernels.cuh"

template <std::integral T>
constexpr T blocks(T n) { return (n + BLOCK - 1) / BLOCK; }

__global__ void add(Inputs in, float* scratch, int n) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) scratch[i] = added(in, i);
}

__global__ void convert(const float* scratch, const cuFloatComplex* z, float* sum, __nv_fp8_e4m3* narrow,
                        cuFloatComplex* square, bool* positive, int n) {
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    sum[i] = scratch[i];
    narrow[i] = __nv_fp8_e4m3(scratch[i] / 8);
    square[i] = cuCmulf(z[i], z[i]);
    positive[i] = scratch[i] > 0;
}

int launch_both(Inputs in, const cuFloatComplex* z, float* scratch, float* sum, __nv_fp8_e4m3* narrow,
                cuFloatComplex* square, bool* positive, int n, cudaStream_t stream) {
    add<<<blocks(n), BLOCK, 0, stream>>>(in, scratch, n);
    convert<<<blocks(n), BLOCK, 0, stream>>>(scratch, z, sum, narrow, square, positive, n);
    return cudaGetLastError();
}
