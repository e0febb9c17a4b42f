// Copies of tensors by TMA (sm_90), based on the PTX ISA and the CUDA driver API: boxes of a row-major bf16 matrix to
// and from shared memory, in the 128-byte swizzle.
//
// A box has `box_rows` rows of 64 columns, 128 bytes. Row r lies at r * 128 bytes, and its 16-byte chunk c at place
// c ^ (r % 8) of the row: eight rows are one atom of 1024 bytes, to which the box must be aligned. Elements outside the
// matrix are read as zero, count as bytes that arrived, and are not written.
#pragma once

#include <cuda.h>  // types only: the function of the driver is looked up at run time
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "mbarrier.cuh"

// Internal to each shared object, as in cublas.cuh.
namespace {
namespace tma {

constexpr int BOX_COLUMNS = 64;
constexpr int ATOM_BYTES = 1024;

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

inline cudaError_t find_encoder(Encode* encode) {
    static Encode found = nullptr;
    if (!found) {
        void* address = nullptr;
        cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
        constexpr unsigned FIRST_VERSION = 12000;  // the CUDA version that introduced it
        const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, FIRST_VERSION,
                                                                   cudaEnableDefault, &result);
        if (error != cudaSuccess) return error;
        if (result != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;
        found = reinterpret_cast<Encode>(address);
    }
    *encode = found;
    return cudaSuccess;
}

// The map of one matrix, encoded again if the matrix differs. A launch copies it, so it may change afterwards.
class Map {
   public:
    // `data` on 16 bytes, `columns` a multiple of 8, `box_rows` at most 256.
    cudaError_t describe(const __nv_bfloat16* data, int rows, int columns, int box_rows) {
        if (data == data_ && rows == rows_ && columns == columns_ && box_rows == box_rows_) return cudaSuccess;
        Encode encode = nullptr;
        const cudaError_t error = find_encoder(&encode);
        if (error != cudaSuccess) return error;
        const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
        const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(__nv_bfloat16)};
        const cuuint32_t box[] = {BOX_COLUMNS, static_cast<cuuint32_t>(box_rows)};
        const cuuint32_t step[] = {1, 1};
        data_ = nullptr;
        const CUresult result =
            encode(&map_, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<__nv_bfloat16*>(data), extent, pitch, box,
                   step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (result != CUDA_SUCCESS) return cudaErrorInvalidValue;
        data_ = data, rows_ = rows, columns_ = columns, box_rows_ = box_rows;
        return cudaSuccess;
    }

    const CUtensorMap& map() const { return map_; }

   private:
    CUtensorMap map_{};
    const void* data_ = nullptr;
    int rows_ = 0, columns_ = 0, box_rows_ = 0;
};

// The first address in dynamic shared memory where an atom may start; request ATOM_BYTES more than the tiles take.
__device__ __forceinline__ uint8_t* align(uint8_t* shared) {
    return shared + (ATOM_BYTES - shared_address(shared) % ATOM_BYTES) % ATOM_BYTES;
}

__device__ __forceinline__ void prefetch(const CUtensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(reinterpret_cast<uint64_t>(&map)) : "memory");
}

// Loads the box whose first element is (row, column) to shared memory; its bytes are reported to `barrier`. One thread.
__device__ __forceinline__ void load(void* to, const CUtensorMap& map, int row, int column, uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(shared_address(to)), "l"(reinterpret_cast<uint64_t>(&map)), "r"(column), "r"(row),
        "r"(shared_address(barrier))
        : "memory");
}

// As load, to the same place of each block of the cluster in `mask`, with the same barrier in each.
__device__ __forceinline__ void load_multicast(void* to, const CUtensorMap& map, int row, int column, uint64_t* barrier,
                                               uint16_t mask) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(to)),
        "l"(reinterpret_cast<uint64_t>(&map)), "r"(column), "r"(row), "r"(shared_address(barrier)), "h"(mask)
        : "memory");
}

// By every thread that wrote shared memory, before the barrier after which one thread calls store.
__device__ __forceinline__ void publish_writes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// Stores a box from shared memory to (row, column), as a separate group. One thread, which also waits for it later.
__device__ __forceinline__ void store(const CUtensorMap& map, int row, int column, const void* from) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];\n"
        "cp.async.bulk.commit_group;" ::"l"(reinterpret_cast<uint64_t>(&map)),
        "r"(column), "r"(row), "r"(shared_address(from))
        : "memory");
}

// As store, for lines that are not read again soon: L2 evicts them before those of A and B.
__device__ __forceinline__ void store_streaming(const CUtensorMap& map, int row, int column, const void* from) {
    constexpr uint64_t EVICT_FIRST = 0x12F0000000000000;  // as created by createpolicy.fractional.L2::evict_first
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;\n"
        "cp.async.bulk.commit_group;" ::"l"(reinterpret_cast<uint64_t>(&map)),
        "r"(column), "r"(row), "r"(shared_address(from)), "l"(EVICT_FIRST)
        : "memory");
}

// Waits until all but the newest Pending stores of this thread have read their shared memory.
template <int Pending>
__device__ __forceinline__ void wait_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

}  // namespace tma
}  // namespace
