// warp_specialised: different warps load, sum, look back and scan, so that loads and sums go on while a tile waits for
// its start.
//
// Idea         A tile of `decoupled_lookback` ends when all tiles before it have published their sums, and until then
//              its block loads nothing: one late load in a thousand makes all tiles behind it wait in registers. Here
//              blocks are persistent, and the shared memory of a block is a ring of tiles, which pass through it in
//              order.
//              The producer takes the number of a tile and requests a bulk copy of it as soon as a stage is free. The
//              summing warps add up a loaded tile, publish its sum, and store for each lane the sum before it. The
//              look-back warp adds the sums published since the previous tile of this block and so knows where the tile
//              starts. The scanning warps scan the tile without a shuffle, rearrange it in place so that a lane has 16
//              bytes, and write it.
//              A late load stops the scanning warps, but loads and sums continue until the ring is full. Each block
//              adds up all sums itself, so no PREFIX is published and no tile waits for another's look-back: for 2^26
//              elements, all SMs together read 8 MB from L2 for this. Every block adds the sums in the same order,
//              whichever block had the tile. A lane owns QUADS consecutive quads, and QUADS is odd, so that eight lanes
//              read all 32 banks.
// Expected     Near the bandwidth of a copy, 4/3 times its parent: the ring keeps loading, whatever the look-back does.
//              A model with loads as late as it takes to explain the parent's time predicts 128 us at 2^26 elements; a
//              copy takes 124.
// Cost         The ring takes all of shared memory, and each element is written there twice and read three times; with
//              a small n, few SMs have a tile.
// Constraints  sm_90, any n >= 1. Arrays not aligned to 16 bytes are moved float by float. Workspace as for its parent.
//              The result is bitwise the same in every run. Tile numbers are taken when a stage is free, and the tiles
//              of a block leave in order, so the first unfinished tile waits only for its load: the kernel always ends,
//              however many blocks the GPU holds.
// Source       D. Merrill and M. Garland, Single-pass parallel prefix scan with decoupled look-back, NVIDIA 2016; CUDA
//              C++ Programming Guide, asynchronous data copies; PTX ISA, cp.async.bulk and mbarrier.

#include <cuda_runtime.h>

#include <algorithm>

#include "bulk.cuh"
#include "lookback.cuh"
#include "mbarrier.cuh"
#include "tile.cuh"
#include "timeline.cuh"

constexpr int WARPS = BLOCK / 32;        // of the summers, and of the scanners
constexpr int THREADS = 2 * BLOCK + 64;  // summers, scanners, producer, looker
// Words that a lane loads at once: 256 tiles per warp, more than lie between two tiles of a block.
constexpr int TRIP = 8;

static_assert(QUADS % 2 == 1, "with an even stride of quads, lanes conflict in the banks");
static_assert(THREADS <= 1024, "a block has at most 1024 threads");

using Turn = mbarrier::Turn<STAGES>;

struct alignas(128) Ring {
    float4 quads[STAGES][TILE / 4];
    float before[STAGES][BLOCK];  // for a thread: the sum of the lanes before it in its warp
    float sums[STAGES][WARPS];    // of the warps' segments
    float start[STAGES];          // the sum of all tiles before
    unsigned tile[STAGES];        // its number; after the last tile, a number that is too large
    uint64_t full[STAGES], summed[STAGES], started[STAGES], empty[STAGES];
};

// The arguments of one launch.
struct Job {
    const float* x;
    float* out;
    Word* words;  // the counter, then what the tiles publish
    unsigned n, tiles;
    bool aligned;

    // Whether the tile is full and its quads are aligned.
    __device__ __forceinline__ bool whole(unsigned tile) const { return aligned && (tile + 1) * TILE <= n; }
};

// By one warp. Bytes that are not a multiple of 16, or not aligned to 16, are copied by the lanes, float by float.
__device__ __forceinline__ void produce(Ring& ring, const Job& job) {
    TIMELINE_TRACK(track);
    const unsigned lane = threadIdx.x % 32;
    unsigned tile = 0;
    for (Turn turn; tile < job.tiles; turn.advance()) {
        uint64_t* full = &ring.full[turn.stage];
        TIMELINE(track, WAIT);
        mbarrier::wait(&ring.empty[turn.stage], turn.parity ^ 1);
        TIMELINE(track, LOAD);
        if (lane == 0) ring.tile[turn.stage] = tile = static_cast<unsigned>(atomicAdd(job.words, Word{1}));
        tile = __shfl_sync(~0u, tile, 0);
        const float* from = job.x + tile * TILE;
        float* to = reinterpret_cast<float*>(ring.quads[turn.stage]);
        const unsigned count = tile < job.tiles ? min(TILE, job.n - tile * TILE) : 0;
        const unsigned wide = job.aligned ? count / 4 * 4 : 0;  // floats that the bulk copy loads
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

// Waits until the next tile of the ring is loaded; false after the last one.
__device__ __forceinline__ bool next_tile(Ring& ring, const Turn& turn, const Job& job, unsigned* tile) {
    mbarrier::wait(&ring.full[turn.stage], turn.parity);
    *tile = ring.tile[turn.stage];
    return *tile < job.tiles;
}

// By BLOCK threads.
__device__ __forceinline__ void sum_up(Ring& ring, const Job& job) {
    TIMELINE_TRACK(track);
    TIMELINE(track, WAIT);
    const int thread = threadIdx.x % BLOCK, warp = thread / 32, lane = thread % 32;
    volatile Word* published = job.words + 1;
    unsigned tile;
    for (Turn turn; next_tile(ring, turn, job, &tile); turn.advance()) {
        TIMELINE(track, COMPUTE);
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
        TIMELINE(track, WAIT);
        if (warp > 0) continue;
        mbarrier::wait(&ring.summed[turn.stage], turn.parity);
        const float total = warp_sum(lane < WARPS ? ring.sums[turn.stage][lane] : 0.0f);
        if (lane == 0) {
            published[tile] = pack(SUM, total);
            mbarrier::arrive(&ring.empty[turn.stage]);
        }
    }
}

// Adds to `sum` the published sums of every 32nd tile from `next` to before `tile`; waits until they are published.
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
    for (int i = 0; i < TRIP; ++i) *sum += __uint_as_float(static_cast<unsigned>(word[i]));  // 0 if there is none
    *next += min((tile + 31 - *next) / 32, static_cast<unsigned>(TRIP)) * 32;
}

// By one warp. Lane l adds the sums of the tiles l, l + 32, l + 64, ...
__device__ __forceinline__ void look_back(Ring& ring, const Job& job) {
    TIMELINE_TRACK(track);
    TIMELINE(track, WAIT);
    const unsigned lane = threadIdx.x % 32;
    unsigned tile, next = lane;
    float sum = 0.0f;
    for (Turn turn; next_tile(ring, turn, job, &tile); turn.advance()) {
        TIMELINE(track, LOOKBACK);
        while (next < tile) add_sums(job.words + 1, tile, &next, &sum);
        __syncwarp();
        const float start = warp_sum(sum);
        if (lane == 0) {
            ring.start[turn.stage] = start;
            mbarrier::arrive(&ring.started[turn.stage]);
        }
        TIMELINE(track, WAIT);
    }
}

// Writes the segment of a tile that the warp has scanned and frees its place. By one warp.
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

// By BLOCK threads, each with the same part of a tile as in sum_up.
__device__ __forceinline__ void scan(Ring& ring, const Job& job) {
    TIMELINE_TRACK(track);
    TIMELINE(track, WAIT);
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
        TIMELINE(track, COMPUTE);
        up_to += ring.start[turn.stage];
#pragma unroll
        for (int q = 0; q < QUADS; ++q) {
            quad[q].x += up_to;
            quad[q].y += quad[q].x;
            quad[q].z += quad[q].y;
            up_to = quad[q].w += quad[q].z;
            quads[q] = quad[q];
        }
        bulk::publish_writes();  // a bulk copy writes here next
        __syncwarp();
        TIMELINE(track, STORE);
        bring_out(ring.quads[turn.stage] + warp * (SEGMENT / 4), job, tile, &ring.empty[turn.stage]);
        TIMELINE(track, WAIT);
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
            mbarrier::init(&ring.empty[s], WARPS + 1);  // the warps of scanners, and the lane that publishes the sum
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
