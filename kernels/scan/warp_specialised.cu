// warp_specialised: loading, summing, looking back and scanning are the work of different warps, so none waits in line.
//
// Idea         A tile of `decoupled_lookback` ends when all tiles before it have published their sums; till then its
//              block loads nothing: one late load among a thousand, and all tiles behind it hold their registers. Here
//              a block stays, and its shared memory is a ring of tiles, which pass through it in order:
//                producer    takes a tile's number and has the copy engine fetch it, as soon as a stage is free
//                summers     add it up when it has come, publish its sum, and leave each lane the sum before it
//                looker      adds what was published since this block's tile before, and so knows where it starts
//                scanners    scan it without a shuffle, turn it in its place, 16 bytes a lane, and write it
//              A late load stops the scanners, but loads and sums go on until the ring is full. Each block adds up all
//              sums itself, so no PREFIX is published and no tile waits for another's look-back: for 2^26 elements all
//              SMs together read 8 MB from L2 for it. They add in a fixed order, whichever block had the tile.
//              A lane owns QUADS consecutive quads, and QUADS is odd: eight lanes read all 32 banks.
// Expected     Near a copy's bandwidth, 4/3 of the parent: the ring is under way, whatever the look-back does. A model
//              with loads so late that they explain the parent has 128 us of memory at 2^26 elements; a copy 124.
// Cost         All of shared memory, read three times and written twice; of a small n few SMs have a tile.
// Constraints  sm_90, any n >= 1. Arrays that do not start on 16 bytes are moved float by float. Workspace as the
//              parent. The bits of the result are the same in every run. Numbers are taken when there is a stage, and a
//              block's tiles leave in their order, so the first unfinished tile waits for nothing but its load: it
//              always ends, however many blocks the GPU holds.
// Source       D. Merrill and M. Garland, Single-pass parallel prefix scan with decoupled look-back, NVIDIA 2016; CUDA
//              C++ Programming Guide, asynchronous data copies; PTX ISA, cp.async.bulk and mbarrier.

#include <cuda_runtime.h>

#include <algorithm>

#include "bulk.cuh"
#include "lookback.cuh"
#include "mbarrier.cuh"
#include "tile.cuh"

constexpr int WARPS = BLOCK / 32;        // of the summers, and of the scanners
constexpr int THREADS = 2 * BLOCK + 64;  // summers, scanners, producer, looker
constexpr int TRIP = 8;                  // words a lane asks for at once: 256 tiles, more than between two of a block

static_assert(QUADS % 2 == 1, "an even stride of quads reads the same banks twice");
static_assert(THREADS <= 1024, "a block has 1024 threads at most");

using Turn = mbarrier::Turn<STAGES>;

struct alignas(128) Ring {
    float4 quads[STAGES][TILE / 4];
    float before[STAGES][BLOCK];  // for a thread: the sum of the lanes before it in its warp
    float sums[STAGES][WARPS];    // of the warps' segments
    float start[STAGES];          // the sum of all tiles before
    unsigned tile[STAGES];        // its number; not a tile's after the last
    uint64_t full[STAGES], summed[STAGES], started[STAGES], empty[STAGES];
};

// All that one launch is about.
struct Job {
    const float* x;
    float* out;
    Word* words;  // the counter, then what the tiles publish
    unsigned n, tiles;
    bool aligned;

    // Whether the copy engine can move it.
    __device__ __forceinline__ bool whole(unsigned tile) const { return aligned && (tile + 1) * TILE <= n; }
};

// One warp. What is no multiple of 16 bytes, or does not start on one, the lanes move themselves, float by float.
__device__ __forceinline__ void produce(Ring& ring, const Job& job) {
    const unsigned lane = threadIdx.x % 32;
    unsigned tile = 0;
    for (Turn turn; tile < job.tiles; turn.advance()) {
        uint64_t* full = &ring.full[turn.stage];
        mbarrier::wait(&ring.empty[turn.stage], turn.parity ^ 1);
        if (lane == 0) ring.tile[turn.stage] = tile = static_cast<unsigned>(atomicAdd(job.words, Word{1}));
        tile = __shfl_sync(~0u, tile, 0);
        const float* from = job.x + tile * TILE;
        float* to = reinterpret_cast<float*>(ring.quads[turn.stage]);
        const unsigned count = tile < job.tiles ? min(TILE, job.n - tile * TILE) : 0;
        const unsigned wide = job.aligned ? count / 4 * 4 : 0;  // floats that the copy engine brings
#pragma unroll 8
        for (unsigned i = wide + lane; i < TILE && count > 0; i += 32) to[i] = i < count ? from[i] : 0.0f;
        if (lane > 0) {
            mbarrier::arrive(full);
        } else {
            mbarrier::expect(full, wide * sizeof(float));
            if (wide > 0) bulk::load(to, from, wide * sizeof(float), full);
        }
    }
}

// Waits until the next tile of the ring has come; false after the last one.
__device__ __forceinline__ bool next_tile(Ring& ring, const Turn& turn, const Job& job, unsigned* tile) {
    mbarrier::wait(&ring.full[turn.stage], turn.parity);
    *tile = ring.tile[turn.stage];
    return *tile < job.tiles;
}

// BLOCK threads.
__device__ __forceinline__ void sum_up(Ring& ring, const Job& job) {
    const int thread = threadIdx.x % BLOCK, warp = thread / 32, lane = thread % 32;
    volatile Word* published = job.words + 1;
    unsigned tile;
    for (Turn turn; next_tile(ring, turn, job, &tile); turn.advance()) {
        const float4* quads = ring.quads[turn.stage] + thread * QUADS;
        float up_to = 0.0f;
#pragma unroll
        for (int q = 0; q < QUADS; ++q) up_to += (quads[q].x + quads[q].y) + (quads[q].z + quads[q].w);
#pragma unroll
        for (int s = 1; s < 32; s *= 2) {
            const float other = __shfl_up_sync(~0u, up_to, s);
            if (lane >= s) up_to += other;
        }
        const float left = __shfl_up_sync(~0u, up_to, 1);
        ring.before[turn.stage][thread] = lane > 0 ? left : 0.0f;
        if (lane == 31) ring.sums[turn.stage][warp] = up_to;
        mbarrier::arrive(&ring.summed[turn.stage]);
        if (warp > 0) continue;
        mbarrier::wait(&ring.summed[turn.stage], turn.parity);
        const float total = warp_sum(lane < WARPS ? ring.sums[turn.stage][lane] : 0.0f);
        if (lane == 0) {
            published[tile] = pack(SUM, total);
            mbarrier::arrive(&ring.empty[turn.stage]);
        }
    }
}

// Adds to `sum` what the tiles from `next` to before `tile` have published, every 32nd of them; waits until they have.
__device__ __forceinline__ void add_sums(const volatile Word* published, unsigned tile, unsigned* next, float* sum) {
    Word word[TRIP] = {};
    bool missing;
    do {
        missing = false;
#pragma unroll
        for (int i = 0; i < TRIP; ++i)
            if (*next + 32 * i < tile && word[i] >> 32 == NOTHING) word[i] = published[*next + 32 * i];
#pragma unroll
        for (int i = 0; i < TRIP; ++i) missing |= *next + 32 * i < tile && word[i] >> 32 == NOTHING;
    } while (missing);
#pragma unroll
    for (int i = 0; i < TRIP; ++i) *sum += __uint_as_float(static_cast<unsigned>(word[i]));  // 0 where there is none
    *next += min((tile + 31 - *next) / 32, static_cast<unsigned>(TRIP)) * 32;
}

// One warp. Lane l adds the sums of the tiles l, l + 32, l + 64, ...
__device__ __forceinline__ void look_back(Ring& ring, const Job& job) {
    const unsigned lane = threadIdx.x % 32;
    unsigned tile, next = lane;
    float sum = 0.0f;
    for (Turn turn; next_tile(ring, turn, job, &tile); turn.advance()) {
        while (next < tile) add_sums(job.words + 1, tile, &next, &sum);
        __syncwarp();
        const float start = warp_sum(sum);
        if (lane == 0) {
            ring.start[turn.stage] = start;
            mbarrier::arrive(&ring.started[turn.stage]);
        }
    }
}

// Writes a warp's segment of a tile, which it has scanned, and frees its place. One warp.
__device__ __forceinline__ void bring_out(const float4* from, const Job& job, unsigned tile, uint64_t* empty) {
    const unsigned lane = threadIdx.x % 32, first = tile * TILE + threadIdx.x % BLOCK / 32 * SEGMENT;
    float4 quad[QUADS];
#pragma unroll
    for (int q = 0; q < QUADS; ++q) quad[q] = from[q * 32 + lane];
    __syncwarp();
    if (lane == 0) mbarrier::arrive(empty);
#pragma unroll
    for (int q = 0; q < QUADS; ++q) {
        const unsigned at = first + (q * 32 + lane) * 4;
        if (job.whole(tile)) *reinterpret_cast<float4*>(job.out + at) = quad[q];
        else store_quad<false>(job.out, at, job.n, quad[q]);
    }
}

// BLOCK threads, each the same part of a tile as in sum_up.
__device__ __forceinline__ void scan(Ring& ring, const Job& job) {
    const int thread = threadIdx.x % BLOCK, warp = thread / 32;
    unsigned tile;
    for (Turn turn; next_tile(ring, turn, job, &tile); turn.advance()) {
        float4 quad[QUADS];
        float4* quads = ring.quads[turn.stage] + thread * QUADS;
#pragma unroll
        for (int q = 0; q < QUADS; ++q) quad[q] = quads[q];
        mbarrier::wait(&ring.summed[turn.stage], turn.parity);
        float up_to = ring.before[turn.stage][thread];
#pragma unroll
        for (int w = 0; w < WARPS; ++w) up_to += w < warp ? ring.sums[turn.stage][w] : 0.0f;
        mbarrier::wait(&ring.started[turn.stage], turn.parity);
        up_to += ring.start[turn.stage];
#pragma unroll
        for (int q = 0; q < QUADS; ++q) {
            quad[q].x += up_to;
            quad[q].y += quad[q].x;
            quad[q].z += quad[q].y;
            up_to = quad[q].w += quad[q].z;
            quads[q] = quad[q];
        }
        bulk::publish_writes();  // the copy engine writes here next
        __syncwarp();
        bring_out(ring.quads[turn.stage] + warp * (SEGMENT / 4), job, tile, &ring.empty[turn.stage]);
    }
}

__global__ void __launch_bounds__(THREADS) scan_warp_specialised(const __grid_constant__ Job job) {
    extern __shared__ __align__(128) unsigned char memory[];
    Ring& ring = *reinterpret_cast<Ring*>(memory);
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier::init(&ring.full[s], 32);
            mbarrier::init(&ring.summed[s], BLOCK);
            mbarrier::init(&ring.started[s], 1);
            mbarrier::init(&ring.empty[s], WARPS + 1);  // the scanners, and who publishes the sum
        }
        mbarrier::publish_inits();
    }
    __syncthreads();
    if (threadIdx.x < BLOCK) sum_up(ring, job);
    else if (threadIdx.x < 2 * BLOCK) scan(ring, job);
    else if (threadIdx.x < 2 * BLOCK + 32) produce(ring, job);
    else look_back(ring, job);
}

extern "C" int launch(const float* x, float* out, int n, cudaStream_t stream) {
    const int tiles = tiles_of(n);
    int device = 0, sms = 0, per_sm = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) error = cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(scan_warp_specialised, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Ring));
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, scan_warp_specialised, THREADS, sizeof(Ring));
    Word* words = nullptr;
    if (error == cudaSuccess) error = cleared_words(tiles, &words, stream);
    if (error != cudaSuccess) return error;
    const Job job{x, out, words, static_cast<unsigned>(n), static_cast<unsigned>(tiles), on_16_bytes(x, out)};
    const int blocks = std::min(tiles, sms * std::max(per_sm, 1));
    scan_warp_specialised<<<blocks, THREADS, sizeof(Ring), stream>>>(job);
    return cudaGetLastError();
}
