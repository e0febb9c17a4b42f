// copy: threads copy WORDS words per access, with LOADS loads in flight, and RESIDENT blocks of 8 warps are on an SM
// at a time.
//
// Idea         The bytes in flight are the bandwidth times the latency (Little's law). They come from resident warps,
//              from loads of a thread that do not depend on each other, or from wider loads. The grid has BLOCKS
//              blocks per SM, all with the same share; unused shared memory limits how many of them an SM holds.
// Expected     As long as 132 SMs have less than 2 MB in flight, twice the bytes in flight take half the time.
// Cost         Registers: WORDS for each load in flight.
// Constraints  n a multiple of 4.
// Source       V. Volkov, Better performance at lower occupancy, GTC 2010.

#include <type_traits>

#include "planted.cuh"

using Word = std::conditional_t<WORDS == 4, int4, int>;

static_assert(sizeof(Word) == WORDS * sizeof(int), "1 or 4 words per access");

__global__ void __launch_bounds__(THREADS) copy(const Word* __restrict__ x, Word* __restrict__ y, int count) {
    const int step = gridDim.x * THREADS;
#pragma unroll 1
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += LOADS * step) {
        Word values[LOADS];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            if (i + k * step < count) values[k] = x[i + k * step];
#pragma unroll
        for (int k = 0; k < LOADS; ++k)
            if (i + k * step < count) y[i + k * step] = values[k];
    }
}

extern "C" int launch(const int* x, int* y, const int*, void*, int n, int, int, cudaStream_t stream) {
    int sms = 0, bytes = 0;
    cudaError_t error = sms_of_gpu(&sms);
    if (error == cudaSuccess) error = limit_residency(copy, RESIDENT, &bytes);
    if (error != cudaSuccess) return error;
    copy<<<sms * BLOCKS, THREADS, bytes, stream>>>(reinterpret_cast<const Word*>(x), reinterpret_cast<Word*>(y),
                                                   n / WORDS);
    return cudaGetLastError();
}
