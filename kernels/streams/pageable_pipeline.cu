// pageable_pipeline, pinned_pipeline: chunks go to the device, through a kernel and back, in three streams.
//
// Idea         Three streams keep both copy engines and the SMs busy at the same time, if the calls that start the work
//              return before it is done. From and to pinned memory they do. From pageable memory, the host first copies
//              the data into a pinned buffer of the driver; to pageable memory, the call returns when the data have
//              arrived. Then nothing is left to overlap: no call for the next chunk is made until then.
// Expected     pinned_pipeline: little more than the longest of the three times. pageable_pipeline: their sum, with the
//              bandwidth of pageable copies; less than a fifth of the copy time is hidden.
// Cost         Pinned memory is taken from the operating system, and allocating it is expensive.
// Constraints  Any n >= 1; x and y in host memory. With pageable memory the launcher waits for its streams, so it
//              cannot be queued behind a blocked stream. One caller at a time: the array on the device is kept between
//              calls.
// Source       M. Harris, developer.nvidia.com/blog/how-overlap-data-transfers-cuda-cc; Deep dive 02, CUDA programming.

#include <cuda_runtime.h>

#include "lanes.cuh"
#include "workspace.cuh"

static_assert(CHUNKS >= 1, "at least one chunk");

constexpr size_t MANY_BLOCKS = 1u << 20;  // one element per thread

static cudaError_t one_chunk(const unsigned* x, unsigned* y, unsigned* data, size_t count, int rounds,
                             cudaStream_t stream) {
    const size_t bytes = sizeof(unsigned) * count;
    cudaError_t error = cudaMemcpyAsync(data, x, bytes, cudaMemcpyHostToDevice, stream);
    if (error == cudaSuccess) error = start_rounds(data, data, count, rounds, MANY_BLOCKS, stream);
    if (error == cudaSuccess) error = cudaMemcpyAsync(y, data, bytes, cudaMemcpyDeviceToHost, stream);
    return error;
}

extern "C" int launch(const unsigned* x, unsigned* y, int n, int rounds, cudaStream_t stream) {
    static const Lanes<3> lanes(cudaStreamNonBlocking);
    const size_t count = static_cast<size_t>(n);
    void* memory = nullptr;
    cudaError_t error = workspace(sizeof(unsigned) * count, &memory);
    if (error != cudaSuccess) return error;
    unsigned* data = static_cast<unsigned*>(memory);
    // [excerpt]
    error = lanes.fork(stream);
    for (size_t c = 0; c < CHUNKS && error == cudaSuccess; ++c) {
        const size_t first = count * c / CHUNKS, last = count * (c + 1) / CHUNKS;
        if (first < last) error = one_chunk(x + first, y + first, data + first, last - first, rounds, lanes[c]);
    }
    return lanes.join(stream, error);
    // [/excerpt]
}
