// copy_to_device: one cudaMemcpyAsync from host memory to the device.
//
// Idea         The copy engine moves the bytes. From pinned memory it reads by itself (DMA), while the host and the SMs
//              do other work. The operating system may move pageable memory, so the driver first copies it, piece by
//              piece, into its own pinned memory, and the call returns only then.
// Expected     Pinned: the bandwidth of the bus, 55 GB/s on an H200 behind PCIe 5, from about 1 MiB on. Pageable: a
//              third of that on the same machine.
// Cost         Pinned memory is taken from the operating system, and allocating it is expensive.
// Constraints  `source` in host memory, `target` on the device; any n >= 1. With pageable memory the launcher waits for
//              the stream, so it can neither be captured in a graph nor queued behind a blocked stream.
// Source       CUDA C++ Best Practices Guide, data transfer between host and device; Deep dive 02, CUDA programming.

#include <cuda_runtime.h>

extern "C" int launch(const float* source, float* target, int n, cudaStream_t stream) {
    return cudaMemcpyAsync(target, source, sizeof(float) * static_cast<size_t>(n), cudaMemcpyHostToDevice, stream);
}
