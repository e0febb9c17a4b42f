// Streams of a launcher, created once and joined to the stream of its caller, and the kernel that runs in them.
#pragma once

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// The constants of a generator of random numbers (Numerical Recipes). They are arguments of the kernel, since the
// compiler would merge steps of which it knows the numbers.
constexpr unsigned FACTOR = 1664525, INCREMENT = 1013904223;

// The upper 24 bits after `rounds` dependent multiply-adds per element.
__global__ void __launch_bounds__(BLOCK) streams_rounds(const unsigned* x, unsigned* y, size_t n,
                                                        int rounds, unsigned factor, unsigned increment) {
    const size_t step = gridDim.x * size_t(BLOCK);
    for (size_t i = blockIdx.x * size_t(BLOCK) + threadIdx.x; i < n; i += step) {
        unsigned value = x[i];
#pragma unroll 8
        for (int round = 0; round < rounds; ++round) value = value * factor + increment;
        y[i] = value >> 8;
    }
}

// Internal to each shared object that includes this.
namespace {

inline cudaError_t start_rounds(const unsigned* x, unsigned* y, size_t n, int rounds, size_t most_blocks,
                                cudaStream_t stream) {
    const size_t blocks = (n - 1) / BLOCK + 1;
    streams_rounds<<<static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks), BLOCK, 0, stream>>>(
        x, y, n, rounds, FACTOR, INCREMENT);
    return cudaGetLastError();
}

// `Count` streams, and the events that order their work after that of the caller's stream and before what follows in
// it.
template <int Count>
class Lanes {
   public:
    explicit Lanes(unsigned flags) {
        error_ = cudaEventCreateWithFlags(&begun_, cudaEventDisableTiming);
        for (int s = 0; s < Count && error_ == cudaSuccess; ++s) {
            error_ = cudaStreamCreateWithFlags(&streams_[s], flags);
            if (error_ == cudaSuccess) error_ = cudaEventCreateWithFlags(&ended_[s], cudaEventDisableTiming);
        }
    }

    cudaStream_t operator[](size_t number) const { return streams_[number % Count]; }

    // After this, the streams wait for what `stream` contains.
    cudaError_t fork(cudaStream_t stream) const {
        cudaError_t error = error_;
        if (error == cudaSuccess) error = cudaEventRecord(begun_, stream);
        for (int s = 0; s < Count && error == cudaSuccess; ++s) error = cudaStreamWaitEvent(streams_[s], begun_, 0);
        return error;
    }

    // After this, `stream` waits for what the streams contain. Also after errors; returns the first one.
    cudaError_t join(cudaStream_t stream, cudaError_t error) const {
        for (int s = 0; s < Count; ++s) {
            cudaError_t joined = cudaEventRecord(ended_[s], streams_[s]);
            if (joined == cudaSuccess) joined = cudaStreamWaitEvent(stream, ended_[s], 0);
            if (error == cudaSuccess) error = joined;
        }
        return error;
    }

   private:
    cudaStream_t streams_[Count] = {};
    cudaEvent_t begun_ = nullptr, ended_[Count] = {};
    cudaError_t error_ = cudaSuccess;
};

}  // namespace
