// Functions that the Sanitizer API calls before each memory instruction of a patched kernel, with all active lanes.
#include <sanitizer_patching.h>

#include "trace.h"

#define CALLBACK extern "C" __device__ __noinline__ SanitizerPatchResult
static constexpr uint32_t NONE = 0xffffffffu;

static __device__ __forceinline__ uint32_t linear(uint3 at, dim3 extent) {
    return at.x + extent.x * (at.y + extent.y * at.z);
}

static __device__ __forceinline__ bool traced(const Trace* trace, uint32_t block) {
    return trace && block - trace->first_block < trace->blocks;  // without a trace, the launch is not recorded
}

// Takes `count` entries for the request of the lanes in `active`; returns the first one, NONE if they do not fit.
static __device__ __forceinline__ uint32_t take(Trace* trace, uint32_t active, uint32_t count) {
    const uint32_t leader = __ffs(active) - 1;
    uint32_t lane, first = NONE;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    if (lane == leader) {
        unsigned long long used;
        asm volatile("atom.global.add.u64 %0, [%1], %2;"
                     : "=l"(used)
                     : "l"(__cvta_generic_to_global(&trace->used)), "l"(static_cast<uint64_t>(count))
                     : "memory");
        if (used + count <= trace->capacity)
            first = static_cast<uint32_t>(used);
        else if (used < trace->capacity)
            trace->kept = used;
    }
    return __shfl_sync(active, first, leader);
}

static __device__ __forceinline__ void put(Trace* trace, uint32_t at, uint64_t pc, uint64_t address, uint32_t size,
                                           uint32_t active, uint32_t kind, uint32_t flags) {
    const uint32_t thread = linear(threadIdx, blockDim);
    const auto entry = __cvta_generic_to_global(trace->entries + at);
    asm volatile("st.global.u64 [%0], %1;" ::"l"(entry), "l"(address) : "memory");
    asm volatile("st.global.v2.u32 [%0 + 8], {%1, %2};" ::"l"(entry), "r"(linear(blockIdx, gridDim)),
                 "r"(static_cast<uint32_t>(pc))
                 : "memory");
    asm volatile("st.global.v2.u32 [%0 + 16], {%1, %2};" ::"l"(entry), "r"(active),
                 "r"(thread | size << 16 | kind << 24 | flags << 28)
                 : "memory");
}

static __device__ __forceinline__ SanitizerPatchResult by_lane(void* data, uint64_t pc, uint64_t address, uint32_t size,
                                                        uint32_t kind, uint32_t flags) {
    auto* trace = static_cast<Trace*>(data);
    if (!traced(trace, linear(blockIdx, gridDim))) return SANITIZER_PATCH_SUCCESS;
    const uint32_t active = __activemask();
    uint32_t below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    const uint32_t first = take(trace, active, __popc(active));
    if (first != NONE) put(trace, first + __popc(active & below), pc, address, size, active, kind, flags);
    return SANITIZER_PATCH_SUCCESS;
}

static __device__ __forceinline__ SanitizerPatchResult whole(void* data, uint64_t pc, uint64_t address, uint32_t bytes,
                                                      uint32_t kind, uint32_t flags, uint32_t receivers = 1) {
    auto* trace = static_cast<Trace*>(data);
    if (!traced(trace, linear(blockIdx, gridDim))) return SANITIZER_PATCH_SUCCESS;
    const uint32_t active = __activemask();
    uint32_t below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    const uint32_t first = take(trace, active, 1);
    if (first != NONE && !(active & below)) put(trace, first, pc, address, receivers, bytes, kind, flags);
    return SANITIZER_PATCH_SUCCESS;
}

// READ and WRITE at once are an atomic of any scope; the API has a flag of its own for those of the system only.
static __device__ __forceinline__ uint32_t flags_of(uint32_t flags) {
    return (flags & 0xfu) | ((flags & (READ | WRITE)) == (READ | WRITE) ? ATOMIC : 0u);
}

CALLBACK warplog_global(void* data, uint64_t pc, void* address, uint32_t size, uint32_t flags, const void*) {
    return by_lane(data, pc, reinterpret_cast<uint64_t>(address), size, GLOBAL, flags_of(flags));
}
CALLBACK warplog_shared(void* data, uint64_t pc, void* address, uint32_t size, uint32_t flags, const void*) {
    return by_lane(data, pc, reinterpret_cast<uint64_t>(address), size, SHARED, flags_of(flags));
}
CALLBACK warplog_local(void* data, uint64_t pc, void* address, uint32_t size, uint32_t flags, const void*) {
    return by_lane(data, pc, reinterpret_cast<uint64_t>(address), size, LOCAL, flags_of(flags));
}
CALLBACK warplog_remote(void* data, uint64_t pc, void* address, uint32_t size, uint32_t flags, const void*) {
    return by_lane(data, pc, reinterpret_cast<uint64_t>(address), size, REMOTE, flags_of(flags));
}
CALLBACK warplog_matrix(void* data, uint64_t pc, uint32_t address, uint32_t size, uint32_t flags, uint32_t matrices,
                        const void*) {
    if (linear(threadIdx, blockDim) % 32 >= 8 * matrices) size = 0;
    return by_lane(data, pc, address, size, flags & WRITE ? STMATRIX : LDMATRIX, flags_of(flags));
}
CALLBACK warplog_async(void* data, uint64_t pc, void* source, uint32_t target, uint32_t size) {
    by_lane(data, pc, reinterpret_cast<uint64_t>(source), source ? size : 0, ASYNC_GLOBAL, READ);
    return by_lane(data, pc, target, size, ASYNC_SHARED, WRITE);
}
CALLBACK warplog_async_store(void* data, uint64_t pc, uint32_t address, uint32_t, void*, uint32_t size) {
    return by_lane(data, pc, address, size, REMOTE, WRITE);
}
CALLBACK warplog_async_reduction(void* data, uint64_t pc, uint32_t address, uint32_t, uint32_t size) {
    return by_lane(data, pc, address, size, REMOTE, READ | WRITE | ATOMIC);
}
CALLBACK warplog_wgmma(void* data, uint64_t pc, uint32_t a, uint32_t bytes_a, uint32_t b, uint32_t bytes_b, uint32_t,
                       uint32_t mask) {
    if (!mask) return SANITIZER_PATCH_SUCCESS;
    if (bytes_a) whole(data, pc, a, bytes_a, WGMMA_A, READ);  // else A is in registers
    return whole(data, pc, b, bytes_b, WGMMA_B, READ);
}
CALLBACK warplog_bulk_in(void* data, uint64_t pc, uint64_t source, uint32_t target, uint32_t, uint32_t blocks_and_mask,
                         uint32_t multicast) {
    const uint32_t bytes = (blocks_and_mask & 0xffffu) * 16, receivers = multicast ? __popc(blocks_and_mask >> 16) : 1;
    whole(data, pc, source, bytes, BULK_GLOBAL, READ, receivers);
    return whole(data, pc, target, bytes, BULK_SHARED, WRITE, receivers);
}
CALLBACK warplog_bulk_out(void* data, uint64_t pc, uint64_t target, uint32_t source, uint32_t blocks) {
    whole(data, pc, source, blocks * 16, BULK_SHARED, READ);
    return whole(data, pc, target, blocks * 16, BULK_GLOBAL, WRITE);
}
CALLBACK warplog_bulk_across(void* data, uint64_t pc, uint32_t source, uint32_t target, uint32_t, uint32_t blocks) {
    whole(data, pc, source, blocks * 16, BULK_SHARED, READ);
    return whole(data, pc, target, blocks * 16, BULK_SHARED, WRITE);
}
CALLBACK warplog_bulk_reduce_out(void* data, uint64_t pc, uint64_t target, uint32_t source, uint32_t blocks) {
    whole(data, pc, source, blocks * 16, BULK_SHARED, READ);
    return whole(data, pc, target, blocks * 16, BULK_GLOBAL, READ | WRITE | ATOMIC);
}
CALLBACK warplog_bulk_reduce_across(void* data, uint64_t pc, uint32_t source, uint32_t target, uint32_t,
                                    uint32_t blocks) {
    whole(data, pc, source, blocks * 16, BULK_SHARED, READ);
    return whole(data, pc, target, blocks * 16, BULK_SHARED, READ | WRITE | ATOMIC);
}
