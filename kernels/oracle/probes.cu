// probes: kernels with known results. `probe` selects one, `amount` its size.
//
// Idea         A measuring chain is right if it finds what is known: the time of a spin, the bytes of a copy, the
//              instructions of straight-line code, the passes of a bank conflict, the sectors of an address pattern,
//              the resource that limits occupancy, the reason of a stall. family.yaml lists the quantity of each probe
//              and its expected value.
// Expected     Every verdict of `snakemake oracle` is right.
// Cost         None: the probes are not meant to be fast.
// Constraints  n as each probe requires (family.yaml has it); x holds integers from 0 to 255, y = times * x + adds.
// Source       Each header names the sources of its kernels.

#include <cuda_runtime.h>

#include <mutex>

#include "arithmetic.cuh"
#include "banks.cuh"
#include "clock.cuh"
#include "memory.cuh"
#include "occupancy.cuh"
#include "stalls.cuh"

namespace {

enum Probe {
    SPIN_CYCLES = 0,
    SPIN_NANOSECONDS = 1,
    COPY = 10,
    SECTORS = 11,
    MISALIGNED = 12,
    FFMA = 20,
    DFMA = 21,
    HFMA2 = 22,
    IMAD = 23,
    IADD3 = 24,
    MMA = 25,
    CONFLICT = 30,
    STRIDE_2 = 31,
    BROADCAST = 32,
    VECTOR = 33,
    BY_BLOCKS = 40,
    BY_WARPS = 41,
    BY_SHARED_MEMORY = 42,
    BY_REGISTERS = 43,
    SPILL = 44,
    LONG_SCOREBOARD = 50,
    SHORT_SCOREBOARD = 51,
    MIO_THROTTLE = 52,
    LG_THROTTLE = 53,
    TEX_THROTTLE = 54,
    BARRIER = 55,
    MEMBAR = 56,
    MATH_PIPE_THROTTLE = 57,
    WAIT = 58,
    NO_INSTRUCTION = 59,
    DRAIN = 60,
    IMC_MISS = 61,
    BRANCH_RESOLVING = 62,
    SLEEPING = 63,
    NOT_SELECTED = 64,
};

constexpr int COUNT_THREADS = 256, COPY_THREADS = 256;

// A texture of x, created at the first call for this array and kept, since launches in flight may still use it.
cudaError_t texture_of(const float* x, int n, cudaTextureObject_t* texture) {
    static const float* words = nullptr;
    static int length = 0;
    static cudaTextureObject_t made = 0;
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (words != x || length != n) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = const_cast<float*>(x);
        resource.res.linear.desc = cudaCreateChannelDesc<float>();
        resource.res.linear.sizeInBytes = n * sizeof(float);
        cudaTextureDesc reading = {};
        reading.readMode = cudaReadModeElementType;
        const cudaError_t error = cudaCreateTextureObject(&made, &resource, &reading, nullptr);
        if (error != cudaSuccess) return error;
        words = x;
        length = n;
    }
    *texture = made;
    return cudaSuccess;
}

template <int SECTORS>
cudaError_t touch(const float* x, float* y, int n, cudaStream_t stream) {
    touch_sectors<SECTORS><<<n / (8 * SECTORS) * 32 / COPY_THREADS, COPY_THREADS, 0, stream>>>(x, y);
    return cudaGetLastError();
}

cudaError_t touch(int sectors, const float* x, float* y, int n, cudaStream_t stream) {
    switch (sectors) {
        case 1: return touch<1>(x, y, n, stream);
        case 2: return touch<2>(x, y, n, stream);
        case 4: return touch<4>(x, y, n, stream);
        case 8: return touch<8>(x, y, n, stream);
        case 16: return touch<16>(x, y, n, stream);
        case 32: return touch<32>(x, y, n, stream);
        default: return cudaErrorInvalidValue;
    }
}

// The length of straight-line code is fixed at compile time: there are two lengths.
template <int LENGTH>
cudaError_t count(int probe, const float* x, float* y, int n, cudaStream_t stream) {
    const int blocks = n / COUNT_THREADS;
    switch (probe) {
        case FFMA: count_ffma<LENGTH><<<blocks, COUNT_THREADS, 0, stream>>>(x, y, 1.0f); break;
        case DFMA: count_dfma<LENGTH><<<blocks, COUNT_THREADS, 0, stream>>>(x, y, 1.0); break;
        case HFMA2: count_hfma2<LENGTH><<<blocks, COUNT_THREADS, 0, stream>>>(x, y, 1.0f); break;
        case IMAD: count_imad<LENGTH><<<blocks, COUNT_THREADS, 0, stream>>>(x, y, 1); break;
        case IADD3: count_iadd3<LENGTH><<<blocks, COUNT_THREADS, 0, stream>>>(x, y, 1, 0); break;
        case MMA: count_mma<LENGTH><<<blocks / 4, COUNT_THREADS, 0, stream>>>(x, y, HALF_ONES); break;
        default: return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

cudaError_t stall(int probe, const float* x, float* y, int n, int rounds, cudaStream_t stream) {
    const int lonely = n / ALONE, crowded = n / CROWD;
    switch (probe) {
        case LONG_SCOREBOARD: stall_long_scoreboard<<<lonely, ALONE, 0, stream>>>(x, y, n, rounds); break;
        case SHORT_SCOREBOARD: stall_short_scoreboard<<<lonely, ALONE, 0, stream>>>(x, y, rounds); break;
        case MIO_THROTTLE: stall_mio_throttle<<<crowded, CROWD, 0, stream>>>(x, y, rounds); break;
        case LG_THROTTLE: stall_lg_throttle<<<crowded, CROWD, 0, stream>>>(x, y, rounds); break;
        case TEX_THROTTLE: {
            cudaTextureObject_t texture = 0;
            const cudaError_t error = texture_of(x, n, &texture);
            if (error != cudaSuccess) return error;
            stall_tex_throttle<<<crowded, CROWD, 0, stream>>>(texture, x, y, rounds);
            break;
        }
        case BARRIER: stall_barrier<<<crowded, CROWD, 0, stream>>>(x, y, rounds, 1.0f); break;
        case MEMBAR: stall_membar<<<lonely, ALONE, 0, stream>>>(x, y, rounds); break;
        case MATH_PIPE_THROTTLE:
            stall_math_pipe_throttle<<<crowded, CROWD, 0, stream>>>(x, y, rounds, HALF_ONES);
            break;
        case WAIT: stall_wait<<<lonely, ALONE, 0, stream>>>(x, y, rounds, 1.0f); break;
        case NO_INSTRUCTION: stall_no_instruction<<<lonely, ALONE, 0, stream>>>(x, y, rounds, 1.0f); break;
        case DRAIN:
            stall_drain<<<n / 4 / DRAIN_THREADS, DRAIN_THREADS, DRAIN_SHARED_BYTES, stream>>>(
                reinterpret_cast<float4*>(y));
            break;
        case IMC_MISS: stall_imc_miss<<<lonely, ALONE, 0, stream>>>(x, y, rounds); break;
        case BRANCH_RESOLVING: stall_branch_resolving<<<lonely, ALONE, 0, stream>>>(x, y, rounds, 1); break;
        case SLEEPING: stall_sleeping<<<lonely, ALONE, 0, stream>>>(x, y, rounds); break;
        case NOT_SELECTED: stall_not_selected<<<crowded, CROWD, 0, stream>>>(x, y, rounds, 1.0f, 0, 1); break;
        default: return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}

}  // namespace

extern "C" int launch(const float* x, float* y, int n, int probe, int amount, cudaStream_t stream) {
    switch (probe) {
        case SPIN_CYCLES: spin_cycles<<<1, 1, 0, stream>>>(y, amount); break;
        case SPIN_NANOSECONDS: spin_nanoseconds<<<1, 1, 0, stream>>>(y, amount); break;
        case COPY:
            copy_known_bytes<<<(n / 4 - 1) / COPY_THREADS + 1, COPY_THREADS, 0, stream>>>(
                reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y), n / 4);
            break;
        case SECTORS: return touch(amount, x, y, n, stream);
        case MISALIGNED: touch_misaligned<<<n / COPY_THREADS, COPY_THREADS, 0, stream>>>(x, y, n); break;
        case CONFLICT: bank_conflict<<<n / BANK_THREADS, BANK_THREADS, 0, stream>>>(x, y, amount); break;
        case STRIDE_2: bank_stride<2><<<n / BANK_THREADS, BANK_THREADS, 0, stream>>>(x, y); break;
        case BROADCAST: bank_broadcast<<<n / BANK_THREADS, BANK_THREADS, 0, stream>>>(x, y); break;
        case VECTOR: bank_vector<<<n / BANK_THREADS, BANK_THREADS, 0, stream>>>(x, y); break;
        case BY_BLOCKS: limited_by_blocks<<<n / FEW_THREADS, FEW_THREADS, 0, stream>>>(x, y); break;
        case BY_WARPS: limited_by_warps<<<n / MANY_THREADS, MANY_THREADS, 0, stream>>>(x, y); break;
        case BY_SHARED_MEMORY:
            limited_by_shared_memory<<<n / SHARED_THREADS, SHARED_THREADS, 0, stream>>>(x, y);
            break;
        case BY_REGISTERS:
            limited_by_registers<<<n / (HELD * HOLD_THREADS), HOLD_THREADS, 0, stream>>>(x, y);
            break;
        case SPILL: forced_to_spill<<<n / (HELD * SPILL_THREADS), SPILL_THREADS, 0, stream>>>(x, y); break;
        default:
            return probe >= LONG_SCOREBOARD ? stall(probe, x, y, n, amount, stream)
                   : amount == 128          ? count<128>(probe, x, y, n, stream)
                   : amount == 256          ? count<256>(probe, x, y, n, stream)
                                            : cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}
