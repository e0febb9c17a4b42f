// Products of a warp (mma, sm_80) and the loads of their operands (ldmatrix, cp.async), based on the PTX ISA.
#pragma once

#include <cstdint>

namespace {
namespace mma {

// Starts a copy of 16 bytes from global to shared memory; `bytes` (0 or 16) are read, the rest is zero.
__device__ __forceinline__ void copy_async(void* to, const void* from, int bytes) {
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the newest Pending groups of this thread are complete.
template <int Pending>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Loads four 8x8 matrices of 16-bit elements: lane l passes the address of row l % 8 of matrix l / 8 and gets two
// elements of each matrix, row l / 4, columns 2 * (l % 4) and 2 * (l % 4) + 1.
__device__ __forceinline__ void load_matrices(uint32_t (&to)[4], const void* row) {
    const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

// sum += a * b^T, 16 x 8 results, 16 terms. sum[2 * h + i] is row l / 4 + 8 * h, column 2 * (l % 4) + i.
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

}  // namespace mma
}  // namespace
