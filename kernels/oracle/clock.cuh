// Launches with a known duration: one thread spins, then writes 1.
//
// Cycles become a time through the SM clock, which the timing core and ncu measure: cycles / MHz = us. Nanoseconds of
// the global timer do not depend on the clock, but the timer may advance in steps of 1 us, so these spins start at 10
// us.
#pragma once

#include <cuda_runtime.h>

__device__ __forceinline__ unsigned long long global_ns() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void spin_cycles(float* y, int cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
    y[0] = 1.0f;
}

__global__ void spin_nanoseconds(float* y, int nanoseconds) {
    const unsigned long long begin = global_ns();
    while (global_ns() - begin < nanoseconds) {
    }
    y[0] = 1.0f;
}
