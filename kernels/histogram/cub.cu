// cub: the baseline, cub::DeviceHistogram::HistogramEven.
//
// Idea         NVIDIA's own histogram of bins of equal width: privatized in shared memory, with runs of equal keys
//              counted together before they reach it.
// Expected     With uniform keys, near the bandwidth of reading.
// Cost         Temporary storage, allocated at the first launch and kept; a division or a comparison to find the bin.
// Constraints  Any n >= 1, any alignment. Requires the headers of CUB, which come with nvcc (PyPI: nvidia-cuda-cccl).
//              One stream at a time.
// Source       nvidia.github.io/cccl/unstable/cub (DeviceHistogram); D. Merrill.

#include <cuda_runtime.h>

#include <cub/device/device_histogram.cuh>

#include "workspace.cuh"

constexpr int BINS = 256;

extern "C" int library_version() { return CUB_VERSION; }

extern "C" int launch(const int* keys, unsigned* counts, int n, cudaStream_t stream) {
    size_t bytes = 0;
    void* memory = nullptr;
    cudaError_t error = cub::DeviceHistogram::HistogramEven(memory, bytes, keys, counts, BINS + 1, 0, BINS, n, stream);
    if (error == cudaSuccess) error = workspace(bytes, &memory);
    if (error != cudaSuccess) return error;
    return cub::DeviceHistogram::HistogramEven(memory, bytes, keys, counts, BINS + 1, 0, BINS, n, stream);
}
