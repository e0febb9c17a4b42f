// What wgmma_pipelined and wgmma_persistent share: the barriers of the ring with libcu++. A thread that waits also
// arrives: the producer's thread and every thread of the consumers arrive at `full` and at `empty` once per use of a
// stage.
#pragma once

#include <cuda/barrier>

#include <cstdint>
#include <new>

#include "mbarrier.cuh"

namespace {

template <int Consumers, int Stages>
class ThreadBarriers {
   public:
    // By one thread, before the __syncthreads after which the others use the barriers.
    __device__ void init() {
        for (int s = 0; s < Stages; ++s) {
            new (full_[s]) Barrier(Consumers * 128 + 1);
            new (empty_[s]) Barrier(Consumers * 128 + 1);
        }
        mbarrier::publish_inits();
    }

    // By the producer: waits until every consumer is done with the stage and announces the bytes to be loaded. Returns
    // the barrier for TMA.
    __device__ __forceinline__ uint64_t* claim(int stage, int bytes) {
        Barrier& empty = *reinterpret_cast<Barrier*>(empty_[stage]);
        Barrier& full = *reinterpret_cast<Barrier*>(full_[stage]);
        empty.wait(empty.arrive());
        (void)cuda::device::barrier_arrive_tx(full, 1, bytes);
        return cuda::device::barrier_native_handle(full);
    }

    // By every thread of a consumer: waits for the bytes of the stage.
    __device__ __forceinline__ void wait_full(int stage) {
        Barrier& full = *reinterpret_cast<Barrier*>(full_[stage]);
        full.wait(full.arrive());
    }

    // By every thread of a consumer: once per stage at the start, and then whenever it has read a stage.
    __device__ __forceinline__ void give_back(int stage) {
        (void)reinterpret_cast<Barrier*>(empty_[stage])->arrive();
    }

   private:
    using Barrier = cuda::barrier<cuda::thread_scope_block>;

    // As bytes, since objects with constructors are not allowed in shared memory.
    alignas(Barrier) uint8_t full_[Stages][sizeof(Barrier)];
    alignas(Barrier) uint8_t empty_[Stages][sizeof(Barrier)];
};

}  // namespace
