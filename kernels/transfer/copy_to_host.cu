// copy_to_host: one cudaMemcpyAsync from the device to host memory.
//
// Idea         The same as copy_to_device in the other direction, through the other copy engine: a GPU sends and
//              receives at the same time.
// Expected     Pinned: the bandwidth of the bus. Pageable: less, since the CPU copies every byte once more.
// Cost         As copy_to_device.
// Constraints  `source` on the device, `target` in host memory; any n >= 1. With pageable memory the call returns when
//              the bytes have arrived.
// Source       CUDA C++ Best Practices Guide, data transfer between host and device.

#include <cuda_runtime.h>

extern "C" int launch(const float* source, float* target, int n, cudaStream_t stream) {
    return cudaMemcpyAsync(target, source, sizeof(float) * static_cast<size_t>(n), cudaMemcpyDeviceToHost, stream);
}
