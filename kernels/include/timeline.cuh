// Timelines from inside a kernel: what each warp does, and when, without counters.
//
//   TIMELINE_TRACK(track);    at the start, by all threads: a local variable or a member
//   TIMELINE(track, WAIT);    from here on the warp waits, until the next mark or the end of the track's scope
//
// The marks compile to nothing unless WARPLOG_TIMELINE is defined. `snakemake timeline` builds the kernel a second
// time with it; the build that is timed has the same machine code as without the marks.
//
// A warp is at one place at a time, so its regions do not overlap, and a mark is one event: the region and the low word
// of clock64, the clock of the SM, written by the first lane to the warp's part of a buffer in global memory. The start
// and the end of a track are recorded in clock64 and in globaltimer, which all SMs share but which advances in steps of
// up to a microsecond: together they align the SMs. Events beyond the warp's part are counted, but not written.
//
// A mark orders neither arithmetic nor loads: a region of plain multiply-adds may begin a few instructions earlier or
// later. Waits and barriers are exact, since they are volatile, as the marks are.
#pragma once

#ifndef WARPLOG_TIMELINE

#define TIMELINE_TRACK(track)
#define TIMELINE(track, region)

#else

#include <cuda_runtime.h>

#define TIMELINE_TRACK(track) timeline::Track track
#define TIMELINE(track, region) (track).enter<timeline::region>()

// Internal to each shared object that includes this.
namespace {
namespace timeline {

// As in warplog/metrics/tracks.py.
enum Region : unsigned {
    NONE,      // no region
    LOAD,      // requests data from global memory
    WAIT,      // waits for data or for a free stage
    COMPUTE,   // computes, and issues products
    STORE,     // writes results
    HANDOVER,  // leaves partial sums for another block, or takes those of one, including the wait for them
    LOOKBACK,  // waits for the sums of the tiles before its own
    SYNC,      // waits for the other warps of its block
};

// The layouts are read in warplog/parsers/timeline_buffer.py.
struct Event {
    unsigned clock, region;  // the low word of clock64
};

struct WarpRecord {
    unsigned long long begin_clock, end_clock, begin_ns, end_ns;  // clock64 and globaltimer
    unsigned sm, block, warp, events;                             // events: including those beyond the warp's part
};

struct Head {
    unsigned kernels;          // marked kernels that were launched
    unsigned blocks, threads;  // grid and threads per block of the last one
    unsigned lost_warps;       // warps without a record
};

struct Buffer {
    Head* head;
    WarpRecord* warps;
    Event* events;                     // `most_events` for each warp
    unsigned most_warps, most_events;  // their product is below 2^32
};

__constant__ Buffer buffer;

class Track {
   public:
    __device__ __forceinline__ Track() {
        if (thread() % 32 != 0 || buffer.head == nullptr) return;
        const unsigned index = warp_index();
        if (index == 0) {
            atomicAdd(&buffer.head->kernels, 1u);
            buffer.head->blocks = gridDim.x * gridDim.y * gridDim.z;
            buffer.head->threads = threads();
        }
        if (index >= buffer.most_warps) {
            atomicAdd(&buffer.head->lost_warps, 1u);
            return;
        }
        WarpRecord& record = buffer.warps[index];
        unsigned sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        record.sm = sm;
        record.block = block();
        record.warp = thread() / 32;
        next_ = index * buffer.most_events;
        end_ = next_ + buffer.most_events;
        stamp(&record.begin_clock, &record.begin_ns);
    }

    __device__ __forceinline__ ~Track() {
        if (thread() % 32 != 0 || buffer.head == nullptr) return;
        const unsigned index = warp_index();
        if (index >= buffer.most_warps) return;
        WarpRecord& record = buffer.warps[index];
        stamp(&record.end_clock, &record.end_ns);
        record.events = next_ - index * buffer.most_events;
    }

    Track(const Track&) = delete;
    Track& operator=(const Track&) = delete;

    // Without a branch, so that it may stand between asynchronous products.
    template <Region R>
    __device__ __forceinline__ void enter() const {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            ".reg .u32 now;\n"
            "setp.lt.u32 p, %0, %1;\n"
            "mov.u32 now, %%clock;\n"
            "@p st.global.v2.u32 [%2], {now, %3};\n"
            "}\n" ::"r"(next_),
            "r"(end_), "l"(buffer.events + next_), "r"(static_cast<unsigned>(R)));
        ++next_;
    }

   private:
    __device__ __forceinline__ static unsigned thread() {
        return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    }
    __device__ __forceinline__ static unsigned threads() { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ __forceinline__ static unsigned block() {
        return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    }
    __device__ __forceinline__ static unsigned warp_index() {
        return block() * ((threads() + 31) / 32) + thread() / 32;
    }
    __device__ __forceinline__ static void stamp(unsigned long long* clock, unsigned long long* ns) {
        unsigned long long now, here;
        asm volatile("mov.u64 %0, %%globaltimer;\nmov.u64 %1, %%clock64;" : "=l"(now), "=l"(here));
        *clock = here, *ns = now;
    }

    // The slot of the next event and the end of the warp's part; both 0 in lanes that record nothing.
    mutable unsigned next_ = 0;
    unsigned end_ = 0;
};

}  // namespace timeline
}  // namespace

// Sets the buffer that the marks write to; called before a launch. `buffer` is a timeline::Buffer.
extern "C" int warplog_timeline(const void* buffer) {
    return cudaMemcpyToSymbol(timeline::buffer, buffer, sizeof(timeline::Buffer));
}

#endif
