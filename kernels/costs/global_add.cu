// global_add: at each step a lane of each warp adds 1 to a word in global memory, which all warps of the block share, or
// all warps of the GPU (`same`). NUMBER is the type of the word: 0 for integers, 1 for floating point.
//
// Idea         Additions without a result (RED) are executed by L2, and those to one address one after the other. The
//              warps only send them. What blocks with words of their own, each in a line of its own, need shows how fast
//              they are sent; one word for all shows the rate at which one address can change.
// Expected     One addition to the same address per 1 to 2 ns, for integers and for floating point.
// Cost         Contention: the more threads add to an address, the longer each of them waits.
// Constraints  At most 32 warps per block.
// Source       CUDA Programming Guide, atomic functions.

#include <type_traits>

#include "steps.cuh"

using Word = std::conditional_t<NUMBER == 0, unsigned, float>;

constexpr int THREADS = 256;

__global__ void clear(Word* sums, int words) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < words) sums[i * LANES] = 0;
}

__global__ void __launch_bounds__(MOST_THREADS) add(Word* sums, int steps, int same) {
    Word* sum = sums + (same ? 0 : blockIdx.x * LANES);
    if (threadIdx.x % LANES == 0) take_steps(steps, [&](int) { atomicAdd(sum, Word(1)); });
}

__global__ void collect(unsigned* y, const Word* sums, int words) {
    const int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < words) y[i] = unsigned(sums[i * LANES]);
}

extern "C" int launch(unsigned* y, void* scratch, int blocks, int warps, int steps, int same, cudaStream_t stream) {
    Word* sums = static_cast<Word*>(scratch);
    const int words = same ? 1 : blocks, grid = (words - 1) / THREADS + 1;
    clear<<<grid, THREADS, 0, stream>>>(sums, words);
    add<<<blocks, LANES * warps, 0, stream>>>(sums, steps, same);
    collect<<<grid, THREADS, 0, stream>>>(y, sums, words);
    return cudaGetLastError();
}
