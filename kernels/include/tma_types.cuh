// Maps for TMA of matrices of any element type; the copies are those of tma.cuh.
#pragma once

#include "tma.cuh"

namespace {
namespace tma {

constexpr int BOX_BYTES_PER_ROW = 128;

// As Map in tma.cuh, for a type that is given at each call: a box has rows of 128 bytes, in the 128-byte swizzle.
class TypedMap {
   public:
    // `data` on 16 bytes, rows of a multiple of 16 bytes, `box_rows` at most 256.
    cudaError_t describe(CUtensorMapDataType type, int element_bytes, const void* data, int rows, int columns,
                         int box_rows) {
        const Described wanted = {type, element_bytes, data, rows, columns, box_rows};
        if (wanted == described_) return cudaSuccess;
        Encode encode = nullptr;
        const cudaError_t error = find_encoder(&encode);
        if (error != cudaSuccess) return error;
        const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
        const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * element_bytes};
        const cuuint32_t box[] = {static_cast<cuuint32_t>(BOX_BYTES_PER_ROW / element_bytes),
                                  static_cast<cuuint32_t>(box_rows)};
        const cuuint32_t step[] = {1, 1};
        described_ = {};
        const CUresult result =
            encode(&map_, type, 2, const_cast<void*>(data), extent, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (result != CUDA_SUCCESS) return cudaErrorInvalidValue;
        described_ = wanted;
        return cudaSuccess;
    }

    const CUtensorMap& map() const { return map_; }

   private:
    struct Described {
        CUtensorMapDataType type;
        int element_bytes;
        const void* data;
        int rows, columns, box_rows;

        bool operator==(const Described& other) const {
            return type == other.type && element_bytes == other.element_bytes && data == other.data &&
                   rows == other.rows && columns == other.columns && box_rows == other.box_rows;
        }
    };
    CUtensorMap map_{};
    Described described_{};
};

}  // namespace tma
}  // namespace
