// one_stream, two_streams, legacy_between, nonblocking_with_legacy: two kernels that each fill half of the GPU.
//
// Idea         Each kernel takes half of the elements, with at most 66 blocks. Work in one stream runs in order; work
//              in different streams may run at the same time.
//              one_stream (STREAMS = 1): both kernels in the same stream.
//              two_streams (STREAMS = 2): a stream for each.
//              legacy_between (LEGACY = 1): between the two launches, an empty kernel is launched in the legacy default
//              stream, as by a call without a stream somewhere in a library. It waits for all earlier work in other
//              streams, and later work waits for it.
//              nonblocking_with_legacy (NONBLOCKING = 1): the streams are created with cudaStreamNonBlocking and
//              neither wait for the legacy stream nor it for them.
// Expected     two_streams takes half the time of one_stream; legacy_between as long as one_stream;
//              nonblocking_with_legacy as long as two_streams.
// Cost         Streams and events, created at the first call.
// Constraints  Any n >= 1. A launch in the legacy stream cannot be captured in a graph. One caller at a time.
// Source       CUDA Runtime API, stream synchronization behavior; Deep dive 02, CUDA programming.

#include <cuda_runtime.h>

#include "lanes.cuh"

static_assert(STREAMS == 1 || STREAMS == 2, "two kernels, in one stream or in two");

constexpr size_t BLOCKS_PER_KERNEL = 66;

__global__ void nothing() {}

extern "C" int launch(const unsigned* x, unsigned* y, int n, int rounds, cudaStream_t stream) {
    static const Lanes<STREAMS> lanes(NONBLOCKING ? cudaStreamNonBlocking : cudaStreamDefault);
    const size_t count = static_cast<size_t>(n), half = (count + 1) / 2;
    // [excerpt]
    cudaError_t error = lanes.fork(stream);
    if (error == cudaSuccess) error = start_rounds(x, y, half, rounds, BLOCKS_PER_KERNEL, lanes[0]);
    if (error == cudaSuccess && LEGACY) {
        nothing<<<1, 1, 0, cudaStreamLegacy>>>();
        error = cudaGetLastError();
    }
    if (error == cudaSuccess && count > half)
        error = start_rounds(x + half, y + half, count - half, rounds, BLOCKS_PER_KERNEL, lanes[1]);
    return lanes.join(stream, error);
    // [/excerpt]
}
