// cublas: the baseline, NVIDIA's library in each type, the first kernel that its heuristics suggest.
//
// Idea         One call for all types: cublasLt takes the types of operands, sums and results as arguments. fp32 is
//              pedantic, without tensor cores; tf32 lets tensor cores read fp32 operands; fp8 sums without fast
//              accumulation, so that partial sums are added up in fp32.
//              The library is column-major, where a row-major matrix is its transpose, so the launcher requests C^T = B
//              A^T. Only B, the library's first operand, is passed as transposed, since K is contiguous in both
//              matrices: the only layout in which it multiplies int8 and fp8 on Hopper.
// Expected     On an H100 at 4096: fp32 51, tf32 400, fp16 and bf16 730, int8 and fp8 1200 TFLOP/s.
// Cost         A workspace of 32 MiB per device. The first launch of a shape asks for a kernel; later ones only launch.
// Constraints  Arrays aligned to 256 bytes; K a multiple of 16, in int8 and fp8 M and N too. cuBLAS 12 or newer must be
//              loaded in the process or found by the dynamic linker; otherwise the launch returns
//              cudaErrorSharedObjectInitFailed. One stream at a time: concurrent streams would share the workspace.
// Source       docs.nvidia.com/cuda/cublas (cublasLtMatmul, supported types; cublasLtMatmulAlgoGetHeuristic).

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "cublas_lt.cuh"
#include "types.cuh"
#include "workspace.cuh"

using cublas::Status;

constexpr int TRANSPOSE = 1;  // CUBLAS_OP_T
// cublasComputeType_t
constexpr int COMPUTE_16F = 64, COMPUTE_32F_FAST_TF32 = 77, COMPUTE_32I = 72;
constexpr uint16_t ONE_IN_FP16 = 0x3C00;

// The types of a product. alpha and beta have the type of the sums, as has C.
struct Types {
    int compute;
    cudaDataType operands, sums;
};

static Types types_of(int type) {
    switch (type) {
        case FP32: return {cublas::COMPUTE_32F_PEDANTIC, CUDA_R_32F, CUDA_R_32F};
        case TF32: return {COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F};
        case FP16: return {cublas_lt::COMPUTE_32F, CUDA_R_16F, CUDA_R_32F};
        case FP16_ACC16: return {COMPUTE_16F, CUDA_R_16F, CUDA_R_16F};
        case BF16: return {cublas_lt::COMPUTE_32F, CUDA_R_16BF, CUDA_R_32F};
        case INT8: return {COMPUTE_32I, CUDA_R_8I, CUDA_R_32I};
        default: return {cublas_lt::COMPUTE_32F, CUDA_R_8F_E4M3, CUDA_R_32F};
    }
}

// The product of one shape on one device. Nothing is destroyed, since launches in flight and graphs may use it.
class Product {
   public:
    cudaError_t launch(const void* A, const void* B, void* C, int M, int N, int K, const Types& types,
                       cudaStream_t stream) {
        if (!is_ready_) {
            const cudaError_t error = prepare(M, N, K, types);
            if (error != cudaSuccess) return error;
            is_ready_ = true;
        }
        const float one = 1.0f;
        const int32_t integer_one = 1;
        const uint64_t zero = 0;  // of any type
        const void* const alpha = types.sums == CUDA_R_32F   ? static_cast<const void*>(&one)
                                  : types.sums == CUDA_R_32I ? static_cast<const void*>(&integer_one)
                                                             : static_cast<const void*>(&ONE_IN_FP16);
        return cublas::as_cuda_error(cublas_lt::library().multiply(handle_, operation_, alpha, B, b_, A, a_, &zero, C,
                                                                   c_, C, c_, &found_.algorithm, workspace_,
                                                                   found_.workspace_bytes, stream));
    }

   private:
    cudaError_t prepare(int M, int N, int K, const Types& types) {
        if (cublas_lt::library().error != cudaSuccess) return cublas_lt::library().error;
        const cudaError_t error = workspace(cublas::WORKSPACE_BYTES, &workspace_);
        if (error != cudaSuccess) return error;
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // allows allocation during a capture
        cudaThreadExchangeStreamCaptureMode(&mode);
        const Status status = ask(M, N, K, types);
        cudaThreadExchangeStreamCaptureMode(&mode);
        return cublas::as_cuda_error(status);
    }

    Status ask(int M, int N, int K, const Types& types) {
        const cublas_lt::Library& library = cublas_lt::library();
        cublas_lt::Preference preference = nullptr;
        Status status = library.create(&handle_);
        if (status == 0) status = library.create_operation(&operation_, types.compute, types.sums);
        if (status == 0)
            status = library.set_operation(operation_, cublas_lt::TRANSPOSE_A, &TRANSPOSE, sizeof TRANSPOSE);
        if (status == 0) status = library.create_layout(&b_, types.operands, K, N, K);
        if (status == 0) status = library.create_layout(&a_, types.operands, K, M, K);
        if (status == 0) status = library.create_layout(&c_, types.sums, N, M, N);
        if (status == 0) status = library.create_preference(&preference);
        const uint64_t bytes = cublas::WORKSPACE_BYTES;
        const uint32_t reductions = cublas_lt::SUMS_IN_COMPUTE_TYPE;
        if (status == 0)
            status = library.set_preference(preference, cublas_lt::MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
        if (status == 0)
            status = library.set_preference(preference, cublas_lt::REDUCTION_SCHEMES, &reductions, sizeof reductions);
        int count = 0;
        if (status == 0)
            status = library.heuristics(handle_, operation_, b_, a_, c_, c_, preference, 1, &found_, &count);
        constexpr Status NOT_SUPPORTED = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
        return status == 0 && count == 0 ? NOT_SUPPORTED : status;
    }

    cublas_lt::Handle handle_ = nullptr;
    cublas_lt::Operation operation_ = nullptr;
    cublas_lt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr;
    void* workspace_ = nullptr;
    cublas_lt::Heuristic found_ = {};
    bool is_ready_ = false;
};

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const void* A, const void* B, const float*, const float*, void* C, int M, int N, int K, int type,
                      cudaStream_t stream) {
    using Key = std::tuple<int, int, int, int, int>;
    static std::mutex mutex;
    static auto* const products = new std::map<Key, Product>;  // kept until the process ends
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    const std::lock_guard<std::mutex> lock(mutex);
    return (*products)[{device, type, M, N, K}].launch(A, B, C, M, N, K, types_of(type), stream);
}
