// Launches that last a known time: one thread spins, then leaves `1` behind.
//
// A number of cycles is a time only through the SM's clock, which the timing core and ncu measure: cycles / MHz = us.
// The nanoseconds of the global timer need no clock, but it may advance in steps of 1 us: they start at 10 us.
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
