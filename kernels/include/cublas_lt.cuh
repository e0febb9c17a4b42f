// cublasLt, found at run time like cuBLAS in cublas.cuh: its heuristics list the kernels that cuBLAS would select, and
// the caller may choose one. Declared based on docs.nvidia.com/cuda/cublas (cublasLt).
#pragma once

#include <cstdint>

#include "cublas.cuh"

namespace {
namespace cublas_lt {

using cublas::Status;
using Handle = void*;      // cublasLtHandle_t
using Operation = void*;   // cublasLtMatmulDesc_t
using Layout = void*;      // cublasLtMatrixLayout_t
using Preference = void*;  // cublasLtMatmulPreference_t

constexpr int COMPUTE_32F = 68;                 // CUBLAS_COMPUTE_32F
constexpr int TRANSPOSE_A = 3;                  // CUBLASLT_MATMUL_DESC_TRANSA, int32
constexpr int MAX_WORKSPACE_BYTES = 1;          // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64
constexpr int REDUCTION_SCHEMES = 3;            // CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32
constexpr int MIN_ALIGNMENTS[] = {5, 6, 7, 8};  // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{A,B,C,D}_BYTES, uint32

// CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE: if K is split, partial sums are not rounded to the type of the result.
constexpr uint32_t SUMS_IN_COMPUTE_TYPE = 2;

struct Algorithm {  // cublasLtMatmulAlgo_t
    uint64_t data[8];
};

struct Heuristic {  // cublasLtMatmulHeuristicResult_t
    Algorithm algorithm;
    size_t workspace_bytes;
    Status state;
    float waves;
    int reserved[4];
};

struct Library {
    Status (*create)(Handle*) = nullptr;
    Status (*create_operation)(Operation*, int compute_type, cudaDataType scale_type) = nullptr;
    Status (*set_operation)(Operation, int attribute, const void* value, size_t bytes) = nullptr;
    Status (*create_layout)(Layout*, cudaDataType, uint64_t rows, uint64_t columns, int64_t pitch) = nullptr;
    Status (*create_preference)(Preference*) = nullptr;
    Status (*set_preference)(Preference, int attribute, const void* value, size_t bytes) = nullptr;
    Status (*heuristics)(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference, int most, Heuristic*,
                         int* found) = nullptr;
    Status (*multiply)(Handle, Operation, const void* alpha, const void* a, Layout, const void* b, Layout,
                       const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace,
                       size_t workspace_bytes, cudaStream_t) = nullptr;
    cudaError_t error = cublas::NOT_FOUND;
};

inline Library load() {
    Library library;
    void* object = cublas::open_library();  // dlsym also searches what cuBLAS is linked with: cublasLt
    if (!object) return library;
    const bool complete = cublas::look_up(object, "cublasLtCreate", library.create) &&
                          cublas::look_up(object, "cublasLtMatmulDescCreate", library.create_operation) &&
                          cublas::look_up(object, "cublasLtMatmulDescSetAttribute", library.set_operation) &&
                          cublas::look_up(object, "cublasLtMatrixLayoutCreate", library.create_layout) &&
                          cublas::look_up(object, "cublasLtMatmulPreferenceCreate", library.create_preference) &&
                          cublas::look_up(object, "cublasLtMatmulPreferenceSetAttribute", library.set_preference) &&
                          cublas::look_up(object, "cublasLtMatmulAlgoGetHeuristic", library.heuristics) &&
                          cublas::look_up(object, "cublasLtMatmul", library.multiply);
    library.error = complete ? cudaSuccess : cublas::INCOMPLETE;
    return library;
}

inline const Library& library() {
    static const Library loaded = load();
    return loaded;
}

}  // namespace cublas_lt
}  // namespace
