// Rows of a matrix of fp32 or bf16, in packs of 16 bytes, and values that the threads of a row combine.
//
// A pack starts on 16 bytes, whatever its row starts on. So rows of any length are read 16 bytes at a time, except for
// their first and last packs, which may not be full.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

// Internal to each shared object, as in workspace.cuh.
namespace {
namespace rows {

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename T>
__device__ __forceinline__ T from_float(float value) {
    if constexpr (sizeof(T) == 4)
        return value;
    else
        return __float2bfloat16_rn(value);
}

// Four fp32 or eight bf16.
template <typename T>
struct Pack {
    static constexpr int SIZE = 16 / sizeof(T);
    uint32_t word[4];

    __device__ __forceinline__ float operator[](int i) const {
        if constexpr (sizeof(T) == 4) return __uint_as_float(word[i]);
        return __uint_as_float(i % 2 ? word[i / 2] & 0xFFFF0000 : word[i / 2] << 16);
    }

    // As [i], by another instruction. Otherwise the compiler keeps what it once computed until the next use, which for
    // bf16 takes twice the registers of the pack.
    __device__ __forceinline__ float again(int i) const {
        if constexpr (sizeof(T) == 4) return __uint_as_float(word[i]);
        uint32_t bits;
        if (i % 2)
            asm volatile("prmt.b32 %0, %1, 0, 0x3244;" : "=r"(bits) : "r"(word[i / 2]));  // bytes 3, 2, zero, zero
        else
            asm volatile("prmt.b32 %0, %1, 0, 0x1044;" : "=r"(bits) : "r"(word[i / 2]));  // bytes 1, 0, zero, zero
        return __uint_as_float(bits);
    }

    __device__ __forceinline__ float max() const {
        if constexpr (sizeof(T) == 4) {
            return fmaxf(fmaxf((*this)[0], (*this)[1]), fmaxf((*this)[2], (*this)[3]));
        } else {  // two at a time
            const __nv_bfloat162 pair = __hmax2(__hmax2(pair_of(0), pair_of(1)), __hmax2(pair_of(2), pair_of(3)));
            return fmaxf(__low2float(pair), __high2float(pair));
        }
    }

    // Inserts an element before the others, of which the last is lost.
    __device__ __forceinline__ void push(T element) {
        if constexpr (sizeof(T) == 4) {
            word[3] = word[2], word[2] = word[1], word[1] = word[0], word[0] = __float_as_uint(element);
        } else {
#pragma unroll
            for (int w = 3; w > 0; --w) word[w] = word[w] << 16 | word[w - 1] >> 16;
            word[0] = word[0] << 16 | __bfloat16_as_ushort(element);
        }
    }

    // Removes the first element.
    __device__ __forceinline__ T pop() {
        if constexpr (sizeof(T) == 4) {
            const T element = __uint_as_float(word[0]);
            word[0] = word[1], word[1] = word[2], word[2] = word[3];
            return element;
        } else {
            const T element = __ushort_as_bfloat16(static_cast<unsigned short>(word[0]));
#pragma unroll
            for (int w = 0; w < 3; ++w) word[w] = word[w] >> 16 | word[w + 1] << 16;
            word[3] >>= 16;
            return element;
        }
    }

   private:
    __device__ __forceinline__ __nv_bfloat162 pair_of(int w) const {
        return *reinterpret_cast<const __nv_bfloat162*>(&word[w]);
    }
};

template <typename T>
__device__ __forceinline__ Pack<T> filled(float value) {
    const uint32_t bits = __float_as_uint(value), twice = bits | bits >> 16;
    const uint32_t word = sizeof(T) == 4 ? bits : twice;
    return {{word, word, word, word}};
}

// Rounds to nearest.
template <typename T>
__device__ __forceinline__ Pack<T> packed(const float (&value)[Pack<T>::SIZE]) {
    Pack<T> pack;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        if constexpr (sizeof(T) == 4) {
            pack.word[w] = __float_as_uint(value[w]);
        } else {
            const __nv_bfloat162 pair = __floats2bfloat162_rn(value[2 * w], value[2 * w + 1]);
            pack.word[w] = *reinterpret_cast<const uint32_t*>(&pair);
        }
    }
    return pack;
}

__host__ __device__ __forceinline__ int bytes_past_16(const void* address) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(address) % 16);
}

// One row of a matrix. Its pack p holds the columns first(p) .. first(p) + SIZE - 1, as far as they exist.
// ALIGNED: all packs are whole, since rows start on 16 bytes and have a multiple of SIZE columns.
template <typename T, bool ALIGNED>
struct Row {
    static constexpr int SIZE = Pack<T>::SIZE;
    const T* data;
    int columns, shift;  // shift: elements from 16 bytes to the first column

    __host__ __device__ __forceinline__ Row(const T* matrix, size_t row, int columns)
        : data(matrix + row * columns), columns(columns), shift(ALIGNED ? 0 : bytes_past_16(data) / int(sizeof(T))) {}

    __host__ __device__ __forceinline__ int packs() const { return (shift + columns - 1) / SIZE + 1; }
    __host__ __device__ __forceinline__ int first(int p) const { return p * SIZE - shift; }
    __host__ __device__ __forceinline__ bool holds(int p, int i) const {
        return static_cast<unsigned>(first(p) + i) < static_cast<unsigned>(columns);
    }
    // Whether all columns of pack p are in the row.
    __host__ __device__ __forceinline__ bool is_whole(int p) const {
        return first(p) >= 0 && first(p) + SIZE <= columns;
    }
    // Columns of the row in pack p, which may lie beyond the row.
    __host__ __device__ __forceinline__ int count(int p) const {
        const int begin = first(p) > 0 ? first(p) : 0, end = first(p) + SIZE < columns ? first(p) + SIZE : columns;
        return end > begin ? end - begin : 0;
    }

    // Pack p of the row; where it holds no column, `fill`, which is 0 or infinite.
    __device__ __forceinline__ Pack<T> load(int p, float fill) const { return load_from(data, p, fill); }

    // The columns of pack p from `array`, which has one element per column.
    __device__ __forceinline__ Pack<T> load_from(const T* __restrict__ array, int p, float fill) const {
        Pack<T> pack = filled<T>(fill);
        const T* from = array + first(p);
        if (is_whole(p) && (ALIGNED || bytes_past_16(from) == 0)) {
            const uint4 wide = __ldg(reinterpret_cast<const uint4*>(from));
            pack = {{wide.x, wide.y, wide.z, wide.w}};
        } else if (!ALIGNED && first(p) < columns) {
#pragma unroll 1  // rare: short code and few registers
            for (int i = SIZE - 1; i >= 0; --i) pack.push(holds(p, i) ? from[i] : from_float<T>(fill));
        }
        return pack;
    }

    // Writes the columns of pack p to `out`, the same row of another matrix.
    __device__ __forceinline__ void store(T* out, int p, const float (&value)[SIZE]) const {
        Pack<T> pack = packed<T>(value);
        T* to = out + first(p);
        if (is_whole(p) && (ALIGNED || bytes_past_16(to) == 0)) {
            *reinterpret_cast<uint4*>(to) = make_uint4(pack.word[0], pack.word[1], pack.word[2], pack.word[3]);
        } else if (!ALIGNED && first(p) < columns) {
#pragma unroll 1
            for (int i = 0; i < SIZE; ++i) {
                const T element = pack.pop();
                if (holds(p, i)) to[i] = element;
            }
        }
    }
};

// Whether rows of this length are ALIGNED in all of the arrays.
template <typename T, typename... Arrays>
bool are_aligned(int columns, Arrays... arrays) {
    return columns % Pack<T>::SIZE == 0 && ((bytes_past_16(arrays) == 0) && ...);
}

// Threads per SM for which kernels that keep a row in registers leave registers: 1536, or all that Turing has.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int RESIDENT_THREADS = 1024;
#else
constexpr int RESIDENT_THREADS = 1536;
#endif

// The threads of a block, whole warps, in which each thread has at most `per_thread` of the packs.
inline int threads_for(int packs, int per_thread) { return ((packs - 1) / per_thread / 32 + 1) * 32; }

// Calls launch with a value of the type that has `element_bytes` bytes: float or __nv_bfloat16.
template <typename Launch>
cudaError_t by_type(int element_bytes, Launch launch) {
    if (element_bytes == 4) return launch(float{});
    return element_bytes == 2 ? launch(__nv_bfloat16{}) : cudaErrorInvalidValue;
}

struct Sum {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};

struct Max {
    __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

__device__ __forceinline__ float other_lane(float value, int distance) {
    return __shfl_xor_sync(~0u, value, distance);
}

// Over each LANES consecutive lanes of a warp; the result is in all of them. By whole warps.
template <int LANES, typename Value, typename Combine>
__device__ __forceinline__ Value over_lanes(Value value, Combine combine) {
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) value = combine(value, other_lane(value, distance));
    return value;
}

// Over a block; the result is in all threads. `part` is shared memory for one value per warp that nothing else uses;
// `none` changes no value that it is combined with.
template <typename Value, typename Combine>
__device__ __forceinline__ Value over_block(Value value, Value none, Value (&part)[32], Combine combine) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = over_lanes<32>(value, combine);
    if (lane == 0) part[warp] = value;
    __syncthreads();
    return over_lanes<32>(lane < int(blockDim.x) / 32 ? part[lane] : none, combine);
}

}  // namespace rows
}  // namespace
