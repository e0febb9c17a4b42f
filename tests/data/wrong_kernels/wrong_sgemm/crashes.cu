// Wrong: the kernel writes to address 0, an illegal one.
#include <cuda_runtime.h>

__global__ void product(volatile float* nowhere) { *nowhere = 1.0f; }

extern "C" int launch(const float*, const float*, float*, int, int, int, float, float, cudaStream_t stream) {
    product<<<1, 1, 0, stream>>>(nullptr);
    return cudaGetLastError();
}
