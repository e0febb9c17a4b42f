// What the warps of a row tell each other (sm_90), once: four floats from each warp of a cluster to all.
//
// Based on the PTX ISA (st.async). As in exchange.cuh, but each warp sends to all blocks itself. So the warps of a
// block need no barrier before that, and one wait replaces the barrier and the wait for the other blocks.
//
// A block that is launched without a cluster takes ordinary stores and a barrier of the block instead. A cluster of one
// block would do, but compute-sanitizer (2025.3) reports each of its st.async as an invalid write, and its start
// invalidates L1.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "exchange.cuh"
#include "mbarrier.cuh"

// Internal to each shared object, as in workspace.cuh.
namespace {

// In shared memory. All warps of the cluster, at most WARPS in each of up to BLOCKS blocks, call begin, complete_begin,
// send and all once each, in this order.
//
// No block exits before the last store to it has arrived: its warps wait for the messages of all warps in `all`.
template <int WARPS, int BLOCKS = MOST_BLOCKS>
struct WarpExchange {
    float4 of_warp[BLOCKS * WARPS];
    uint64_t received;

    __device__ __forceinline__ void begin() {
        if (BLOCKS > 1 && threadIdx.x == 0) {
            mbarrier::init(&received, 1);
            mbarrier::publish_inits();
        }
        __syncwarp();
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    }

    // From here on all blocks have started and have their barriers.
    __device__ __forceinline__ void complete_begin() {
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    }

    // The index of this cluster, or block, in a grid of one dimension.
    static __device__ __forceinline__ int cluster() {
        if constexpr (BLOCKS == 1) return blockIdx.x;
        uint32_t index;
        asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
        return static_cast<int>(index);
    }

    // The index of this warp among those of the cluster, block by block, and their number.
    static __device__ __forceinline__ int warp() {
        return ((BLOCKS > 1 ? cluster_rank() * blockDim.x : 0) + threadIdx.x) / 32;
    }
    static __device__ __forceinline__ int warps() { return (BLOCKS > 1 ? cluster_blocks() : 1) * blockDim.x / 32; }

    // By whole warps, with equal `mine`.
    __device__ __forceinline__ void send(float4 mine) {
        const int lane = threadIdx.x % 32;
        if constexpr (BLOCKS == 1) {
            if (lane == 0) of_warp[warp()] = mine;
        } else {
            if (threadIdx.x == 0) mbarrier::expect(&received, warps() * static_cast<int>(sizeof(float4)));
            if (lane < cluster_blocks()) send_to_block(lane, &of_warp[warp()], &received, mine);
        }
    }

    // What each warp of the cluster sent, by warp().
    __device__ __forceinline__ const float4* all() {
        if constexpr (BLOCKS == 1)
            __syncthreads();
        else
            wait_for_messages(&received, 0);
        return of_warp;
    }
};

}  // namespace
