// grid_stride: a fixed grid goes over the array, however long it is.
//
// Idea         As many blocks as the GPU holds at once, and no more: a thread takes element i, then i + (threads of the
//              grid), and so on. The accesses of a warp coalesce as before; the cost of starting a block, and of the
//              indices, is paid once a thread, not once an element; unrolled by the compiler, the loop has several
//              loads in flight; and the kernel is right for any n and any grid.
// Expected     As fast as one thread an element, for any n; faster where blocks are so short that starting them shows.
// Cost         A loop with a branch; no tail of short blocks, but all blocks must end together to be well balanced.
// Constraints  Any n >= 1, any alignment.
// Source       M. Harris, developer.nvidia.com/blog/cuda-pro-tip-write-flexible-kernels-grid-stride-loops.

#include <cuda_runtime.h>

#include <algorithm>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");

__global__ void __launch_bounds__(BLOCK)
    vector_add_grid_stride(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                           int n) {
    // Signed on purpose: an unsigned index may wrap, and the compiler would not unroll, one load in flight a thread.
    const long long step = gridDim.x * BLOCK;
    for (long long i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += step) out[i] = x[i] + y[i];
}

extern "C" int launch(const float* x, const float* y, float* out, int n, cudaStream_t stream) {
    int device = 0, sms = 0, threads = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    if (error != cudaSuccess) return error;
    const int blocks = std::min((n - 1) / BLOCK + 1, sms * std::max(1, threads / BLOCK));
    vector_add_grid_stride<<<blocks, BLOCK, 0, stream>>>(x, y, out, n);
    return cudaGetLastError();
}
