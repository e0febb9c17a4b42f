// random: each thread copies an element anywhere in the array.
//
// Idea         Thread i takes element p(i) of a permutation p that looks random: multiplications by odd numbers and
//              shifted exclusive ors, each of which can be undone, on the smallest power of two that holds n. A result
//              of n or more is permuted again until it is less, so that every element is copied once for any n. The 32
//              sectors of a warp lie anywhere, and their other elements belong to warps that run at another time.
// Expected     32 sectors per request. Much slower than any stride if the array exceeds L2: a sector brings 4 useful
//              bytes, and DRAM fetches more than a sector (64 bytes on an H100) for it, as with strides of 16 or more,
//              but in no order.
// Cost         Additional sectors, and about ten instructions for the index.
// Constraints  Any n >= 1, any alignment.
// Source       NVIDIA, CUDA C++ Best Practices Guide, coalesced access.

#include <cuda_runtime.h>

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// A permutation of the numbers of `bits` bits, 1 to 31.
__device__ __forceinline__ unsigned scrambled(unsigned i, unsigned bits) {
    const unsigned mask = (1u << bits) - 1, half = (bits + 1) / 2;
    i = i * 0x9E3779B1u & mask;
    i ^= i >> half;
    i = i * 0x85EBCA6Bu & mask;
    i ^= i >> half;
    return i * 0xC2B2AE35u & mask;
}

__global__ void __launch_bounds__(BLOCK)
    copy_random(const float* __restrict__ in, float* __restrict__ out, unsigned n, unsigned bits) {
    unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n) return;
    do i = scrambled(i, bits);
    while (i >= n);
    out[i] = in[i];
}

extern "C" int launch(const float* in, float* out, int n, cudaStream_t stream) {
    unsigned bits = 1;
    while (1u << bits < static_cast<unsigned>(n)) ++bits;
    const int blocks = (n - 1) / BLOCK + 1;
    copy_random<<<blocks, BLOCK, 0, stream>>>(in, out, n, bits);
    return cudaGetLastError();
}
