// cuBLAS as the baseline of the GEMM families, found at run time.
//
// The headers of the library need not be installed: the functions are declared here, based on the cuBLAS documentation
// (docs.nvidia.com/cuda/cublas), and looked up in the copy that the process has already loaded (such as CuPy's), or
// else in the one that the dynamic linker finds. So a machine without cuBLAS can still build the baseline, and the
// launch reports what is missing.
#pragma once

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <library_types.h>

#include <cstddef>
#include <cstdio>
#include <mutex>

// Internal to each shared object that includes this. If it were shared, two baselines in one process would have one
// handle, with the math mode of the first.
namespace {
namespace cublas {

using Handle = void*;  // cublasHandle_t
using Status = int;    // cublasStatus_t, 0 is success

constexpr int NO_TRANSPOSE = 0;           // CUBLAS_OP_N
constexpr int PEDANTIC_MATH = 2;          // CUBLAS_PEDANTIC_MATH: no shortcut in precision, no TF32
constexpr int COMPUTE_32F_PEDANTIC = 69;  // CUBLAS_COMPUTE_32F_PEDANTIC
constexpr int GEMM_DEFAULT = -1;          // CUBLAS_GEMM_DEFAULT: cuBLAS chooses the kernel

// As the documentation recommends for Hopper; older GPUs need 4 MiB.
constexpr size_t WORKSPACE_BYTES = size_t{32} << 20;

constexpr cudaError_t NOT_FOUND = cudaErrorSharedObjectInitFailed;       // no cuBLAS on this machine
constexpr cudaError_t INCOMPLETE = cudaErrorSharedObjectSymbolNotFound;  // a cuBLAS without a function used here

struct Library {
    Status (*create)(Handle*) = nullptr;
    Status (*set_math_mode)(Handle, int) = nullptr;
    Status (*set_stream)(Handle, cudaStream_t) = nullptr;
    Status (*set_workspace)(Handle, void*, size_t) = nullptr;
    Status (*get_property)(int, int*) = nullptr;
    Status (*gemm_ex)(Handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
                      cudaDataType a_type, int a_pitch, const void* b, cudaDataType b_type, int b_pitch,
                      const void* beta, void* c, cudaDataType c_type, int c_pitch, int compute_type,
                      int algorithm) = nullptr;
    cudaError_t error = NOT_FOUND;
};

inline void* open_library() {
    constexpr const char* names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
    for (const char* name : names)  // a copy in this process first, so that there are never two versions in one process
        if (void* found = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return found;
    for (const char* name : names)
        if (void* found = dlopen(name, RTLD_LAZY)) return found;
    std::fprintf(stderr, "cublas: no libcublas.so.13 or .12 found: install cuBLAS, or import cupy.cublas first\n");
    return nullptr;
}

template <typename Function>
bool look_up(void* object, const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(dlsym(object, symbol));
    if (!function) std::fprintf(stderr, "cublas: the library has no %s: install CUDA 12 or newer\n", symbol);
    return function != nullptr;
}

inline Library load() {
    Library library;
    void* object = open_library();
    if (!object) return library;
    const bool complete = look_up(object, "cublasCreate_v2", library.create) &&
                          look_up(object, "cublasSetMathMode", library.set_math_mode) &&
                          look_up(object, "cublasSetStream_v2", library.set_stream) &&
                          look_up(object, "cublasSetWorkspace_v2", library.set_workspace) &&
                          look_up(object, "cublasGetProperty", library.get_property) &&
                          look_up(object, "cublasGemmEx", library.gemm_ex);
    library.error = complete ? cudaSuccess : INCOMPLETE;
    return library;
}

inline const Library& library() {
    static const Library loaded = load();
    return loaded;
}

// 130100 for 13.1.0; 0 without cuBLAS.
inline int version() {
    int major = 0, minor = 0, patch = 0;
    if (library().error != cudaSuccess) return 0;
    library().get_property(MAJOR_VERSION, &major);
    library().get_property(MINOR_VERSION, &minor);
    library().get_property(PATCH_LEVEL, &patch);
    return major * 10000 + minor * 100 + patch;
}

// The CUDA error that corresponds to a status of the library, so that launchers return one kind of error.
inline cudaError_t as_cuda_error(Status status) {
    switch (status) {
        case 0: return cudaGetLastError();
        case 3: return cudaErrorMemoryAllocation;        // CUBLAS_STATUS_ALLOC_FAILED
        case 7: return cudaErrorInvalidValue;            // CUBLAS_STATUS_INVALID_VALUE
        case 8: return cudaErrorNoKernelImageForDevice;  // CUBLAS_STATUS_ARCH_MISMATCH
        case 13: return cudaErrorLaunchFailure;          // CUBLAS_STATUS_EXECUTION_FAILED
        case 15: return cudaErrorNotSupported;           // CUBLAS_STATUS_NOT_SUPPORTED
        default: return cudaErrorUnknown;
    }
}

// The handle of one device with its own workspace. It is created once and never destroyed, since the order in which
// cuBLAS, CUDA and this object are destroyed at the exit of a process is undefined.
class Session {
   public:
    // The handle, bound to `stream` and to `math_mode`; allocates at the first call only, also within a stream capture.
    cudaError_t bind(cudaStream_t stream, int math_mode, Handle* bound) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (library().error != cudaSuccess) return library().error;
        if (!handle_) {
            const cudaError_t error = create(math_mode);
            if (error != cudaSuccess) return error;
        }
        if (!is_bound_ || stream != stream_) {
            // Setting the stream resets the workspace: cuBLAS then uses its own pool, which graphs must not use.
            Status status = library().set_stream(handle_, stream);
            if (status == 0) status = library().set_workspace(handle_, workspace_, WORKSPACE_BYTES);
            if (status != 0) return as_cuda_error(status);
            stream_ = stream;
            is_bound_ = true;
        }
        *bound = handle_;
        return cudaSuccess;
    }

   private:
    cudaError_t create(int math_mode) {
        cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;  // allows allocation during a capture
        cudaThreadExchangeStreamCaptureMode(&mode);
        cudaError_t error = workspace_ ? cudaSuccess : cudaMalloc(&workspace_, WORKSPACE_BYTES);
        if (error == cudaSuccess) {
            Handle handle = nullptr;
            Status status = library().create(&handle);
            if (status == 0) status = library().set_math_mode(handle, math_mode);
            if (status == 0) handle_ = handle;
            error = status == 0 ? cudaSuccess : as_cuda_error(status);
        }
        cudaThreadExchangeStreamCaptureMode(&mode);
        return error;
    }

    std::mutex mutex_;
    Handle handle_ = nullptr;
    void* workspace_ = nullptr;
    cudaStream_t stream_ = nullptr;
    bool is_bound_ = false;
};

// The session of the current device.
inline cudaError_t current_session(Session** session) {
    constexpr int MAX_DEVICES = 64;
    static Session* const sessions = new Session[MAX_DEVICES];
    int device = 0;
    const cudaError_t error = cudaGetDevice(&device);
    if (error != cudaSuccess) return error;
    if (device >= MAX_DEVICES) return cudaErrorInvalidDevice;
    *session = &sessions[device];
    return cudaSuccess;
}

}  // namespace cublas
}  // namespace
