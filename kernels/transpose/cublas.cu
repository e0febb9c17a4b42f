// cublas: NVIDIA's library with geam, out = 1 * in^T + 0 * out.
//
// Idea         cuBLAS has no transposition, but a sum of two matrices, each of which may be transposed; with a second
//              factor of 0 the second matrix is not read. The library is column-major: the row-major `in` [M, N] is a
//              column-major [N, M] with pitch N, and the row-major `out` [N, M] is a column-major [M, N] with pitch M.
// Expected     At most as fast as padded.
// Cost         The handle and the workspace of cublas.cuh, created at the first launch.
// Constraints  Any M, N >= 1, any alignment. cuBLAS 12 or newer must be loaded in the process or found by the dynamic
//              linker. One stream at a time.
// Source       docs.nvidia.com/cuda/cublas (cublasSgeam).

#include "cublas.cuh"

using Geam = cublas::Status (*)(cublas::Handle, int transpose_a, int transpose_b, int m, int n, const float* alpha,
                                const float* a, int a_pitch, const float* beta, const float* b, int b_pitch, float* c,
                                int c_pitch);

constexpr int TRANSPOSE = 1;  // CUBLAS_OP_T

static Geam find_geam() {
    Geam geam = nullptr;
    if (void* object = cublas::open_library()) cublas::look_up(object, "cublasSgeam", geam);
    return geam;
}

extern "C" int library_version() { return cublas::version(); }

extern "C" int launch(const float* in, float* out, int M, int N, cudaStream_t stream) {
    static const Geam geam = find_geam();
    cublas::Session* session = nullptr;
    cublas::Handle handle = nullptr;
    cudaError_t error = cublas::current_session(&session);
    if (error == cudaSuccess) error = session->bind(stream, cublas::PEDANTIC_MATH, &handle);
    if (error != cudaSuccess) return error;
    if (!geam) return cublas::INCOMPLETE;
    const float one = 1.0f, zero = 0.0f;
    return cublas::as_cuda_error(
        geam(handle, TRANSPOSE, cublas::NO_TRANSPOSE, M, N, &one, in, N, &zero, out, M, out, M));
}
