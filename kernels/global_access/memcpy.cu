// memcpy: the runtime's own copy, cudaMemcpyAsync within the device.
//
// Idea         What everybody calls instead of writing a kernel: the driver chooses how the bytes are moved.
// Expected     Between `coalesced` and the peak bandwidth.
// Cost         None.
// Constraints  Any n >= 1, any alignment. No kernel that a profiler could count: nsys shows a copy, ncu nothing.
// Source       NVIDIA, CUDA Runtime API, cudaMemcpyAsync.

#include <cuda_runtime.h>

extern "C" int launch(const float* in, float* out, int n, cudaStream_t stream) {
    return cudaMemcpyAsync(out, in, sizeof(float) * static_cast<size_t>(n), cudaMemcpyDeviceToDevice, stream);
}
