// The timing core: cold samples after an L2 flush on a blocked stream, hot samples from a CUDA graph.
//
// It runs in the process of the kernel under test and gets a launcher with its packed arguments. It only launches and
// reads clocks; timer.py decides how many samples to take. Every function returns a cudaError_t (0 = success).
//
// A cold sample, in stream order:
//   pause                                the GPU idles, so that its mean power stays below the limit
//   write 2x L2, read another 2x L2      L2 then holds unrelated, unmodified lines: no hits, and no write-backs to pay
//   probe                                one thread reads both clocks for 20 us: the SM clock that the driver has set
//   block                                a spin on a host flag, so that everything below is queued before it starts
//   stamp, event, kernel, event, stamp   the stamps give the mean SM clock during the sample
// The host then sets the flag. The same sequence without the kernel gives the empty interval, which timer.py subtracts.
//
// The two kinds of SM clock differ. Under load the supply voltage drops, and the clock generator skips cycles for as
// long as it does: a tensor-core kernel at a set clock of 1980 MHz may run at 1750 MHz on average. That belongs to the
// kernel. A power or thermal limit lowers the clock that is set, which a probe sees, since a single thread is no load.
//
// A launcher that synchronises its stream would wait for the flag forever. Such launchers are timed without block and
// graph: the stream is idle when the first event is recorded, and the host's part of the launch counts too.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>
#include <vector>

using Launcher = int (*)(const void* arguments, cudaStream_t stream);

struct Stamp {
    unsigned long long ns;
    unsigned long long cycles;
};

struct Timer {
    cudaStream_t stream = nullptr;
    cudaEvent_t begin = nullptr, end = nullptr;
    uint4 *written = nullptr, *read = nullptr;
    size_t lines = 0;
    unsigned* sink = nullptr;
    Stamp *stamps_before = nullptr, *stamps_after = nullptr;  // indexed by SM id
    Stamp* probed = nullptr;  // elapsed in the last probe
    std::vector<Stamp> before, after;
    volatile int* flags = nullptr;  // in host memory: [0] open, [1] timed out
    int* device_flags = nullptr;
    Launcher launch = nullptr;  // of the prepared batch
    const void* arguments = nullptr;
    int launches = 0;
    cudaGraphExec_t batch = nullptr;  // null if the launcher cannot be captured
    int sms = 0;
    int blocks = 0;
    unsigned rounds = 0;
};

namespace {

constexpr int kFlushThreads = 512;
constexpr float kWarmUpEnoughUs = 1e4f;
constexpr float kSlowUs = 1e5f;
constexpr unsigned long long kProbeNs = 20'000;
constexpr unsigned long long kBlockLimitNs = 2'000'000'000ull;  // so that a launcher that synchronises does not hang

__device__ unsigned long long global_ns() {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__global__ void write_lines(uint4* lines, size_t count, unsigned value) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        lines[i] = make_uint4(value, value, value, value);
}

__global__ void read_lines(const uint4* lines, size_t count, unsigned* sink) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        const uint4 line = __ldcg(lines + i);
        sum += line.x ^ line.y ^ line.z ^ line.w;
    }
    if (sum == 0x5eed1e55u) *sink = sum;  // never true, but keeps the compiler from removing the loads
}

__global__ void block_stream(const volatile int* open, volatile int* timed_out) {
    const unsigned long long begin = global_ns();
    while (*open == 0) {
        if (global_ns() - begin > kBlockLimitNs) {
            *timed_out = 1;
            return;
        }
    }
}

// One thread on every SM waits for the next tick of the global timer and then reads both clocks, so that the timer's
// coarse resolution (up to 1 us) does not distort the ratio over a short sample.
__global__ void stamp_clocks(Stamp* stamps) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    const unsigned long long before = global_ns();
    unsigned long long now = before;
    while (now == before) now = global_ns();
    stamps[sm] = {now, static_cast<unsigned long long>(clock64())};
}

// Elapsed time and cycles of one thread over about 20 us, from tick to tick of the global timer.
__global__ void probe_clock(Stamp* elapsed) {
    const unsigned long long before = global_ns();
    unsigned long long begin = before, end;
    while (begin == before) begin = global_ns();
    const unsigned long long cycles = clock64();
    do end = global_ns();
    while (end - begin < kProbeNs);
    *elapsed = {end - begin, static_cast<unsigned long long>(clock64()) - cycles};
}

#define TRY(call) \
    do { \
        const cudaError_t try_status = (call); \
        if (try_status != cudaSuccess) return try_status; \
    } while (0)

constexpr int kSmIdLimit = 1024;

cudaError_t flush_l2_clean(Timer& t) {
    write_lines<<<t.blocks, kFlushThreads, 0, t.stream>>>(t.written, t.lines, ++t.rounds & 0xffffu);
    read_lines<<<t.blocks, kFlushThreads, 0, t.stream>>>(t.read, t.lines, t.sink);
    return cudaGetLastError();
}

cudaError_t stamp(Timer& t, Stamp* where) {
    stamp_clocks<<<t.sms, 1, 0, t.stream>>>(where);
    return cudaGetLastError();
}

// All SMs share one clock, so the ratio of the sums over the SMs is its mean; no median is needed.
float mean_sm_mhz(Timer& t) {
    double cycles = 0, ns = 0;
    for (int sm = 0; sm < kSmIdLimit; ++sm) {
        if (t.before[sm].ns == 0 || t.after[sm].ns <= t.before[sm].ns) continue;
        cycles += double(t.after[sm].cycles - t.before[sm].cycles);
        ns += double(t.after[sm].ns - t.before[sm].ns);
    }
    return ns > 0 ? float(1e3 * cycles / ns) : 0.0f;
}

void sleep_us(float us) {
    if (us > 0) std::this_thread::sleep_for(std::chrono::duration<float, std::micro>(us));
}

float mhz_of(const Stamp& elapsed) { return elapsed.ns > 0 ? float(1e3 * elapsed.cycles / elapsed.ns) : 0.0f; }

}  // namespace

struct ColdSample {
    float event_us;  // between the two events, including the empty interval
    float sm_mhz;    // mean SM clock between the stamps; 0 = unknown
    float set_mhz;   // SM clock that was set just before the launch
    int blocked;     // 0 = not blocked, or the block gave up waiting: host time may be inside event_us
    float host_us;   // host time of the launcher
};

extern "C" int warplog_timer_destroy(Timer* t) {
    if (t == nullptr) return cudaSuccess;
    cudaFree(t->written);
    cudaFree(t->read);
    cudaFree(t->sink);
    cudaFree(t->stamps_before);
    cudaFree(t->stamps_after);
    cudaFree(t->probed);
    if (t->flags != nullptr) cudaFreeHost(const_cast<int*>(t->flags));
    if (t->begin != nullptr) cudaEventDestroy(t->begin);
    if (t->end != nullptr) cudaEventDestroy(t->end);
    if (t->stream != nullptr) cudaStreamDestroy(t->stream);
    delete t;
    return cudaSuccess;
}

extern "C" int warplog_timer_create(Timer** out) {
    auto* t = new (std::nothrow) Timer;
    if (t == nullptr) return cudaErrorMemoryAllocation;
    *out = t;
    int device = 0, l2_bytes = 0;
    TRY(cudaGetDevice(&device));
    TRY(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device));
    TRY(cudaDeviceGetAttribute(&t->sms, cudaDevAttrMultiProcessorCount, device));
    t->blocks = t->sms * 4;
    t->lines = 2 * size_t(l2_bytes) / sizeof(uint4);
    t->before.resize(kSmIdLimit);
    t->after.resize(kSmIdLimit);
    TRY(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking));
    TRY(cudaEventCreate(&t->begin));
    TRY(cudaEventCreate(&t->end));
    TRY(cudaMalloc(&t->written, t->lines * sizeof(uint4)));
    TRY(cudaMalloc(&t->read, t->lines * sizeof(uint4)));
    TRY(cudaMalloc(&t->sink, sizeof(unsigned)));
    TRY(cudaMalloc(&t->stamps_before, kSmIdLimit * sizeof(Stamp)));
    TRY(cudaMalloc(&t->stamps_after, kSmIdLimit * sizeof(Stamp)));
    TRY(cudaMalloc(&t->probed, sizeof(Stamp)));
    int* flags = nullptr;
    TRY(cudaHostAlloc(&flags, 2 * sizeof(int), cudaHostAllocMapped));
    t->flags = flags;
    TRY(cudaHostGetDevicePointer(&t->device_flags, flags, 0));
    TRY(cudaMemsetAsync(t->read, 1, t->lines * sizeof(uint4), t->stream));
    return cudaStreamSynchronize(t->stream);
}

// Warm-up: at least `least` launches and at least `milliseconds`; fewer if they take longer than 10 ms. Returns the host
// times of the first launch, which includes loading the module, and of the fastest, which decides the batch size.
extern "C" int warplog_timer_warm_up(Timer* t, Launcher launch, const void* arguments, int least, float milliseconds,
                                     int* launches, float* first_us, float* fastest_us) {
    using Clock = std::chrono::steady_clock;
    using Microseconds = std::chrono::duration<float, std::micro>;
    const auto begin = Clock::now();
    *launches = 0;
    float elapsed_us;
    bool enough;
    do {
        const auto before = Clock::now();
        TRY(static_cast<cudaError_t>(launch(arguments, t->stream)));
        TRY(cudaStreamSynchronize(t->stream));
        const float taken_us = Microseconds(Clock::now() - before).count();
        *first_us = *launches == 0 ? taken_us : *first_us;
        *fastest_us = *launches == 0 ? taken_us : std::min(*fastest_us, taken_us);
        ++*launches;
        elapsed_us = Microseconds(Clock::now() - begin).count();
        // The first launch may have loaded a module or chosen an algorithm, so that it says little about the next.
        enough = *launches == 1 ? *first_us > kSlowUs : elapsed_us - *first_us > kWarmUpEnoughUs;
    } while ((*launches < least && !enough) || elapsed_us < 1e3f * milliseconds);
    return cudaSuccess;
}

// The SM clock that is set while the GPU is otherwise idle, in MHz.
extern "C" int warplog_timer_probe(Timer* t, float* set_mhz) {
    probe_clock<<<1, 1, 0, t->stream>>>(t->probed);
    TRY(cudaGetLastError());
    TRY(cudaStreamSynchronize(t->stream));
    Stamp elapsed;
    TRY(cudaMemcpy(&elapsed, t->probed, sizeof(elapsed), cudaMemcpyDeviceToHost));
    *set_mhz = mhz_of(elapsed);
    return cudaSuccess;
}

// If `launch` is null, the empty interval is measured. Without `block`, the launch starts on an idle stream. The GPU
// idles for `pause_us` before each sample.
extern "C" int warplog_timer_cold(Timer* t, Launcher launch, const void* arguments, int samples, ColdSample* out,
                                  int block, float pause_us) {
    const size_t stamp_bytes = kSmIdLimit * sizeof(Stamp);
    for (int i = 0; i < samples; ++i) {
        sleep_us(pause_us);
        TRY(cudaMemsetAsync(t->stamps_before, 0, stamp_bytes, t->stream));
        TRY(cudaMemsetAsync(t->stamps_after, 0, stamp_bytes, t->stream));
        TRY(flush_l2_clean(*t));
        probe_clock<<<1, 1, 0, t->stream>>>(t->probed);
        t->flags[0] = 0;
        t->flags[1] = 0;
        if (block) block_stream<<<1, 1, 0, t->stream>>>(t->device_flags, t->device_flags + 1);
        TRY(cudaGetLastError());
        TRY(stamp(*t, t->stamps_before));
        if (!block) TRY(cudaStreamSynchronize(t->stream));
        TRY(cudaEventRecord(t->begin, t->stream));
        const auto called = std::chrono::steady_clock::now();
        const int failed = launch != nullptr ? launch(arguments, t->stream) : 0;
        const std::chrono::duration<float, std::micro> host = std::chrono::steady_clock::now() - called;
        const cudaError_t recorded = cudaEventRecord(t->end, t->stream);
        const cudaError_t stamped = stamp(*t, t->stamps_after);
        t->flags[0] = 1;  // also after an error, which would otherwise leave the stream blocked
        TRY(static_cast<cudaError_t>(failed));
        TRY(recorded);
        TRY(stamped);
        TRY(cudaStreamSynchronize(t->stream));
        float milliseconds = 0;
        TRY(cudaEventElapsedTime(&milliseconds, t->begin, t->end));
        TRY(cudaMemcpy(t->before.data(), t->stamps_before, stamp_bytes, cudaMemcpyDeviceToHost));
        TRY(cudaMemcpy(t->after.data(), t->stamps_after, stamp_bytes, cudaMemcpyDeviceToHost));
        Stamp probed;
        TRY(cudaMemcpy(&probed, t->probed, sizeof(probed), cudaMemcpyDeviceToHost));
        out[i] = {1e3f * milliseconds, mean_sm_mhz(*t), mhz_of(probed), block && t->flags[1] == 0,
                  host.count()};
    }
    return cudaSuccess;
}

// Prepares batches of `launches` back-to-back launches: as a graph, or with `capture` 0 for launchers that cannot be
// captured. Every prepare requires a release.
extern "C" int warplog_timer_prepare(Timer* t, Launcher launch, const void* arguments, int launches, int capture) {
    t->launch = launch;
    t->arguments = arguments;
    t->launches = launches;
    if (!capture) return cudaSuccess;
    cudaGraph_t graph = nullptr;
    TRY(cudaStreamBeginCapture(t->stream, cudaStreamCaptureModeThreadLocal));
    int failed = 0;
    for (int i = 0; i < launches && failed == 0; ++i) failed = launch(arguments, t->stream);
    const cudaError_t captured = cudaStreamEndCapture(t->stream, &graph);
    if (failed != 0 || captured != cudaSuccess) {
        if (graph != nullptr) cudaGraphDestroy(graph);
        cudaGetLastError();  // else the next call would report it, which may be plain launches instead of a graph
        return failed != 0 ? failed : captured;
    }
    const cudaError_t made = cudaGraphInstantiate(&t->batch, graph, 0);
    TRY(cudaGraphDestroy(graph));
    TRY(made);
    return cudaGraphUpload(t->batch, t->stream);
}

// Runs the prepared batch `batches` times; out_us[i] is microseconds per launch. The GPU idles for `pause_us` before
// each batch. *set_mhz is the SM clock that is set after the last batch.
extern "C" int warplog_timer_run(Timer* t, int batches, float pause_us, float* out_us, float* set_mhz) {
    for (int i = 0; i < batches; ++i) {
        sleep_us(pause_us);
        TRY(cudaEventRecord(t->begin, t->stream));
        if (t->batch != nullptr) {
            TRY(cudaGraphLaunch(t->batch, t->stream));
        } else {
            for (int j = 0; j < t->launches; ++j) TRY(static_cast<cudaError_t>(t->launch(t->arguments, t->stream)));
        }
        TRY(cudaEventRecord(t->end, t->stream));
        TRY(cudaStreamSynchronize(t->stream));
        float milliseconds = 0;
        TRY(cudaEventElapsedTime(&milliseconds, t->begin, t->end));
        out_us[i] = 1e3f * milliseconds / float(t->launches);
    }
    return warplog_timer_probe(t, set_mhz);
}

extern "C" int warplog_timer_release(Timer* t) {
    const cudaGraphExec_t batch = t->batch;
    t->batch = nullptr;
    return batch != nullptr ? cudaGraphExecDestroy(batch) : cudaSuccess;
}

extern "C" const char* warplog_timer_error(int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); }
