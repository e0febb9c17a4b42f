// pipeline: an array goes to the device, through a kernel and back, in CHUNKS chunks on STREAMS streams.
//
// Idea         A GPU has one engine for copies to the device, one for copies to the host, and its SMs. In one stream
//              they take turns. Chunk c uses stream c % STREAMS: while the SMs process it, one engine copies chunk c +
//              1 to the device and the other copies chunk c - 1 back. With three streams all three can be busy.
// Expected     At most the sum of the three times; at best the largest of them, plus the time of two chunks to fill and
//              drain the pipeline. Two streams leave one of the three engines idle at any time. Chunks in one stream
//              gain nothing.
// Cost         Host arrays must be pinned, since the host waits for copies of pageable memory; three calls per chunk;
//              small chunks do not reach the bandwidth of the bus.
// Constraints  Any n >= 1. x and y in pinned host memory. One caller at a time: the array on the device, streams and
//              events are kept between calls, on the device of the first caller.
// Source       M. Harris, developer.nvidia.com/blog/how-overlap-data-transfers-cuda-cc; Deep dive 02, CUDA programming.

#include <cuda_runtime.h>

#include "workspace.cuh"

// x stays in [-1, 1], and its initial value still matters after 1000 rounds.
constexpr float DECAY = 0.999f, GAIN = 0.001f;

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");
static_assert(STREAMS >= 1 && STREAMS <= 16 && CHUNKS >= 1, "at least one stream and one chunk");

// In place: `rounds` dependent multiply-adds per element, so that the kernel takes about as long as a copy.
__global__ void __launch_bounds__(BLOCK) overlap_rounds(float* data, size_t n, int rounds) {
    const size_t i = blockIdx.x * size_t(BLOCK) + threadIdx.x;
    if (i >= n) return;
    float value = data[i];
#pragma unroll 8
    for (int round = 0; round < rounds; ++round) value = fmaf(value, DECAY, GAIN);
    data[i] = value;
}

namespace {

// The streams, created at the first call, and the events that synchronise them with the stream of the caller.
struct Lanes {
    cudaStream_t streams[STREAMS] = {};
    cudaEvent_t begun = nullptr, ended[STREAMS] = {};
    cudaError_t error = cudaSuccess;

    Lanes() {
        error = cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
        for (int s = 0; s < STREAMS && error == cudaSuccess; ++s) {
            error = cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking);
            if (error == cudaSuccess) error = cudaEventCreateWithFlags(&ended[s], cudaEventDisableTiming);
        }
    }
};

cudaError_t one_chunk(const float* x, float* y, float* data, size_t count, int rounds, cudaStream_t stream) {
    const size_t bytes = sizeof(float) * count;
    const cudaError_t error = cudaMemcpyAsync(data, x, bytes, cudaMemcpyHostToDevice, stream);
    if (error != cudaSuccess) return error;
    overlap_rounds<<<static_cast<unsigned>((count - 1) / BLOCK + 1), BLOCK, 0, stream>>>(data, count, rounds);
    const cudaError_t launched = cudaGetLastError();
    return launched != cudaSuccess ? launched : cudaMemcpyAsync(y, data, bytes, cudaMemcpyDeviceToHost, stream);
}

}  // namespace

extern "C" int launch(const float* x, float* y, int n, int rounds, cudaStream_t stream) {
    static Lanes lanes;
    void* memory = nullptr;
    cudaError_t error = lanes.error;
    if (error == cudaSuccess) error = workspace(sizeof(float) * static_cast<size_t>(n), &memory);
    if (error == cudaSuccess) error = cudaEventRecord(lanes.begun, stream);
    for (int s = 0; s < STREAMS && error == cudaSuccess; ++s)
        error = cudaStreamWaitEvent(lanes.streams[s], lanes.begun, 0);
    float* data = static_cast<float*>(memory);
    const size_t count = static_cast<size_t>(n);
    for (size_t c = 0; c < CHUNKS && error == cudaSuccess; ++c) {
        const size_t first = count * c / CHUNKS, last = count * (c + 1) / CHUNKS;
        if (first < last)
            error = one_chunk(x + first, y + first, data + first, last - first, rounds, lanes.streams[c % STREAMS]);
    }
    // Joined also after errors, since a capture must not end with an unjoined stream.
    for (int s = 0; s < STREAMS; ++s) {
        cudaError_t joined = cudaEventRecord(lanes.ended[s], lanes.streams[s]);
        if (joined == cudaSuccess) joined = cudaStreamWaitEvent(stream, lanes.ended[s], 0);
        if (error == cudaSuccess) error = joined;
    }
    return error;
}
