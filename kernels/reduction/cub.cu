// cub: the baseline, cub::DeviceReduce::Sum.
//
// Idea         NVIDIA's own reduction, tuned for each architecture: two launches, wide loads, work divided evenly among
//              blocks.
// Expected     The bandwidth of reading for arrays much larger than L2.
// Cost         Temporary storage, allocated at the first launch and kept.
// Constraints  Any n >= 1, any alignment. Requires the headers of CUB, which come with nvcc (PyPI: nvidia-cuda-cccl).
//              One stream at a time.
// Source       nvidia.github.io/cccl/unstable/cub (DeviceReduce); D. Merrill.

#include <cuda_runtime.h>

#include <cub/device/device_reduce.cuh>

#include "workspace.cuh"

extern "C" int library_version() { return CUB_VERSION; }

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    size_t bytes = 0;
    cudaError_t error = cub::DeviceReduce::Sum(nullptr, bytes, x, out, n, stream);
    void* memory = nullptr;
    if (error == cudaSuccess) error = workspace(bytes, &memory);
    if (error != cudaSuccess) return error;
    return cub::DeviceReduce::Sum(memory, bytes, x, out, n, stream);
}
