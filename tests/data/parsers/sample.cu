// Small kernels for the parsers' tests: a plain one, a template, a called function, spills, static and dynamic shared memory.
#include <cuda_fp16.h>
template <int N, typename T>
__global__ void scale(T* data, T factor) {
    __shared__ T tile[N];
    int i = blockIdx.x * N + threadIdx.x;
    tile[threadIdx.x] = data[i];
    __syncthreads();
    data[i] = tile[N - 1 - threadIdx.x] * factor;
}
template __global__ void scale<256, float>(float*, float);
template __global__ void scale<128, double>(double*, double);

__noinline__ __device__ float poly(const float* c, float x, int n) {
    float y = 0.0f;
    for (int k = 0; k < n; ++k) y = y * x + c[k];
    return y;
}
namespace demo {
__global__ void horner(float* out, const float* c, int n) { out[threadIdx.x] = poly(c, out[threadIdx.x], n); }
}

extern "C" __global__ void crowded(float* out, const float* in, int n) {
    float acc[64];
    for (int k = 0; k < 64; ++k) acc[k] = in[k * n + threadIdx.x];
    for (int r = 0; r < n; ++r)
        for (int k = 0; k < 64; ++k) acc[k] = acc[k] * acc[(k + 7) % 64] + in[r];
    for (int k = 0; k < 64; ++k) out[k * n + threadIdx.x] = acc[k];
}
extern "C" __global__ void empty() {}
extern "C" __global__ void wide(float4* out, const float4* __restrict__ in, int n) {
    extern __shared__ float4 buffer[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    buffer[threadIdx.x] = __ldg(in + i);
    __syncthreads();
    float4 v = buffer[threadIdx.x ^ 1];
    v.x = fmaf(v.x, v.y, v.z);
    out[i] = v;
}
