// copy: y = x, four elements a thread and turn of the loop. PLANT of 10,000 elements are copied besides, within `spare`.
//
// Idea         The planted elements are read from the first half of the spare memory and written to the second, by the
//              same loop: more traffic of the same kind.
// Expected     Time in proportion to the traffic, beside launch and ramp.
// Cost         The planted copies are in vain.
// Constraints  n a multiple of 4.

#include <cuda_runtime.h>

constexpr int kBlock = 256;
constexpr int kBlocks = 132 * 8;

__global__ void __launch_bounds__(kBlock) copy(const float4* __restrict__ x, float4* __restrict__ y,
                                               float4* __restrict__ spare, int n, int more) {
    for (int i = blockIdx.x * kBlock + threadIdx.x; i < n + more; i += gridDim.x * kBlock) {
        if (i < n)
            y[i] = x[i];
        else
            spare[more + i - n] = spare[i - n];
    }
}

extern "C" int launch(const float* x, float* y, void* spare, int n, cudaStream_t stream) {
    const int quads = n / 4, more = static_cast<int>(quads * 1LL * PLANT / 10'000);
    copy<<<kBlocks, kBlock, 0, stream>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y),
                                         static_cast<float4*>(spare), quads, more);
    return cudaGetLastError();
}
