// Products of a warpgroup in the other types of tensor cores (wgmma, sm_90a), based on the PTX ISA: 64 x 256 results.
//
// Whatever the type, the tiles in shared memory have rows of 128 bytes in the 128-byte swizzle, and a product takes 32
// bytes of each row: 8 tf32, 16 fp16 or bf16, 32 int8 or fp8. So wgmma.cuh describes them all, NEXT_K included. Both
// operands have their terms side by side, the only layout for types that are not 16 bits wide.
//
// Results lie as in wgmma.cuh. Sums in fp16 are packed in pairs: sum[2 * j + h] holds what are sum[4 * j + 2 * h] and
// the next one otherwise, the first in the low half.
#pragma once

#include <cstdint>

#include "wgmma.cuh"

namespace {
namespace wgmma {

// What is multiplied, and what the sums are in if it is not fp32 or int32.
struct Tf32 {};
struct Fp16 {};
struct Fp16InFp16 {};
struct Bf16 {};
struct Int8 {};
struct E4m3 {};

#define WARPLOG_NAMES64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WARPLOG_NAMES128 \
    WARPLOG_NAMES64 ", " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WARPLOG_SUM8(mode, i) \
    mode(sum[i]), mode(sum[i + 1]), mode(sum[i + 2]), mode(sum[i + 3]), mode(sum[i + 4]), mode(sum[i + 5]), \
        mode(sum[i + 6]), mode(sum[i + 7])
#define WARPLOG_SUM32(mode, i) \
    WARPLOG_SUM8(mode, i), WARPLOG_SUM8(mode, i + 8), WARPLOG_SUM8(mode, i + 16), WARPLOG_SUM8(mode, i + 24)
#define WARPLOG_SUM64(mode, i) WARPLOG_SUM32(mode, i), WARPLOG_SUM32(mode, i + 32)

// sum = a * b^T, plus the old sum if `add` is not 0; `a` describes 64 rows, `b` 256 rows, which are columns of the
// result. `options` are the signs of the operands and, for 16 bits, their order; integers have none.
#define WARPLOG_MULTIPLY(type, instruction, sum_type, mode, options) \
    __device__ __forceinline__ void multiply(type, sum_type(&sum)[128], uint64_t a, uint64_t b, int add) { \
        asm volatile( \
            "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n" \
            "wgmma.mma_async.sync.aligned.m64n256" instruction " {" WARPLOG_NAMES128 "}, %128, %129, p" options ";\n}\n" \
            : WARPLOG_SUM64(mode, 0), WARPLOG_SUM64(mode, 64) \
            : "l"(a), "l"(b), "r"(add)); \
    }

WARPLOG_MULTIPLY(Tf32, "k8.f32.tf32.tf32", float, "+f", ", 1, 1")
WARPLOG_MULTIPLY(Fp16, "k16.f32.f16.f16", float, "+f", ", 1, 1, 0, 0")
WARPLOG_MULTIPLY(Bf16, "k16.f32.bf16.bf16", float, "+f", ", 1, 1, 0, 0")
WARPLOG_MULTIPLY(Int8, "k32.s32.s8.s8", int, "+r", "")
WARPLOG_MULTIPLY(E4m3, "k32.f32.e4m3.e4m3", float, "+f", ", 1, 1")

__device__ __forceinline__ void multiply(Fp16InFp16, uint32_t (&sum)[64], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f16.f16.f16 {" WARPLOG_NAMES64 "}, %64, %65, p, 1, 1, 0, 0;\n}\n"
        : WARPLOG_SUM64("+r", 0)
        : "l"(a), "l"(b), "r"(add));
}

#undef WARPLOG_MULTIPLY
#undef WARPLOG_SUM64
#undef WARPLOG_SUM32
#undef WARPLOG_SUM8
#undef WARPLOG_NAMES128
#undef WARPLOG_NAMES64

// As pin in wgmma.cuh.
template <typename Sum, int Count>
__device__ __forceinline__ void pin(Sum (&sum)[Count]) {
    static_assert(sizeof(Sum) == 4, "one register each");
#pragma unroll
    for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(sum[i])::"memory");
}

}  // namespace wgmma
}  // namespace
