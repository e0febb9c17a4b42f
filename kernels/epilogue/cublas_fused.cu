// cublas_fused: the baseline, NVIDIA's library with bias and ReLU in its epilogue.
//
// Idea         cublasLtMatmul takes the scale as its alpha, and the rest as CUBLASLT_EPILOGUE_RELU_BIAS. The launcher
//              uses the first kernel that the library's heuristics suggest. The library is column-major, where a
//              row-major matrix is its transpose, so the launcher requests C^T = B A^T, and the bias of a column of C
//              is that of a row, as the library expects it. Only B, its first operand, is passed as transposed, since K
//              is contiguous in both matrices.
// Expected     As fast as the library's GEMM without an epilogue: 756 TFLOP/s at 4096 on an H200.
// Cost         A workspace of 32 MiB per device. The first launch of a shape creates its descriptions; later ones only
//              launch.
// Constraints  Any M; N and K multiples of 8, arrays aligned to 16 bytes. cuBLAS 12 or newer must be loaded in the
//              process or found by the dynamic linker; otherwise the launch returns cudaErrorSharedObjectInitFailed.
//              One stream at a time: concurrent streams would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasLtMatmul, cublasLtEpilogue_t).

#include <cuda_bf16.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "cublas_lt.cuh"
#include "workspace.cuh"

using cublas::Status;

constexpr int TRANSPOSE = 1;                   // CUBLAS_OP_T
constexpr int EPILOGUE = 7, BIAS_POINTER = 8;  // CUBLASLT_MATMUL_DESC_..., uint32 and a pointer
constexpr uint32_t RELU_BIAS = 6;              // CUBLASLT_EPILOGUE_RELU_BIAS
constexpr uint32_t ALIGNMENT = 16;             // of all arrays

struct Operands {
    const __nv_bfloat16 *A, *B, *bias;
    __nv_bfloat16* C;
    int M, N, K;
    float scale;
};

// The layer of one shape on one device: its descriptions for the library. Nothing is destroyed, since launches in
// flight and graphs may use it.
class Layer {
   public:
    cudaError_t launch(const Operands& on, cudaStream_t stream) {
        const cublas_lt::Library& library = cublas_lt::library();
        if (library.error != cudaSuccess) return library.error;
        if (!is_ready_) {
            const cudaError_t error = workspace(cublas::WORKSPACE_BYTES, &workspace_);
            if (error != cudaSuccess) return error;
            cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // allows allocation during a capture
            cudaThreadExchangeStreamCaptureMode(&mode);
            const Status status = describe(library, on);
            cudaThreadExchangeStreamCaptureMode(&mode);
            if (status != 0) return cublas::as_cuda_error(status);
            is_ready_ = true;
        }
        const float beta = 0.0f;
        Status status = library.set_operation(operation_, BIAS_POINTER, &on.bias, sizeof on.bias);
        if (status == 0)
            status = library.multiply(handle_, operation_, &on.scale, on.B, b_, on.A, a_, &beta, on.C, c_, on.C, c_,
                                      &chosen_.algorithm, workspace_, chosen_.workspace_bytes, stream);
        return cublas::as_cuda_error(status);
    }

   private:
    Status describe(const cublas_lt::Library& library, const Operands& on) {
        cublas_lt::Preference preference = nullptr;
        Status status = library.create(&handle_);
        if (status == 0) status = library.create_operation(&operation_, cublas_lt::COMPUTE_32F, CUDA_R_32F);
        if (status == 0)
            status = library.set_operation(operation_, cublas_lt::TRANSPOSE_A, &TRANSPOSE, sizeof TRANSPOSE);
        if (status == 0) status = library.set_operation(operation_, EPILOGUE, &RELU_BIAS, sizeof RELU_BIAS);
        if (status == 0) status = library.set_operation(operation_, BIAS_POINTER, &on.bias, sizeof on.bias);
        if (status == 0) status = library.create_layout(&b_, CUDA_R_16BF, on.K, on.N, on.K);
        if (status == 0) status = library.create_layout(&a_, CUDA_R_16BF, on.K, on.M, on.K);
        if (status == 0) status = library.create_layout(&c_, CUDA_R_16BF, on.N, on.M, on.N);
        if (status == 0) status = library.create_preference(&preference);
        const uint64_t bytes = cublas::WORKSPACE_BYTES;
        if (status == 0)
            status = library.set_preference(preference, cublas_lt::MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
        const uint32_t sums = cublas_lt::SUMS_IN_COMPUTE_TYPE;
        if (status == 0) status = library.set_preference(preference, cublas_lt::REDUCTION_SCHEMES, &sums, sizeof sums);
        for (const int attribute : cublas_lt::MIN_ALIGNMENTS)
            if (status == 0) status = library.set_preference(preference, attribute, &ALIGNMENT, sizeof ALIGNMENT);
        int found = 0;
        if (status == 0)
            status = library.heuristics(handle_, operation_, b_, a_, c_, c_, preference, 1, &chosen_, &found);
        if (status != 0 || found == 0) return status != 0 ? status : NOT_SUPPORTED;
        return chosen_.state;
    }

    static constexpr Status NOT_SUPPORTED = 15;  // CUBLAS_STATUS_NOT_SUPPORTED

    cublas_lt::Handle handle_ = nullptr;
    cublas_lt::Operation operation_ = nullptr;
    cublas_lt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr;
    cublas_lt::Heuristic chosen_ = {};
    void* workspace_ = nullptr;
    bool is_ready_ = false;
};

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, const __nv_bfloat16* bias, __nv_bfloat16* C,
                      void* /* workspace */, int M, int N, int K, float scale, cudaStream_t stream) {
    static std::mutex mutex;
    static auto* const layers = new std::map<std::tuple<int, int, int, int>, Layer>;  // kept until the process ends
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    const std::lock_guard<std::mutex> lock(mutex);
    return (*layers)[{device, M, N, K}].launch({A, B, bias, C, M, N, K, scale}, stream);
}
