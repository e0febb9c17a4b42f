// What the blocks of a cluster tell each other (sm_90), based on the PTX ISA (st.async): four floats from each to all.
//
// A store to the shared memory of another block is asynchronous and counts its bytes at a barrier there, for which the
// receiver waits. So no barrier of the cluster is required, whose fence waits for all earlier stores to global memory
// (MEMBAR.ALL.GPU) and whose end invalidates L1 (CCTL.IVALL).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "mbarrier.cuh"

// Internal to each shared object, as in workspace.cuh.
namespace {

constexpr int MOST_BLOCKS = 8;  // of a cluster: more are not portable

__device__ __forceinline__ int cluster_blocks() {
    uint32_t blocks;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
    return static_cast<int>(blocks);
}

// Returns once the phase of that parity has ended (mbarrier.cuh). What other blocks of the cluster stored by st.async
// is then visible. Such stores are released at cluster scope and must be acquired at cluster scope; mbarrier::wait
// acquires at block scope. The fence acquires shared memory alone, so that it does not invalidate L1, in contrast to
// mbarrier::wait_cluster.
__device__ __forceinline__ void wait_for_messages(uint64_t* barrier, int parity) {
    uint32_t is_over = 0;
    do {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}\n"
            : "=r"(is_over)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    } while (!is_over);
    asm volatile("fence.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
}

// Stores `value` to the place of `to` in block `rank` of the cluster, and reports the bytes to that block's `barrier`.
__device__ __forceinline__ void send_to_block(int rank, float4* to, uint64_t* barrier, float4 value) {
    asm volatile(
        "{\n"
        ".reg .b32 remote, counted;\n"
        "mapa.shared::cluster.u32 remote, %0, %2;\n"
        "mapa.shared::cluster.u32 counted, %1, %2;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [remote], {%3, %4, %5, %6}, [counted];\n"
        "}\n" ::"r"(shared_address(to)),
        "r"(shared_address(barrier)), "r"(rank), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
        : "memory");
}

// In shared memory. All blocks call begin, complete_begin, and then `all` equally often.
//
// Two buffers take turns: a block can write for the next round while another still reads this one. It cannot write for
// the round after that, since for the next round it waits for what the other sends after it has read this one. So all
// threads must pass a barrier of their block between two rounds.
struct Exchange {
    float4 of_block[2][MOST_BLOCKS];
    uint64_t received[2];

    __device__ __forceinline__ void begin() {
        if (threadIdx.x == 0) {
            mbarrier::init(&received[0], 1);
            mbarrier::init(&received[1], 1);
            mbarrier::publish_inits();
        }
        __syncwarp();
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }

    // From here on all blocks have started and have their barriers.
    __device__ __forceinline__ void complete_begin() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

    // What each block of the cluster passed in `mine`, by rank; round 0, 1, 2, ... By all threads, with equal `mine`.
    __device__ __forceinline__ const float4* all(float4 mine, int round) {
        const int turn = round % 2, blocks = cluster_blocks();
        if (threadIdx.x == 0) mbarrier::expect(&received[turn], blocks * static_cast<int>(sizeof(float4)));
        if (threadIdx.x < blocks)
            send_to_block(threadIdx.x, &of_block[turn][cluster_rank()], &received[turn], mine);
        wait_for_messages(&received[turn], round / 2 % 2);
        return of_block[turn];
    }
};

}  // namespace
