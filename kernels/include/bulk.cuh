// Bulk copies of contiguous bytes (sm_90), based on the PTX ISA: from global to shared memory, both on 16 bytes, with a
// length that is a multiple of 16 bytes. One thread requests a copy, and no register holds data in flight.
#pragma once

#include <cuda_runtime.h>

#include "mbarrier.cuh"

// Internal to each shared object, as in cublas.cuh.
namespace {
namespace bulk {

// The bytes are reported to `barrier`, which must expect them.
__device__ __forceinline__ void load(void* to, const void* from, int bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes),
                 "r"(shared_address(barrier))
                 : "memory");
}

// By every thread that wrote or read shared memory, before a bulk copy accesses it.
__device__ __forceinline__ void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace bulk
}  // namespace
