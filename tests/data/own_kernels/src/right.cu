#include "kernels.cuh"

extern "C" int launch(const __nv_fp8_e4m3* e4, const __nv_fp8_e5m2* e5, const signed char* i8, const unsigned char* u8,
                      const short* i16, const bool* mask, const cuFloatComplex* z, void* scratch, float* sum,
                      __nv_fp8_e4m3* narrow, cuFloatComplex* square, bool* positive, int n, cudaStream_t stream) {
    return launch_both({e4, e5, i8, u8, i16, mask}, z, static_cast<float*>(scratch), sum, narrow, square, positive, n,
                       stream);
}
