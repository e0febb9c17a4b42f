// Products of a warpgroup (wgmma, sm_90a), based on the PTX ISA: 64 x N results, 16 terms deep, bf16 from shared
// memory, fp32 in registers.
//
// A warpgroup is four consecutive warps, the first with a number that is a multiple of four. Products are asynchronous:
//   fence()     before the first product, so that earlier writes to its registers are complete
//   multiply()  any number of products; those on the same registers are executed in order
//   commit()    makes them one group
//   wait<n>()   until all but the newest n groups are done: only then may their registers and memory be used again
//
// Results: lane l of warp w of the warpgroup holds, for every 8 columns j, sum[4 * j + 2 * h + i] = row
// 16 * w + l / 4 + 8 * h, column 8 * j + 2 * (l % 4) + i, for h and i in {0, 1}.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "mbarrier.cuh"

namespace {
namespace wgmma {

constexpr int M = 64, K = 16;

// Describes rows of 64 bf16 (128 bytes, the terms side by side) in the 128-byte swizzle, as tma.cuh writes them.
//   bits  0-13  address / 16
//   bits 16-29  leading offset / 16: not used in this layout, 1
//   bits 32-45  stride / 16 from one group of eight rows to the next: 1024 bytes
//   bits 49-51  base offset: 0, since atoms are aligned to 1024 bytes
//   bits 62-63  1: swizzle of 128 bytes
// The swizzle works on address bits, so 16 terms further (32 bytes) is 2 further in the address field, within the atom.
// Addresses in shared memory fit into the low word, so offsets require no 64-bit addition.
__device__ __forceinline__ uint32_t describe_low(const void* tile) {
    return (shared_address(tile) & 0x3FFFF) >> 4 | 1 << 16;
}
__device__ __forceinline__ uint64_t describe(uint32_t low) { return low | uint64_t{64} << 32 | uint64_t{1} << 62; }
__device__ __forceinline__ uint64_t describe(const void* tile) { return describe(describe_low(tile)); }

constexpr int NEXT_K = K * 2 / 16;    // 16 terms further
constexpr int NEXT_M = M * 128 / 16;  // 64 rows further

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int Pending>
__device__ __forceinline__ void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// For the compiler, what wait does: it moves neither reads of `sum` before this nor writes to it after this.
template <int Count>
__device__ __forceinline__ void pin(float (&sum)[Count]) {
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sum[i])::"memory");
}

#define WARPLOG_SUM8(i)                                                                                        \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), \
        "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define WARPLOG_SUM32(i) WARPLOG_SUM8(i), WARPLOG_SUM8(i + 8), WARPLOG_SUM8(i + 16), WARPLOG_SUM8(i + 24)

// sum = a * b^T, plus the old sum if `add` is not 0; `a` describes 64 rows, `b` 2 * Count rows, which are columns of
// the result.
__device__ __forceinline__ void multiply(float (&sum)[32], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, p, 1, 1, 0, 0;\n"
        "}\n"
        : WARPLOG_SUM32(0)
        : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void multiply(float (&sum)[64], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0;\n"
        "}\n"
        : WARPLOG_SUM32(0), WARPLOG_SUM32(32)
        : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void multiply(float (&sum)[128], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, p, 1, 1, 0, 0;\n"
        "}\n"
        : WARPLOG_SUM32(0), WARPLOG_SUM32(32), WARPLOG_SUM32(64), WARPLOG_SUM32(96)
        : "l"(a), "l"(b), "r"(add));
}

#undef WARPLOG_SUM32
#undef WARPLOG_SUM8

__device__ __forceinline__ uint32_t pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

// Stores the results of a warpgroup, 64 rows starting at (row, column), from registers to C [M, N], N even. Streaming:
// L2 evicts these lines first.
template <bool Streaming = false, int Count>
__device__ __forceinline__ void store(const float (&sum)[Count], __nv_bfloat16* C, int row, int column, int M, int N) {
    const int thread = threadIdx.x % 128;
    const int first_row = row + thread / 32 * 16 + thread % 32 / 4, first_column = column + thread % 4 * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        if (first_row + 8 * h >= M) continue;
        __nv_bfloat16* c = C + static_cast<size_t>(first_row + 8 * h) * N + first_column;
#pragma unroll
        for (int j = 0; j < Count / 4; ++j) {
            if (first_column + 8 * j >= N) continue;
            unsigned* to = reinterpret_cast<unsigned*>(c + 8 * j);
            const unsigned pair = pack(sum[4 * j + 2 * h], sum[4 * j + 2 * h + 1]);
            if constexpr (Streaming)
                __stcs(to, pair);
            else
                *to = pair;
        }
    }
}

// Transposes among the four threads of a quad: thread q gets part[q] of each of them, in their order.
__device__ __forceinline__ void transpose_in_quad(uint32_t (&part)[4]) {
#pragma unroll
    for (int step = 2; step > 0; step /= 2) {
        const bool upper = threadIdx.x & step;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if (i & step) continue;
            uint32_t &low = part[i], &high = part[i + step];
            const uint32_t received = __shfl_xor_sync(0xFFFFFFFF, upper ? low : high, step);
            low = upper ? received : low;
            high = upper ? high : received;
        }
    }
}

// As store with Streaming, 16 bytes per thread and 64 consecutive bytes of a row: the threads of a quad exchange their
// parts of four times 8 columns. N a multiple of 8, C aligned to 16 bytes. By all threads of the warpgroup.
template <int Count>
__device__ __forceinline__ void store_wide(const float (&sum)[Count], __nv_bfloat16* C, int row, int column, int M,
                                           int N) {
    const int thread = threadIdx.x % 128;
    const int first_row = row + thread / 32 * 16 + thread % 32 / 4, first_column = column + thread % 4 * 8;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        __nv_bfloat16* c = C + static_cast<size_t>(first_row + 8 * h) * N + first_column;
#pragma unroll
        for (int j = 0; j < Count / 4; j += 4) {
            uint32_t part[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) part[i] = pack(sum[4 * (j + i) + 2 * h], sum[4 * (j + i) + 2 * h + 1]);
            transpose_in_quad(part);
            if (first_row + 8 * h < M && first_column + 8 * j < N)
                __stcs(reinterpret_cast<uint4*>(c + 8 * j), make_uint4(part[0], part[1], part[2], part[3]));
        }
    }
}

}  // namespace wgmma

// Stores four 8x8 matrices of 16-bit elements to shared memory: lane l passes the address of row l % 8 of matrix l / 8
// and two elements of each matrix, row l / 4, columns 2 * (l % 4) and 2 * (l % 4) + 1.
__device__ __forceinline__ void stmatrix(void* row, uint32_t m0, uint32_t m1, uint32_t m2, uint32_t m3) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(m0),
                 "r"(m1), "r"(m2), "r"(m3)
                 : "memory");
}

// Moves registers between warpgroups: each of the four warps must call it, in one branch per warpgroup. Count is a
// multiple of 8 from 24 to 256; raise_registers waits until the pool of the block has enough.
template <int Count>
__device__ __forceinline__ void lower_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
}

template <int Count>
__device__ __forceinline__ void raise_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
}

}  // namespace
