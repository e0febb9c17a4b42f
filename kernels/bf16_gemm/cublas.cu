// cublas: the baseline, the fastest of what NVIDIA's library has for the shape, in bf16 with fp32 sums.
//
// Idea         cublasLt names the kernels that its heuristics would take, best guess first. The first launch of a shape
//              times them side by side and keeps the fastest: a baseline that nobody can call badly chosen. A burst
//              shows who needs the fewest cycles, and not who can keep his clock under the board's power limit: of
//              large shapes those nearly as fast as the best run for 0.2 s each, and the second half counts. The
//              library is column-major: a row-major matrix read by columns is its transpose, so C^T = B A^T is asked
//              for, and of the two only B (the library's first operand) has to be taken transposed: both have their
//              terms side by side.
// Expected     756 TFLOP/s at 4096 and 793 at 8192 on an H200.
// Cost         A workspace of 32 MiB a device. The first launch of a shape makes the handle, allocates, times and waits
//              for the device, some tens of launches, or up to a second where they are large; later ones only launch.
//              Within a stream capture nothing can be timed: a shape that comes there first gets the first guess, and
//              is timed when it comes again.
// Constraints  Any M, N, K >= 1, any alignment; sums over parts of K are in fp32 too. cuBLAS 12 or newer must be in the
//              process or on the linker's path; without it the launch returns cudaErrorSharedObjectInitFailed. One
//              stream at a time: streams that run side by side would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasLtMatmul, cublasLtMatmulAlgoGetHeuristic).

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "cublas_lt.cuh"
#include "workspace.cuh"

using cublas::Status;

constexpr int TRANSPOSE = 1;  // CUBLAS_OP_T
constexpr int MOST_CANDIDATES = 10;
constexpr int ROUNDS = 3;  // every candidate in each, so that a change of the clock meets all
constexpr float ROUND_MS = 2.0f;
constexpr int MOST_LAUNCHES = 50;
constexpr float LARGE_MS = 0.1f, NEARLY = 1.06f, HALF_MS = 100.0f;  // see sustain

struct Operands {
    const __nv_bfloat16 *A, *B;
    __nv_bfloat16* C;
    int M, N, K;
};

// The most bytes, up to 256, on which all three arrays start.
static uint32_t alignment_of(const Operands& on) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(on.A) | reinterpret_cast<uintptr_t>(on.B) |
                           reinterpret_cast<uintptr_t>(on.C) | 256;
    return static_cast<uint32_t>(bits & (~bits + 1));
}

// The product of one shape on one device: how the library sees it, and the kernels that it names.
class Product {
   public:
    cudaError_t launch(const Operands& on, cudaStream_t stream) {
        if (candidates_.empty()) {
            const cudaError_t error = prepare(on);
            if (error != cudaSuccess) return error;
        }
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        if (!is_timed_) {
            const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
            if (error != cudaSuccess) return error;
        }
        if (!is_timed_ && capture == cudaStreamCaptureStatusNone) {
            const cudaError_t error = choose(on, stream);
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

    // Asks for the candidates. Nothing of this is destroyed: launches under way and graphs may use it.
    cudaError_t prepare(const Operands& on) {
        const cublas_lt::Library& library = cublas_lt::library();
        if (library.error != cudaSuccess) return library.error;
        cudaError_t error = workspace(cublas::WORKSPACE_BYTES, &workspace_);
        if (error != cudaSuccess) return error;
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // a capture under way must bear what this allocates
        cudaThreadExchangeStreamCaptureMode(&mode);
        candidates_.resize(MOST_CANDIDATES);
        int found = 0;
        const Status status = ask(library, on, &found);
        cudaThreadExchangeStreamCaptureMode(&mode);
        candidates_.resize(status == 0 ? found : 0);
        if (status != 0) return cublas::as_cuda_error(status);
        return found > 0 ? cudaSuccess : cudaErrorNotSupported;
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

    // Times the candidates and keeps the fastest. Waits for the device.
    cudaError_t choose(const Operands& on, cudaStream_t stream) {
        cudaEvent_t begin = nullptr, end = nullptr;
        cudaError_t error = cudaEventCreate(&begin);
        if (error == cudaSuccess) error = cudaEventCreate(&end);
        // The first launch loads the kernel; the second says how many fill a round.
        std::vector<int> launches(candidates_.size(), 0);
        std::vector<float> fastest(candidates_.size(), 0.0f);
        for (size_t i = 0; error == cudaSuccess && i < candidates_.size(); ++i) {
            float ms = 0.0f;
            if (candidates_[i].state != 0 || multiply(candidates_[i], on, stream) != 0) {
                cudaGetLastError();  // that one is left out
                continue;
            }
            error = time(candidates_[i], on, stream, 1, begin, end, &ms);
            fastest[i] = ms;
            launches[i] = std::max(1, std::min(MOST_LAUNCHES, static_cast<int>(ROUND_MS / std::max(ms, 1e-3f))));
        }
        for (int round = 0; round < ROUNDS; ++round) {
            for (size_t i = 0; error == cudaSuccess && i < candidates_.size(); ++i) {
                if (launches[i] == 0) continue;
                float ms = 0.0f;
                error = time(candidates_[i], on, stream, launches[i], begin, end, &ms);
                fastest[i] = round == 0 ? ms : std::min(fastest[i], ms);
            }
        }
        const auto keep_fastest = [&] {
            for (size_t i = 0; i < candidates_.size(); ++i)
                if (launches[i] > 0 && (launches[chosen_] == 0 || fastest[i] < fastest[chosen_])) chosen_ = i;
        };
        keep_fastest();
        const float best = fastest[chosen_];
        for (size_t i = 0; error == cudaSuccess && best >= LARGE_MS && i < candidates_.size(); ++i) {
            if (fastest[i] > NEARLY * best) launches[i] = 0;
            if (launches[i] > 0) error = sustain(candidates_[i], on, stream, begin, end, &fastest[i]);
        }
        if (error == cudaSuccess) keep_fastest();
        if (begin) cudaEventDestroy(begin);
        if (end) cudaEventDestroy(end);
        is_timed_ = error == cudaSuccess;
        return error;
    }

    // Milliseconds of one, from a first guess at them, at the clock that its own power leaves it: the limit moves the
    // clock a step each 0.1 s.
    cudaError_t sustain(const cublas_lt::Heuristic& with, const Operands& on, cudaStream_t stream, cudaEvent_t begin,
                        cudaEvent_t end, float* ms) const {
        const int launches = std::max(1, static_cast<int>(HALF_MS / *ms));
        const cudaError_t error = time(with, on, stream, launches, begin, end, ms);
        return error == cudaSuccess ? time(with, on, stream, launches, begin, end, ms) : error;
    }

    // Milliseconds of one of `launches` launches in a row.
    cudaError_t time(const cublas_lt::Heuristic& with, const Operands& on, cudaStream_t stream, int launches,
                     cudaEvent_t begin, cudaEvent_t end, float* ms) const {
        cudaError_t error = cudaEventRecord(begin, stream);
        for (int i = 0; error == cudaSuccess && i < launches; ++i)
            error = cublas::as_cuda_error(multiply(with, on, stream));
        if (error == cudaSuccess) error = cudaEventRecord(end, stream);
        if (error == cudaSuccess) error = cudaEventSynchronize(end);
        if (error == cudaSuccess) error = cudaEventElapsedTime(ms, begin, end);
        *ms /= static_cast<float>(launches);
        return error;
    }

    cublas_lt::Handle handle_ = nullptr;
    cublas_lt::Operation operation_ = nullptr;
    cublas_lt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr;
    void* workspace_ = nullptr;
    std::vector<cublas_lt::Heuristic> candidates_;
    size_t chosen_ = 0;
    bool is_timed_ = false;
};

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    using Key = std::tuple<int, int, int, int, uint32_t>;
    static std::mutex mutex;
    static auto* const products = new std::map<Key, Product>;  // lives as long as the process
    const Operands operands = {A, B, C, M, N, K};
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    const std::lock_guard<std::mutex> lock(mutex);
    return (*products)[{device, M, N, K, alignment_of(operands)}].launch(operands, stream);
}
