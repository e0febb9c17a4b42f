// pipeline: an array goes to the device, through a kernel and back, in CHUNKS pieces on STREAMS streams.
//
// Idea         A GPU has an engine for copies to the device, one for copies to the host, and its SMs. In one stream they
//              take turns. Piece c goes through stream c % STREAMS: while the SMs work on it, one engine brings piece
//              c + 1 and the other takes piece c - 1 back. With three streams all three can be busy.
// Expected     From the sum of the three times down to the largest of them, plus two pieces' time to fill and to drain;
//              two streams leave one of the three engines idle at any time. Pieces in one stream bring nothing.
// Cost         Host arrays in pinned memory (copies of pageable memory wait); three calls a piece; small pieces copy
//              below the bus' speed.
// Constraints  Any n >= 1. x and y in pinned host memory. One stream at a time: the device's copy of the array is kept
//              between calls, and so are streams and events, which belong to the first caller's device.
// Source       M. Harris, developer.nvidia.com/blog/how-overlap-data-transfers-cuda-cc; CUDA Deep Dive 02 [D].

#include <cuda_runtime.h>

#include "workspace.cuh"

constexpr float DECAY = 0.999f, GAIN = 0.001f;  // x stays in [-1, 1] and is not forgotten within some 1000 rounds

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block is whole warps, 1024 threads at most");
static_assert(STREAMS >= 1 && STREAMS <= 16 && CHUNKS >= 1, "at least one stream and one piece");

// In place: `rounds` dependent multiply-adds an element, so that the kernel lasts about as long as a copy.
__global__ void __launch_bounds__(BLOCK) overlap_rounds(float* data, size_t n, int rounds) {
    const size_t i = blockIdx.x * size_t(BLOCK) + threadIdx.x;
    if (i >= n) return;
    float value = data[i];
#pragma unroll 8
    for (int round = 0; round < rounds; ++round) value = fmaf(value, DECAY, GAIN);
    data[i] = value;
}

namespace {

// The streams, made at the first call, and the events that tie them to the caller's stream.
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

cudaError_t one_piece(const float* x, float* y, float* data, size_t count, int rounds, cudaStream_t stream) {
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
            error = one_piece(x + first, y + first, data + first, last - first, rounds, lanes.streams[c % STREAMS]);
    }
    // Joined on every path: a capture under way must not be left with a branch that never comes back.
    for (int s = 0; s < STREAMS; ++s) {
        cudaError_t joined = cudaEventRecord(lanes.ended[s], lanes.streams[s]);
        if (joined == cudaSuccess) joined = cudaStreamWaitEvent(stream, lanes.ended[s], 0);
        if (error == cudaSuccess) error = joined;
    }
    return error;
}
