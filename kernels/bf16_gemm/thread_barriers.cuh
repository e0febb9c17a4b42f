// What wgmma_pipelined and wgmma_persistent share: the ring's barriers as libcu++ has them. Whoever waits arrives too:
// the producer's thread and every thread of the consumers, at `full` and at `empty`, once each use of a stage.
#pragma once

#include <cuda/barrier>

#include <cstdint>
#include <new>

#include "mbarrier.cuh"

namespace {

template <int Consumers, int Stages>
class ThreadBarriers {
   public:
    // By one thread, before the __syncthreads that lets the others at them.
    __device__ void init() {
        for (int s = 0; s < Stages; ++s) {
            new (full_[s]) Barrier(Consumers * 128 + 1);
            new (empty_[s]) Barrier(Consumers * 128 + 1);
        }
        mbarrier::publish_inits();
    }

    // By the producer: until every consumer is done with the stage; then the bytes that are to come are announced.
    // Returns the barrier for the copy engine.
    __device__ __forceinline__ uint64_t* claim(int stage, int bytes) {
        Barrier& empty = *reinterpret_cast<Barrier*>(empty_[stage]);
        Barrier& full = *reinterpret_cast<Barrier*>(full_[stage]);
        empty.wait(empty.arrive());
        (void)cuda::device::barrier_arrive_tx(full, 1, bytes);
        return cuda::device::barrier_native_handle(full);
    }

    // By every thread of a consumer: until the stage's bytes are there.
    __device__ __forceinline__ void wait_full(int stage) {
        Barrier& full = *reinterpret_cast<Barrier*>(full_[stage]);
        full.wait(full.arrive());
    }

    // By every thread of a consumer: once for each stage at the start, and then whenever it has read one.
    __device__ __forceinline__ void give_back(int stage) {
        (void)reinterpret_cast<Barrier*>(empty_[stage])->arrive();
    }

   private:
    using Barrier = cuda::barrier<cuda::thread_scope_block>;

    // As bytes, for nothing with a constructor may lie in shared memory.
    alignas(Barrier) uint8_t full_[Stages][sizeof(Barrier)];
    alignas(Barrier) uint8_t empty_[Stages][sizeof(Barrier)];
};

}  // namespace
