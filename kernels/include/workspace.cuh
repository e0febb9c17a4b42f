// Device memory that a launcher keeps between calls, for partial sums, flags of tiles, or the temporary storage of CUB.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <mutex>

// Internal to each shared object that includes this: two variants loaded into one process share nothing.
namespace {

// `bytes` of device memory, aligned to 256 bytes, on the current device. Allocated at the first call, also during
// stream capture, and again only if a later call requests more. Nothing is freed, since launches in flight and graphs
// may still use the memory of an earlier call. One stream at a time: concurrent streams would share the memory.
inline cudaError_t workspace(size_t bytes, void** memory) {
    constexpr int MAX_DEVICES = 64;
    struct Held {
        void* memory;
        size_t bytes;
    };
    static Held held[MAX_DEVICES] = {};
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    int device = 0;
    const cudaError_t asked = cudaGetDevice(&device);
    if (asked != cudaSuccess) return asked;
    if (device >= MAX_DEVICES) return cudaErrorInvalidDevice;
    if (held[device].bytes < bytes) {
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // allows allocation during a capture
        cudaThreadExchangeStreamCaptureMode(&mode);
        void* fresh = nullptr;
        const cudaError_t error = cudaMalloc(&fresh, bytes);
        cudaThreadExchangeStreamCaptureMode(&mode);
        if (error != cudaSuccess) return error;
        held[device] = {fresh, bytes};
    }
    *memory = held[device].memory;
    return cudaSuccess;
}

}  // namespace
