// hillis_steele: blocks are scanned, then their sums, which are added to the blocks.
//
// Idea         In step s = 1, 2, 4, ... every element of a block adds the one s places before it; after log2(BLOCK)
//              steps each holds the sum up to itself. Two copies in shared memory take turns, so that one barrier per
//              step is enough. The last element is the sum of the block. The sums are scanned in the same way, level by
//              level, and a last pass adds to each block the sum of all blocks before it.
// Expected     At most a quarter of the speed that 8 bytes per element allow: half, since each element is read and
//              written twice, and less for the n log2(BLOCK) additions where n would be enough.
// Cost         16 bytes per element instead of 8; log2(BLOCK) barriers per block (ten with 1024 threads); three
//              launches or more.
// Constraints  Any n >= 1, any alignment. A workspace of n / BLOCK floats, allocated at the first launch; one stream at
//              a time.
// Source       W. D. Hillis and G. L. Steele, Data parallel algorithms, CACM 29 (1986); M. Harris, S. Sengupta and J.
//              Owens, GPU Gems 3, chapter 39.

#include <cuda_runtime.h>

#include "workspace.cuh"

static_assert(BLOCK % 32 == 0 && BLOCK <= 1024, "a block has whole warps and at most 1024 threads");

// Scans each block of x separately and writes the sums of the blocks, if there is more than one.
__global__ void __launch_bounds__(BLOCK) scan_blocks(const float* x, float* out, float* sums, unsigned n) {
    __shared__ float part[2][BLOCK];
    const unsigned tid = threadIdx.x, i = blockIdx.x * BLOCK + tid;
    int from = 0;
    part[from][tid] = i < n ? x[i] : 0.0f;
    for (unsigned s = 1; s < BLOCK; s *= 2) {
        __syncthreads();
        part[1 - from][tid] = part[from][tid] + (tid >= s ? part[from][tid - s] : 0.0f);
        from = 1 - from;
    }
    if (i < n) out[i] = part[from][tid];
    if (gridDim.x > 1 && tid == BLOCK - 1) sums[blockIdx.x] = part[from][tid];
}

// Adds to each block the sum of all blocks before it.
__global__ void __launch_bounds__(BLOCK) add_sums(float* out, const float* __restrict__ sums, unsigned n) {
    const unsigned i = blockIdx.x * BLOCK + threadIdx.x;
    if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}

static void scan(const float* x, float* out, float* sums, int n, cudaStream_t stream) {
    const int blocks = (n - 1) / BLOCK + 1;
    scan_blocks<<<blocks, BLOCK, 0, stream>>>(x, out, sums, n);
    if (blocks == 1) return;
    scan(sums, sums, sums + blocks, blocks, stream);
    add_sums<<<blocks, BLOCK, 0, stream>>>(out, sums, n);
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    size_t sums = 0;  // of all levels
    for (int left = n; left > 1; left = (left - 1) / BLOCK + 1) sums += (left - 1) / BLOCK + 1;
    void* memory = nullptr;
    const cudaError_t error = workspace((sums + 1) * sizeof(float), &memory);
    if (error != cudaSuccess) return error;
    scan(x, out, static_cast<float*>(memory), n, stream);
    return cudaGetLastError();
}
