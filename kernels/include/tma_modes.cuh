// Copies by TMA (sm_90) in any of its swizzle modes, based on the CUDA driver API: boxes of a row-major int32 matrix.
// tma.cuh has the bf16 boxes in the 128-byte swizzle.
//
// A box has rows of `row_bytes` bytes, one after the other. In the swizzle of 32, 64 or 128 bytes, which permits rows
// of at most that length, the 16-byte piece at an offset lies at place(offset): bits 4 and up of the offset are XORed
// with bits 7 and up, one, two or three bits. So the pieces of a 128-byte line are permuted, and the permutation is
// repeated after 256, 512 or 1024 bytes, the atom of the mode, to which a box must be aligned.
#pragma once

#include "tma.cuh"

// Internal to each shared object, as in tma.cuh.
namespace {
namespace tma {

// Swizzle: 0 (none), 32, 64 or 128 bytes.
template <int Swizzle>
__host__ __device__ constexpr int place(int offset) {
    static_assert(Swizzle == 0 || Swizzle == 32 || Swizzle == 64 || Swizzle == 128, "the modes of sm_90");
    constexpr int MASK = Swizzle == 0 ? 0 : Swizzle / 16 - 1;
    return offset ^ (offset >> 7 & MASK) << 4;
}

// The map of one matrix of `rows` x `columns` int32 and of boxes of box_rows x box_columns, encoded again if the matrix
// differs. `data` on 16 bytes, `columns` a multiple of 4.
template <int Swizzle>
class IntegerMap {
   public:
    cudaError_t describe(const int* data, int rows, int columns, int box_rows, int box_columns) {
        if (data == data_ && rows == rows_ && columns == columns_) return cudaSuccess;
        constexpr CUtensorMapSwizzle MODE = Swizzle == 0    ? CU_TENSOR_MAP_SWIZZLE_NONE
                                            : Swizzle == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                            : Swizzle == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                                            : CU_TENSOR_MAP_SWIZZLE_128B;
        Encode encode = nullptr;
        const cudaError_t error = find_encoder(&encode);
        if (error != cudaSuccess) return error;
        const cuuint64_t extent[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
        const cuuint64_t pitch[] = {static_cast<cuuint64_t>(columns) * sizeof(int)};
        const cuuint32_t box[] = {static_cast<cuuint32_t>(box_columns), static_cast<cuuint32_t>(box_rows)};
        const cuuint32_t step[] = {1, 1};
        data_ = nullptr;
        const CUresult result = encode(&map_, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, const_cast<int*>(data), extent, pitch,
                                       box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, MODE,
                                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (result != CUDA_SUCCESS) return cudaErrorInvalidValue;
        data_ = data, rows_ = rows, columns_ = columns;
        return cudaSuccess;
    }

    const CUtensorMap& map() const { return map_; }

   private:
    CUtensorMap map_{};
    const void* data_ = nullptr;
    int rows_ = 0, columns_ = 0;
};

}  // namespace tma
}  // namespace
