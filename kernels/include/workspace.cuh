// Device memory that a launcher keeps between calls: partial sums, flags of tiles, the temporary storage of CUB.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <mutex>

// Internal to each shared object that includes this: two variants loaded into one process share nothing.
namespace {

// `bytes` of device memory on 256 bytes, on the current device. Allocated at the first call, also within a stream
// capture, and again only where a later call wants more. Nothing is ever freed: launches under way and graphs may still
// use what an earlier call got. One stream at a time: streams that run side by side would share the memory.
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
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // a capture under way must bear the allocation
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
