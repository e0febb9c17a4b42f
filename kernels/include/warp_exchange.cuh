// What the warps of a cluster tell each other (sm_90), based on the PTX ISA (st.async): four floats from each to all.
//
// As in exchange.cuh, but each warp sends to all blocks itself. So the warps of a block need no barrier before that,
// and one wait replaces the barrier and the wait for the other blocks. A cluster may be a single block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "exchange.cuh"
#include "mbarrier.cuh"

// Internal to each shared object, as in workspace.cuh.
namespace {

// The index of this cluster in a grid of one dimension, and the number of clusters.
__device__ __forceinline__ int cluster_index() {
    uint32_t index;
    asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
    return static_cast<int>(index);
}

__device__ __forceinline__ int cluster_count() {
    uint32_t count;
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(count));
    return static_cast<int>(count);
}

// In shared memory. All warps of the cluster, at most WARPS per block, call begin, complete_begin, and then `all`
// equally often.
//
// Two buffers take turns. A warp sends for round r + 2 once it has received round r + 1 from every warp, and each of
// them sent that after it had read round r: its place is free. For the same reason no warp still waits for round r when
// round r + 2, which has the same parity, is complete.
template <int WARPS>
struct WarpExchange {
    float4 of_warp[2][MOST_BLOCKS * WARPS];
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

    // The index of this warp among those of the cluster, block by block, and their number.
    static __device__ __forceinline__ int warp() { return (cluster_rank() * blockDim.x + threadIdx.x) / 32; }
    static __device__ __forceinline__ int warps() { return cluster_blocks() * blockDim.x / 32; }

    // What each warp of the cluster passed in `mine`, by warp(); round 0, 1, 2, ... By whole warps, with equal `mine`.
    __device__ __forceinline__ const float4* all(float4 mine, int round) {
        const int turn = round % 2, lane = threadIdx.x % 32;
        if (threadIdx.x == 0) mbarrier::expect(&received[turn], warps() * static_cast<int>(sizeof(float4)));
        if (lane < cluster_blocks()) send(&of_warp[turn][warp()], &received[turn], lane, mine);
        mbarrier::wait(&received[turn], round / 2 % 2);
        return of_warp[turn];
    }

   private:
    // Stores `value` to the same place of block `rank`, and reports the bytes to the same barrier there.
    static __device__ __forceinline__ void send(float4* to, uint64_t* barrier, int rank, float4 value) {
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
};

}  // namespace
