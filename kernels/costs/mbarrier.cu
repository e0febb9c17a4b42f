// mbarrier: the warps of a block wait for each other at a barrier in shared memory. ARRIVING lanes of each warp arrive.
//
// Idea         An mbarrier counts arrivals in shared memory, and a waiting thread asks for its phase. Warps may arrive
//              without waiting, and copies can arrive, which __syncthreads() does not offer. Its price is read here:
//              with one arrival per warp that of a phase, with 32 the further arrivals on one address.
// Expected     Two to five times the time of __syncthreads(); an arrival more costs about a cycle.
// Cost         A round trip to shared memory to arrive, and at least one to wait.
// Constraints  sm_90; at most 32 warps per block.
// Source       PTX ISA, mbarrier.

#include "mbarrier.cuh"
#include "steps.cuh"

__global__ void __launch_bounds__(MOST_THREADS) meet(unsigned* y, int steps) {
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) mbarrier::init(&barrier, blockDim.x / LANES * ARRIVING);
    __syncthreads();
    const bool arrives = threadIdx.x % LANES < ARRIVING;
    report(y, take_steps(steps, [&](int s) {
               if (arrives) mbarrier::arrive(&barrier);
               mbarrier::wait(&barrier, s & 1);
               __syncwarp();  // no lane arrives for the next phase while another still waits for this one
           }));
}

extern "C" int launch(unsigned* y, void*, int blocks, int warps, int steps, int, cudaStream_t stream) {
    meet<<<blocks, LANES * warps, 0, stream>>>(y, steps);
    return cudaGetLastError();
}
