// Barriers in shared memory (mbarrier, sm_90), based on the PTX ISA, for warps and asynchronous copies.
//
// A barrier counts arrivals and bytes in flight. A phase ends when `count` arrivals have come and no byte is missing.
// Phases are identified by their parity, 0, 1, 0, ... `wait(barrier, parity)` returns once the phase of that parity has
// ended. On a new barrier the phase before the first counts as ended, so waiting for parity 1 returns at once.
//
// A ring of stages has two barriers per stage. Use u of a stage (0, 1, ...) works as follows:
//   producer   wait(empty, (u & 1) ^ 1)   the end of phase u - 1 of `empty`: the readers are done with use u - 1
//              expect(full, bytes)        the one arrival of phase u of `full`; the copies bring the bytes
//   consumer   wait(full, u & 1)          the end of phase u of `full`
//              arrive(empty)              an arrival in phase u of `empty`
// No thread can be a whole phase ahead, which would confuse parities: the producer starts use u + 1 only after every
// reader has arrived for use u, and readers arrive only after they have seen phase u of `full` end.
#pragma once

#include <cstdint>

namespace {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

namespace mbarrier {

__device__ __forceinline__ void init(uint64_t* barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

// By the thread that called init, before the __syncthreads (or cluster_sync) after which the others use the barriers:
// makes the initialisation visible to asynchronous copies and to other blocks of the cluster.
__device__ __forceinline__ void publish_inits() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// The address of the same barrier in block `rank` of the cluster.
__device__ __forceinline__ uint32_t address_in(const uint64_t* barrier, int rank) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(barrier)), "r"(rank));
    return remote;
}

// Arrives at the barrier of another block, after an action that wrote nothing which must be visible there, such as
// reading a stage. No fence: see arrive_at for its cost.
__device__ __forceinline__ void signal(uint32_t barrier_address) {
    asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(barrier_address) : "memory");
}

// Arrives at the same barrier of block `rank` of the cluster. What this thread wrote is visible there to threads that
// wait with wait_cluster. On sm_90 this takes a fence of the whole GPU (MEMBAR.ALL.GPU), a round trip to L2.
__device__ __forceinline__ void arrive_at(uint64_t* barrier, int rank) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
        "}\n" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}

// Arrives, and adds `bytes` to the bytes that the phase waits for.
__device__ __forceinline__ void expect(uint64_t* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void wait(uint64_t* barrier, int parity) {
    uint32_t is_over = 0;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(is_over)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    } while (!is_over);
}

// As wait; what other blocks of the cluster wrote before their arrive_at is then visible. Invalidates L1 (CCTL.IVALL).
__device__ __forceinline__ void wait_cluster(uint64_t* barrier, int parity) {
    uint32_t is_over = 0;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(is_over)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    } while (!is_over);
}

// The position of a thread in a ring: a stage, and the parity of its use, 0 at first.
template <int Stages>
struct Turn {
    int stage = 0, parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == Stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

}  // namespace mbarrier

__device__ __forceinline__ int cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}

// By every thread of every block of the cluster; warps need not have converged.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// As cluster_sync without a fence: only makes sure that all blocks run and have initialised and published their
// barriers.
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

// By `threads` threads of the block, in whole warps; `barrier` is 1 to 15.
__device__ __forceinline__ void named_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace
