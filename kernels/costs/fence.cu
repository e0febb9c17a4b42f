// fence: each warp writes a word of its own to global memory, and waits until the whole GPU can see it.
//
// Idea         __threadfence() orders what a thread wrote before what it writes next, for all threads of the GPU. It
//              waits for the answer of L2 to every outstanding write of the thread. Flags that hand data from block to
//              block, as in a look-back scan or a split-K sum, need one before each flag.
// Expected     A round trip to L2, 0.3 us, whatever the number of warps; about twice the time of a load that hits L2.
// Cost         That round trip, in which the warp does nothing else.
// Constraints  At most 32 warps per block.
// Source       CUDA Programming Guide, memory fence functions.

#include "steps.cuh"

__global__ void __launch_bounds__(MOST_THREADS) fence(unsigned* y, unsigned* scratch, int steps) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    unsigned* own = scratch + warp * LANES;
    report(y, take_steps(steps, [&](int s) {
               if (threadIdx.x % LANES == 0) *own = s;
               __threadfence();
           }));
}

extern "C" int launch(unsigned* y, void* scratch, int blocks, int warps, int steps, int, cudaStream_t stream) {
    fence<<<blocks, LANES * warps, 0, stream>>>(y, static_cast<unsigned*>(scratch), steps);
    return cudaGetLastError();
}
