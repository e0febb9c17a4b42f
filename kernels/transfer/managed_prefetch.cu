// managed_prefetch, managed_fault: the pages of managed memory move to the device, on request or when a kernel needs
// them.
//
// Idea         Managed memory has one address on both sides, and its pages lie on one of them. A kernel that reads a
//              page on the other side stops (a page fault), and the driver moves the page and its neighbours.
//              managed_prefetch (PREFETCH = 1) requests all pages before the kernel starts, and the copy engine moves
//              them in large pieces. managed_fault (PREFETCH = 0) leaves it to faults. Both first send the pages back
//              to the host, where the next launch finds them: their difference is what faults cost.
// Expected     managed_prefetch: little more than two pinned copies, there and back. managed_fault: tens of
//              microseconds more for each 2 MiB, the largest page.
// Cost         Faults are handled by the driver on the host, in batches, while warps wait.
// Constraints  `source` in managed memory on a GPU that can fault (Pascal or later, Linux), `target` on the device; any
//              n >= 1, any alignment.
// Source       N. Sakharnykh, developer.nvidia.com/blog/maximizing-unified-memory-performance-cuda; Deep dive 02, CUDA
//              programming.

#include <cuda_runtime.h>

#include "kernel_copy.cuh"

extern "C" int launch(const float* source, float* target, int n, cudaStream_t stream) {
    int device = 0;
    cudaError_t error = cudaGetDevice(&device);
    const size_t count = static_cast<size_t>(n), bytes = sizeof(float) * count;
    const cudaMemLocation host = {cudaMemLocationTypeHost, 0}, here = {cudaMemLocationTypeDevice, device};
    if (error == cudaSuccess) error = cudaMemPrefetchAsync(source, bytes, host, 0, stream);
    if (error == cudaSuccess && PREFETCH) error = cudaMemPrefetchAsync(source, bytes, here, 0, stream);
    return error == cudaSuccess ? copy_by_kernel(source, target, count, stream) : error;
}
