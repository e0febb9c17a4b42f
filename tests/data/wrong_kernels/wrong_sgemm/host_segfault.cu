// Wrong: the launcher itself, on the host, writes through a null pointer.
#include <cuda_runtime.h>

extern "C" int launch(const float*, const float*, float*, int, int, int, float, float, cudaStream_t) {
    volatile int* volatile nowhere = nullptr;  // volatile twice: the compiler may drop neither the load nor the store
    *nowhere = 1;
    return 0;
}
