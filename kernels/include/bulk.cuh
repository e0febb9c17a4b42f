// The copy engine for plain runs of bytes (sm_90), after the PTX ISA: between global memory and shared memory, both on
// 16 bytes, a multiple of 16 bytes long. One thread asks, and no register holds what is under way.
#pragma once

#include <cuda_runtime.h>

#include "mbarrier.cuh"

// Internal to each shared object, as in cublas.cuh.
namespace {
namespace bulk {

// `barrier` sees the bytes arrive; it must have been told to expect them.
__device__ __forceinline__ void load(void* to, const void* from, int bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
                 "r"(shared_address(barrier))
                 : "memory");
}

// By every thread that wrote or read shared memory, before it lets the engine at it.
__device__ __forceinline__ void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Out of shared memory, as a group of its own. One thread, the one that waits for it later.
__device__ __forceinline__ void store(void* to, const void* from, int bytes) {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
        "cp.async.bulk.commit_group;" ::"l"(__cvta_generic_to_global(to)),
        "r"(shared_address(from)), "r"(bytes)
        : "memory");
}

// Until all but the newest Pending stores of this thread have read their shared memory.
template <int Pending>
__device__ __forceinline__ void wait_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

}  // namespace bulk
}  // namespace
