// staged_pinned: the launcher copies pageable memory into pinned buffers, piece by piece.
//
// Idea         What the driver does for pageable memory, done by the launcher: the host copies a piece into one of two
//              pinned buffers while the copy engine reads the other. The pieces are PIECE_KIB KiB; the driver does not
//              document the size of its own.
// Expected     Bound by the host, which reads and writes every byte with one thread: as fast as pageable copies by the
//              driver, far from a copy from pinned memory.
// Cost         Two pinned buffers, kept between calls; a thread of the host is busy all the time.
// Constraints  `source` in host memory, `target` on the device; any n >= 1. The launcher waits for its stream. One
//              caller at a time.
// Source       CUDA C++ Best Practices Guide, pinned memory; Deep dive 02, CUDA programming.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

constexpr size_t PIECE = size_t(PIECE_KIB) << 10;

namespace {

// Two buffers, and an event for each that the copy from it has ended; created at the first call.
struct Stage {
    char* buffers[2] = {};
    cudaEvent_t emptied[2] = {};
    cudaError_t error = cudaSuccess;

    Stage() {
        for (int i = 0; i < 2 && error == cudaSuccess; ++i) {
            error = cudaHostAlloc(&buffers[i], PIECE, cudaHostAllocDefault);
            if (error == cudaSuccess) error = cudaEventCreateWithFlags(&emptied[i], cudaEventDisableTiming);
        }
    }
};

}  // namespace

extern "C" int launch(const float* source, float* target, int n, cudaStream_t stream) {
    static Stage stage;
    cudaError_t error = stage.error;
    const char* from = reinterpret_cast<const char*>(source);
    char* to = reinterpret_cast<char*>(target);
    const size_t bytes = sizeof(float) * static_cast<size_t>(n);
    for (size_t at = 0, piece = 0; at < bytes && error == cudaSuccess; at += PIECE, ++piece) {
        const size_t count = std::min(PIECE, bytes - at);
        char* buffer = stage.buffers[piece % 2];
        error = cudaEventSynchronize(stage.emptied[piece % 2]);  // at once if it was never recorded
        if (error != cudaSuccess) break;
        std::memcpy(buffer, from + at, count);
        error = cudaMemcpyAsync(to + at, buffer, count, cudaMemcpyHostToDevice, stream);
        if (error == cudaSuccess) error = cudaEventRecord(stage.emptied[piece % 2], stream);
    }
    return error;
}
