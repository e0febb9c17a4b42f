// Two kernels for the SASS reader's tests: vector loads, predicates, and the padding after an empty body.
extern "C" __global__ void empty() {}
extern "C" __global__ void wide(float4* out, const float4* __restrict__ in, int n) {
    extern __shared__ float4 buffer[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) buffer[threadIdx.x] = __ldg(in + i);
    __syncthreads();
    if (i < n) out[i] = buffer[threadIdx.x ^ 1];
}
