// Calls the library, whose source is compiled with it (`compile: sources`).
#include "rows/row_sum.cuh"

extern "C" int launch(const float* x, float* out, int rows, int columns, cudaStream_t stream) {
    row_sum(x, out, rows, columns, stream);
    return cudaGetLastError();
}
