// Barriers in shared memory (mbarrier, sm_90), after the PTX ISA: what the copy engine and warps wait on.
//
// A barrier counts arrivals and bytes under way. A phase ends when `count` arrivals have come and no byte is missing;
// phases are told apart by their parity, 0, 1, 0, ... `wait(barrier, parity)` returns once the phase of that parity has
// ended. On a fresh barrier the phase before the first counts as ended, so waiting for parity 1 does not wait.
//
// A ring of stages keeps two barriers a stage, and use number u of a stage (0, 1, ...) goes like this:
//   producer   wait(empty, (u & 1) ^ 1)   the end of phase u - 1 of `empty`: the readers are done with use u - 1
//              expect(full, bytes)        the one arrival of phase u of `full`; the copies bring the bytes
//   consumer   wait(full, u & 1)          the end of phase u of `full`
//              arrive(empty)              an arrival in phase u of `empty`
// Nobody can be a whole phase ahead (then parities would be mistaken): the producer starts use u + 1 only after every
// reader arrived for use u, and those arrive only after they saw phase u of `full` end.
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

// By the thread that called init, before the __syncthreads (or cluster_sync) that lets the others at the barriers: the
// copy engine and other blocks of the cluster see them initialised.
__device__ __forceinline__ void publish_inits() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// The address of the same barrier (or the like) of block `rank` of the cluster.
__device__ __forceinline__ uint32_t address_in(const uint64_t* barrier, int rank) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(shared_address(barrier)), "r"(rank));
    return remote;
}

// Arrives at the barrier of another block: tells it that this one has done something which left nothing in memory to be
// seen, such as reading a stage. No fence: see arrive_at for what one costs.
__device__ __forceinline__ void signal(uint32_t barrier_address) {
    asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(barrier_address) : "memory");
}

// Arrives at the same barrier of block `rank` of the cluster, and what this thread wrote is seen there by who waits
// with wait_cluster. On sm_90 that is a fence of the whole GPU (MEMBAR.ALL.GPU) before the arrival, a round trip to L2.
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

// Arrives, and adds `bytes` to what the phase has to wait for.
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

// The same, and what other blocks of the cluster wrote before their arrive_at is seen: L1 is emptied (CCTL.IVALL).
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

// Whose turn it is in a ring: a stage, and the parity of its use, 0 at first.
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

// Every thread of every block of the cluster; its warps need not have converged.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

// The same without a fence: for blocks that only must all have come, once their barriers are initialised and published.
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}

// `threads` threads of the block, whole warps, meet at barrier 1..15.
__device__ __forceinline__ void named_sync(int barrier, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace
