// cublas: the baseline, the kernel of NVIDIA's library that is fastest at rest for the shape, in bf16 with fp32 sums.
//
// Idea         cublasLt lists the kernels that its heuristics would select, best guess first. The first launch of a
//              shape times each of them in the way in which times at rest are measured: single launches after pauses,
//              in which neither the power limit acts nor L2 holds the operands. The first guess stays unless another
//              kernel is faster by more than 2 %, twice: so the baseline is neither a badly selected kernel nor a
//              different one in each process.
//              The library is column-major, where a row-major matrix is its transpose, so the launcher requests C^T = B
//              A^T. Only B, the library's first operand, is passed as transposed, since K is contiguous in both
//              matrices.
// Expected     756 TFLOP/s at 4096 and 793 at 8192 on an H200.
// Cost         A workspace of 32 MiB per device. The first launch of a shape creates the handle, allocates another
//              256 MiB for as long as it times the candidates, and waits for the device: 0.1 s up to 4096, 0.4 s at
//              8192, about a second at 16384; later ones only launch. Launches of more than 20 ms are not compared:
//              the first guess stays. During stream capture nothing can be timed: a shape that is first launched there
//              uses the first guess, and is timed at a later launch.
// Constraints  Any M, N, K >= 1, any alignment; sums over parts of K are in fp32 too. cuBLAS 12 or newer must be loaded
//              in the process or found by the dynamic linker; otherwise the launch returns
//              cudaErrorSharedObjectInitFailed. One stream at a time: concurrent streams would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasLtMatmul, cublasLtMatmulAlgoGetHeuristic).

#include <cuda_bf16.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>
#include <vector>

#include "cublas_lt.cuh"
#include "workspace.cuh"

using cublas::Status;

constexpr int TRANSPOSE = 1;  // CUBLAS_OP_T
constexpr int MOST_CANDIDATES = 10;
constexpr float TOO_LONG_MS = 20.0f, LONG_MS = 5.0f;  // of one launch
constexpr int LEAST_ROUNDS = 7, LEAST_ROUNDS_IF_LONG = 3;
constexpr std::chrono::milliseconds LEAST_TIME{30};  // the clock of an idle GPU takes up to 25 ms to rise
constexpr size_t L2_BYTES = size_t{128} << 20;       // no GPU has a larger L2

// Without a power limit, the minimum of seven cold launches of the same kernel varies by 1 to 2 %.
constexpr float LEAST_GAIN = 1.02f;

struct Operands {
    const __nv_bfloat16 *A, *B;
    __nv_bfloat16* C;
    int M, N, K;
};

// The largest alignment of all three arrays, up to 256 bytes.
static uint32_t alignment_of(const Operands& on) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(on.A) | reinterpret_cast<uintptr_t>(on.B) |
                           reinterpret_cast<uintptr_t>(on.C) | 256;
    return static_cast<uint32_t>(bits & (~bits + 1));
}

// What a timed launch requires.
struct Stopwatch {
    cudaEvent_t begin = nullptr, end = nullptr;
    char* lines = nullptr;  // 2 * L2_BYTES
    useconds_t pause_us = 200;

    cudaError_t create(cudaStream_t stream) {
        cudaError_t error = cudaEventCreate(&begin);
        if (error == cudaSuccess) error = cudaEventCreate(&end);
        if (error == cudaSuccess) error = cudaMalloc(&lines, 2 * L2_BYTES);
        return error == cudaSuccess ? cudaMemsetAsync(lines, 0, 2 * L2_BYTES, stream) : error;
    }

    ~Stopwatch() {
        if (begin) cudaEventDestroy(begin);
        if (end) cudaEventDestroy(end);
        cudaFree(lines);
    }
};

// The product of one shape on one device: its descriptions for the library, and the kernels that the library proposes.
class Product {
   public:
    cudaError_t launch(const Operands& on, cudaStream_t stream) {
        if (candidates_.empty()) {
            const cudaError_t error = prepare(on);
            if (error != cudaSuccess) return error;
        }
        if (!is_chosen_) {
            cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
            cudaError_t error = cudaStreamIsCapturing(stream, &capture);
            if (error == cudaSuccess && capture == cudaStreamCaptureStatusNone) error = choose(on, stream);
            if (error != cudaSuccess) return error;
        }
        return cublas::as_cuda_error(multiply(candidates_[chosen_], on, stream));
    }

   private:
    Status multiply(const cublas_lt::Heuristic& with, const Operands& on, cudaStream_t stream) const {
        const float alpha = 1.0f, beta = 0.0f;
        return cublas_lt::library().multiply(handle_, operation_, &alpha, on.B, b_, on.A, a_, &beta, on.C, c_, on.C, c_,
                                             &with.algorithm, workspace_, with.workspace_bytes, stream);
    }

    // Requests the candidates. Nothing is destroyed later, since launches in flight and graphs may use it.
    cudaError_t prepare(const Operands& on) {
        const cublas_lt::Library& library = cublas_lt::library();
        if (library.error != cudaSuccess) return library.error;
        cudaError_t error = workspace(cublas::WORKSPACE_BYTES, &workspace_);
        if (error != cudaSuccess) return error;
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // allows allocation during a capture
        cudaThreadExchangeStreamCaptureMode(&mode);
        candidates_.resize(MOST_CANDIDATES);
        int found = 0;
        const Status status = ask(library, on, &found);
        cudaThreadExchangeStreamCaptureMode(&mode);
        candidates_.resize(status == 0 ? found : 0);
        if (status != 0) return cublas::as_cuda_error(status);
        const auto is_invalid = [](const cublas_lt::Heuristic& candidate) { return candidate.state != 0; };
        candidates_.erase(std::remove_if(candidates_.begin(), candidates_.end(), is_invalid), candidates_.end());
        return candidates_.empty() ? cudaErrorNotSupported : cudaSuccess;
    }

    Status ask(const cublas_lt::Library& library, const Operands& on, int* found) {
        cublas_lt::Preference preference = nullptr;
        Status status = library.create(&handle_);
        if (status == 0) status = library.create_operation(&operation_, cublas_lt::COMPUTE_32F, CUDA_R_32F);
        if (status == 0)
            status = library.set_operation(operation_, cublas_lt::TRANSPOSE_A, &TRANSPOSE, sizeof TRANSPOSE);
        if (status == 0) status = library.create_layout(&b_, CUDA_R_16BF, on.K, on.N, on.K);
        if (status == 0) status = library.create_layout(&a_, CUDA_R_16BF, on.K, on.M, on.K);
        if (status == 0) status = library.create_layout(&c_, CUDA_R_16BF, on.N, on.M, on.N);
        if (status == 0) status = library.create_preference(&preference);
        const uint64_t bytes = cublas::WORKSPACE_BYTES;
        if (status == 0)
            status = library.set_preference(preference, cublas_lt::MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
        const uint32_t sums = cublas_lt::SUMS_IN_COMPUTE_TYPE, alignment = alignment_of(on);
        if (status == 0) status = library.set_preference(preference, cublas_lt::REDUCTION_SCHEMES, &sums, sizeof sums);
        for (const int attribute : cublas_lt::MIN_ALIGNMENTS)
            if (status == 0) status = library.set_preference(preference, attribute, &alignment, sizeof alignment);
        if (status == 0)
            status = library.heuristics(handle_, operation_, b_, a_, c_, c_, preference, MOST_CANDIDATES,
                                        candidates_.data(), found);
        return status;
    }

    // Keeps the fastest candidate, or the first if none is faster by more than the noise. Waits for the device.
    cudaError_t choose(const Operands& on, cudaStream_t stream) {
        Stopwatch watch;
        float ms = 0.0f;
        cudaError_t error = watch.create(stream);
        for (int i = 0; error == cudaSuccess && i < 2; ++i)  // the first launch loads the kernel
            error = time(0, on, stream, watch, &ms);
        size_t fastest = 0;
        if (error == cudaSuccess && ms <= TOO_LONG_MS) {
            watch.pause_us = std::max(watch.pause_us, static_cast<useconds_t>(2e3f * ms));
            std::vector<size_t> all(candidates_.size());
            std::iota(all.begin(), all.end(), 0);
            const int least_rounds = ms > LONG_MS ? LEAST_ROUNDS_IF_LONG : LEAST_ROUNDS;
            error = compare(all, least_rounds, on, stream, watch, &fastest);
            if (error == cudaSuccess && fastest != 0)  // again, since one comparison may be disturbed
                error = compare({0, fastest}, least_rounds, on, stream, watch, &fastest);
        }
        chosen_ = fastest;
        is_chosen_ = error == cudaSuccess;
        return error;
    }

    // Finds the fastest of some candidates, of which a later one must be faster by LEAST_GAIN. Each round times every
    // candidate once; the minimum over the rounds is the time at the highest clock, without disturbances.
    cudaError_t compare(const std::vector<size_t>& some, int least_rounds, const Operands& on, cudaStream_t stream,
                        const Stopwatch& watch, size_t* fastest) const {
        std::vector<float> least_ms(candidates_.size(), INFINITY);
        const auto begin = std::chrono::steady_clock::now();
        for (int round = 0; round < least_rounds || std::chrono::steady_clock::now() < begin + LEAST_TIME; ++round) {
            for (const size_t candidate : some) {
                float ms = 0.0f;
                const cudaError_t error = time(candidate, on, stream, watch, &ms);
                if (error != cudaSuccess) return error;
                least_ms[candidate] = std::min(least_ms[candidate], ms);
            }
        }
        *fastest = some.front();
        for (const size_t candidate : some)
            if (LEAST_GAIN * least_ms[candidate] < least_ms[*fastest]) *fastest = candidate;
        return cudaSuccess;
    }

    // Milliseconds of one launch at rest; infinite if the library rejects it. The copy fills L2 with other lines, half
    // of them modified, and every candidate writes some back. The launch is queued while the copy runs.
    cudaError_t time(size_t candidate, const Operands& on, cudaStream_t stream, const Stopwatch& watch,
                     float* ms) const {
        usleep(watch.pause_us);
        cudaError_t error =
            cudaMemcpyAsync(watch.lines, watch.lines + L2_BYTES, L2_BYTES, cudaMemcpyDeviceToDevice, stream);
        if (error == cudaSuccess) error = cudaEventRecord(watch.begin, stream);
        if (error != cudaSuccess) return error;
        const Status status = multiply(candidates_[candidate], on, stream);
        if (status != 0) cudaGetLastError();
        error = cudaEventRecord(watch.end, stream);
        if (error == cudaSuccess) error = cudaEventSynchronize(watch.end);
        if (error == cudaSuccess) error = cudaEventElapsedTime(ms, watch.begin, watch.end);
        if (status != 0) *ms = INFINITY;
        return error;
    }

    cublas_lt::Handle handle_ = nullptr;
    cublas_lt::Operation operation_ = nullptr;
    cublas_lt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr;
    void* workspace_ = nullptr;
    std::vector<cublas_lt::Heuristic> candidates_;
    size_t chosen_ = 0;
    bool is_chosen_ = false;
};

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    using Key = std::tuple<int, int, int, int, uint32_t>;
    static std::mutex mutex;
    static auto* const products = new std::map<Key, Product>;  // kept until the process ends
    const Operands operands = {A, B, C, M, N, K};
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    const std::lock_guard<std::mutex> lock(mutex);
    return (*products)[{device, M, N, K, alignment_of(operands)}].launch(operands, stream);
}
