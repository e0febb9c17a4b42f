// The timing core with a second launcher: both take turns, and neither finds what the other left behind.
//
// A turn is a cold sample as in timer.cu. Before it, these are as the launcher would find them alone:
//   L2               flushed, and its persisting lines are normal ones again
//   device limits    those that its own launches have set
//   stream           its own, since a launcher may set attributes of it, such as an access window of L2
//
// The clock of events advances in steps (32 ns on an H100), which are 1 % of a kernel of 3 us. Between the stamp of the
// clocks, which ends with a tick, and the first event, one thread waits for a random time of up to many steps. Then the
// difference of the two events is one of two neighbouring numbers of steps, and their mean over many turns is the time.

#include "../measure/worker/timer.cu"

namespace {

constexpr cudaLimit kLimits[] = {cudaLimitPersistingL2CacheSize, cudaLimitMaxL2FetchGranularity};
constexpr int kLimitCount = sizeof(kLimits) / sizeof(kLimits[0]);

struct Side {
    Launcher launch = nullptr;
    const void* arguments = nullptr;
    cudaStream_t stream = nullptr;
    size_t limits[kLimitCount] = {};
};

__global__ void wait_cycles(unsigned cycles) {
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
}

}  // namespace

struct Pair {
    Timer* timer = nullptr;
    cudaStream_t own_stream = nullptr;  // of the timer
    Side sides[2];
    size_t limits[kLimitCount] = {};  // before the first launch, for the next pair of this process
    bool has_limit[kLimitCount] = {};  // older devices and some MIG instances have no persisting lines
};

struct Turn {
    float event_us;  // between the two events, including the empty interval
    float sm_mhz;    // mean SM clock between the stamps; 0 = unknown
    int blocked;     // as in ColdSample
};

// Gives the idle device to one side, until `leave`: what the timer launches is on its stream.
extern "C" int warplog_timer_enter(Pair* pair, int which) {
    Side& side = pair->sides[which];
    pair->timer->stream = side.stream;
    for (int i = 0; i < kLimitCount; ++i) {
        size_t value = 0;
        if (!pair->has_limit[i]) continue;
        TRY(cudaDeviceGetLimit(&value, kLimits[i]));
        if (value != side.limits[i]) TRY(cudaDeviceSetLimit(kLimits[i], side.limits[i]));
    }
    return pair->has_limit[0] ? cudaCtxResetPersistingL2Cache() : cudaSuccess;
}

extern "C" int warplog_timer_leave(Pair* pair, int which) {
    pair->timer->stream = pair->own_stream;
    for (int i = 0; i < kLimitCount; ++i)
        if (pair->has_limit[i]) TRY(cudaDeviceGetLimit(&pair->sides[which].limits[i], kLimits[i]));
    return cudaSuccess;
}

namespace {

cudaError_t take_turn(Timer& t, const Side& side, unsigned delay_cycles, int block, Turn* out) {
    const size_t stamp_bytes = kSmIdLimit * sizeof(Stamp);
    TRY(cudaMemsetAsync(t.stamps_before, 0, stamp_bytes, t.stream));
    TRY(cudaMemsetAsync(t.stamps_after, 0, stamp_bytes, t.stream));
    TRY(flush_l2_clean(t));
    t.flags[0] = 0;
    t.flags[1] = 0;
    if (block) block_stream<<<1, 1, 0, t.stream>>>(t.device_flags, t.device_flags + 1);
    TRY(cudaGetLastError());
    TRY(stamp(t, t.stamps_before));
    wait_cycles<<<1, 1, 0, t.stream>>>(delay_cycles);
    TRY(cudaGetLastError());
    if (!block) TRY(cudaStreamSynchronize(t.stream));
    TRY(cudaEventRecord(t.begin, t.stream));
    const int failed = side.launch(side.arguments, t.stream);
    const cudaError_t recorded = cudaEventRecord(t.end, t.stream);
    const cudaError_t stamped = stamp(t, t.stamps_after);
    t.flags[0] = 1;  // also after an error, which would otherwise leave the stream blocked
    TRY(static_cast<cudaError_t>(failed));
    TRY(recorded);
    TRY(stamped);
    TRY(cudaStreamSynchronize(t.stream));
    float milliseconds = 0;
    TRY(cudaEventElapsedTime(&milliseconds, t.begin, t.end));
    TRY(cudaMemcpy(t.before.data(), t.stamps_before, stamp_bytes, cudaMemcpyDeviceToHost));
    TRY(cudaMemcpy(t.after.data(), t.stamps_after, stamp_bytes, cudaMemcpyDeviceToHost));
    *out = {1e3f * milliseconds, mean_sm_mhz(t), block && t.flags[1] == 0};
    return cudaSuccess;
}

}  // namespace

extern "C" int warplog_timer_part(Pair* pair) {
    if (pair == nullptr) return cudaSuccess;
    pair->timer->stream = pair->own_stream;  // also after an error between `enter` and `leave`
    for (int i = 0; i < kLimitCount; ++i)
        if (pair->has_limit[i]) cudaDeviceSetLimit(kLimits[i], pair->limits[i]);
    for (Side& side : pair->sides)
        if (side.stream != nullptr) cudaStreamDestroy(side.stream);
    delete pair;
    return cudaSuccess;
}

// Launches both sides in turns, so that everything is loaded before a launch waits on a blocked stream. Every pair
// requires a part, also after an error. `which` is the side that failed.
extern "C" int warplog_timer_pair(Timer* t, Launcher a, const void* with_a, Launcher b, const void* with_b, Pair** out,
                                  int* which) {
    constexpr int kLaunches = 3;
    auto* pair = new (std::nothrow) Pair;
    if (pair == nullptr) return cudaErrorMemoryAllocation;
    *out = pair;
    pair->timer = t;
    pair->own_stream = t->stream;
    pair->sides[0].launch = a;
    pair->sides[0].arguments = with_a;
    pair->sides[1].launch = b;
    pair->sides[1].arguments = with_b;
    for (int i = 0; i < kLimitCount; ++i) {
        size_t value = 0;
        pair->has_limit[i] = cudaDeviceGetLimit(&value, kLimits[i]) == cudaSuccess;
        pair->limits[i] = pair->sides[0].limits[i] = pair->sides[1].limits[i] = value;
    }
    pair->has_limit[0] = pair->has_limit[0] && cudaCtxResetPersistingL2Cache() == cudaSuccess;
    cudaGetLastError();
    for (Side& side : pair->sides) TRY(cudaStreamCreateWithFlags(&side.stream, cudaStreamNonBlocking));
    wait_cycles<<<1, 1, 0, t->stream>>>(0);
    TRY(cudaGetLastError());
    TRY(cudaStreamSynchronize(t->stream));
    for (int i = 0; i < 2 * kLaunches; ++i) {
        *which = i % 2;
        TRY(static_cast<cudaError_t>(warplog_timer_enter(pair, *which)));
        TRY(static_cast<cudaError_t>(pair->sides[*which].launch(pair->sides[*which].arguments, t->stream)));
        TRY(cudaStreamSynchronize(t->stream));
        TRY(static_cast<cudaError_t>(warplog_timer_leave(pair, *which)));
    }
    return cudaSuccess;
}

// Takes a turn of the side order[i] after a pause and a delay of delays[i] cycles, for each i below `count`.
extern "C" int warplog_timer_turns(Pair* pair, const unsigned char* order, const unsigned* delays, int count, int block,
                                   float pause_us, Turn* out, int* which) {
    for (int i = 0; i < count; ++i) {
        *which = order[i];
        sleep_us(pause_us);
        TRY(static_cast<cudaError_t>(warplog_timer_enter(pair, *which)));
        TRY(take_turn(*pair->timer, pair->sides[*which], delays[i], block, out + i));
        TRY(static_cast<cudaError_t>(warplog_timer_leave(pair, *which)));
    }
    return cudaSuccess;
}
