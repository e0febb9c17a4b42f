// grid_stride: a fixed grid walks through an array of any length.
//
// Idea         The grid has as many blocks as the GPU holds at once, and no more: a thread takes element i, then i +
//              (threads of the grid), and so on. The accesses of a warp are coalesced as before. The cost of starting a
//              block and of the indices is paid once per thread instead of once per element; the loop, unrolled by the
//              compiler, has several loads in flight; and the kernel is correct for any n and any grid.
// Expected     As fast as one thread per element, for any n; faster where blocks are so short that starting them takes
//              noticeable time.
// Cost         A loop with a branch. No further blocks start when one ends, so that a slow block delays the end of the
//              kernel.
// Constraints  Any n >= 1, any alignment.
// Source       M. Harris, developer.nvidia.com/blog/cuda-pro-tip-write-flexible-kernels-grid-stride-loops.

#include <cuda_runtime.h>

#include <algorithm>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

__global__ void __launch_bounds__(BLOCK)
    vector_add_grid_stride(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                           int n) {
    // Signed on purpose: since an unsigned index may wrap, the compiler would not unroll, and only one x and one y of a
    // thread would be in flight.
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
