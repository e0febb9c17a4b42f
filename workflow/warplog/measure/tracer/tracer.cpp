// The tracer: a library that the CUDA driver loads into the worker (CUDA_INJECTION64_PATH), and that the worker calls.
//
// Every module that is loaded gets calls of the functions in patch.cu before its memory instructions; they do nothing in
// launches that are not recorded. Kernels launched between warplog_begin and warplog_end are recorded, one after the other:
// after each, the host waits for it and copies its entries. Kernels of a CUDA graph are not recorded, which is said.
//
// warplog_end writes the trace: for each kernel a header, its name, and its entries; and beside it, as <trace>.<n>.cubin,
// the machine code of the modules that the kernels are from. All numbers are little-endian.

#include <dlfcn.h>
#include <sanitizer.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "trace.h"

// The device code, which the build compiles first.
asm(".section .rodata\n.balign 64\nwarplog_patch_image:\n.incbin \"" PATCH "\"\n.balign 8\n.quad 0\n.previous");
extern "C" const char warplog_patch_image[];

namespace {

#pragma pack(push, 1)
struct Header {
    char magic[8] = {'W', 'L', 'T', 'R', 'A', 'C', 'E', '1'};
    uint32_t name_bytes, padding = 0;
    uint64_t start, code_bytes;
    uint32_t grid[3], block[3], first_block, blocks;
    uint64_t used, kept;
};
#pragma pack(pop)
static_assert(sizeof(Header) == 80, "the reader expects 80 bytes");

struct Kernel {
    Header header;
    std::string name;
    CUmodule module;
    CUfunction function;
    std::vector<Access> entries;
};

// By number, since older headers lack the later ones. A kind that the GPU or the library lacks is not patched.
const struct {
    int instruction;
    const char* callback;
} PATCHES[] = {
    {3, "warplog_global"},
    {4, "warplog_shared"},
    {5, "warplog_local"},
    {14, "warplog_async"},
    {17, "warplog_remote"},
    {19, "warplog_matrix"},
    {23, "warplog_wgmma"},
    {26, "warplog_async_store"},
    {27, "warplog_async_reduction"},
    {30, "warplog_bulk_in"},
    {35, "warplog_bulk_out"},
    {36, "warplog_bulk_across"},
    {37, "warplog_bulk_reduce_out"},
    {38, "warplog_bulk_reduce_across"},
};

std::recursive_mutex mutex;
bool recording, graph_launched;
std::string unready = "the CUDA driver did not load the tracer", failure, path;
unsigned long long capacity, left;  // entries in all, and still free
uint32_t first_block, blocks, fitting;
std::set<CUcontext> with_patches;
std::map<CUmodule, std::string> images;
std::vector<Kernel> kernels;

// Memory of the current context, since that of a launch is unknown for kernels of a library such as cuBLAS.
Trace* device_trace;
Access* device_entries;
unsigned long long device_capacity;

bool succeeded(SanitizerResult result, const char* what) {
    if (result == SANITIZER_SUCCESS) return true;
    const char* text = nullptr;
    sanitizerGetResultString(result, &text);
    if (failure.empty()) failure = std::string(what) + ": " + (text ? text : std::to_string(result));
    return false;
}

void patch(const Sanitizer_ResourceModuleData& loaded) {
    if (!with_patches.count(loaded.context)) {
        if (!succeeded(sanitizerAddPatches(warplog_patch_image, loaded.context), "loading the patches")) return;
        with_patches.insert(loaded.context);
    }
    for (const auto& patch : PATCHES) {
        const auto kind = static_cast<Sanitizer_InstructionId>(patch.instruction);
        sanitizerPatchInstructions(kind, loaded.module, patch.callback);
    }
    if (succeeded(sanitizerPatchModule(loaded.module), "patching a module"))
        images[loaded.module] = std::string(loaded.pCubin, loaded.pCubin ? loaded.cubinSize : 0);
}

bool allocate() {
    if (device_capacity == capacity) return true;
    if (device_capacity) sanitizerFree(nullptr, device_entries);
    device_capacity = 0;
    void *trace = device_trace, *entries = nullptr;
    if ((!trace && !succeeded(sanitizerAlloc(nullptr, &trace, sizeof(Trace)), "allocating the head")) ||
        !succeeded(sanitizerAlloc(nullptr, &entries, capacity * sizeof(Access)), "allocating room for accesses"))
        return false;
    device_trace = static_cast<Trace*>(trace);
    device_entries = static_cast<Access*>(entries);
    device_capacity = capacity;
    return true;
}

void launch_begins(const Sanitizer_LaunchData& launch) {
    if (!allocate()) return;
    Trace trace{0, left, left, first_block, blocks, device_entries};
    if (succeeded(sanitizerMemcpyHostToDeviceAsync(device_trace, &trace, sizeof trace, launch.hStream),
                  "copying the head to the GPU"))
        succeeded(sanitizerSetLaunchCallbackData(launch.hLaunch, launch.function, launch.hStream, device_trace),
                  "setting the data of a launch");
    const uint64_t grid = uint64_t(launch.gridDim_x) * launch.gridDim_y * launch.gridDim_z;
    Kernel kernel;
    kernel.name = launch.functionName ? launch.functionName : "";
    kernel.module = launch.module;
    kernel.function = launch.function;
    Header& header = kernel.header;
    const uint32_t grids[] = {launch.gridDim_x, launch.gridDim_y, launch.gridDim_z};
    const uint32_t extents[] = {launch.blockDim_x, launch.blockDim_y, launch.blockDim_z};
    std::copy(grids, grids + 3, header.grid);
    std::copy(extents, extents + 3, header.block);
    header.first_block = first_block;
    header.blocks = uint32_t(std::min<uint64_t>(blocks, grid > first_block ? grid - first_block : 0));
    header.used = header.kept = header.start = header.code_bytes = 0;
    kernels.push_back(kernel);
}

void launch_ends(const Sanitizer_LaunchData& launch) {
    if (!device_trace || kernels.empty() || !succeeded(sanitizerStreamSynchronize(launch.hStream), "waiting")) return;
    Trace trace;
    if (!succeeded(sanitizerMemcpyDeviceToHost(&trace, device_trace, sizeof trace, launch.hStream), "copying the head"))
        return;
    Kernel& kernel = kernels.back();
    kernel.header.used = trace.used;
    kernel.header.kept = std::min(trace.used, trace.kept);
    left -= kernel.header.kept;
    kernel.entries.resize(kernel.header.kept);
    if (!kernel.entries.empty())
        succeeded(sanitizerMemcpyDeviceToHost(kernel.entries.data(), device_entries,
                                              kernel.entries.size() * sizeof(Access), launch.hStream), "copying accesses");
}

void called(void*, Sanitizer_CallbackDomain domain, Sanitizer_CallbackId id, const void* data) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    if (domain == SANITIZER_CB_DOMAIN_RESOURCE) {
        if (id == SANITIZER_CBID_RESOURCE_MODULE_LOADED) patch(*static_cast<const Sanitizer_ResourceModuleData*>(data));
    } else if (!recording) {
        return;
    } else if (domain == SANITIZER_CB_DOMAIN_GRAPHS) {
        graph_launched |= id == SANITIZER_CBID_GRAPHS_LAUNCH_BEGIN;
    } else if (domain != SANITIZER_CB_DOMAIN_LAUNCH) {
        return;  // the library also reports events, under the numbers of launches
    } else if (id == SANITIZER_CBID_LAUNCH_BEGIN) {
        launch_begins(*static_cast<const Sanitizer_LaunchData*>(data));
    } else if (id == SANITIZER_CBID_LAUNCH_END) {
        launch_ends(*static_cast<const Sanitizer_LaunchData*>(data));
    }
}

// The API cuts long names; the driver has the whole ones, but must not be asked in a callback.
std::string whole_name(const Kernel& kernel) {
    void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    using Ask = CUresult (*)(const char**, CUfunction);
    const auto ask = driver ? reinterpret_cast<Ask>(dlsym(driver, "cuFuncGetName")) : nullptr;
    const char* name = nullptr;
    return ask && ask(&name, kernel.function) == CUDA_SUCCESS && name ? name : kernel.name;
}

void complete(Kernel& kernel) {
    kernel.name = whole_name(kernel);
    uint64_t start = 0, bytes = 0;
    succeeded(sanitizerGetFunctionPcAndSize(kernel.module, kernel.name.c_str(), &start, &bytes),
              "finding the code of a kernel");
    if (!images.count(kernel.module) && failure.empty()) failure = kernel.name + ": its module could not be patched";
    kernel.header.start = start;
    kernel.header.code_bytes = bytes;
    kernel.header.name_bytes = uint32_t(kernel.name.size());
    for (Access& access : kernel.entries) access.offset -= uint32_t(start);
}

bool write(const std::string& to, const std::vector<std::pair<const void*, size_t>>& parts, const char* mode) {
    FILE* file = fopen(to.c_str(), mode);
    bool done = file;
    for (const auto& part : parts) done = done && fwrite(part.first, 1, part.second, file) == part.second;
    if (file && fclose(file)) done = false;
    if (!done && failure.empty()) failure = "the trace cannot be written";
    return done;
}

}  // namespace

extern "C" int InitializeInjection() {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    Sanitizer_SubscriberHandle subscriber;
    bool subscribed = succeeded(sanitizerSubscribe(&subscriber, called, nullptr), "subscribing");
    // Whole domains: with single callbacks alone, the API does not know the streams that it names in them.
    for (auto domain : {SANITIZER_CB_DOMAIN_RESOURCE, SANITIZER_CB_DOMAIN_LAUNCH, SANITIZER_CB_DOMAIN_GRAPHS})
        subscribed = subscribed && succeeded(sanitizerEnableDomain(1, subscriber, domain), "enabling callbacks");
    unready = failure;
    return 1;
}

// Returns "", or why nothing can be traced in this process.
extern "C" const char* warplog_unready() { return unready.c_str(); }

// Records the kernels from now on: `count` blocks of each from block `first`, and at most `entries` in all.
extern "C" void warplog_begin(const char* to, uint32_t first, uint32_t count, unsigned long long entries) {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    path = to;
    first_block = first;
    blocks = count;
    capacity = left = entries;
    kernels.clear();
    graph_launched = false;
    failure = unready;
    recording = true;
}

// Writes the trace. Returns "", or why there is none.
extern "C" const char* warplog_end() {
    const std::lock_guard<std::recursive_mutex> lock(mutex);
    recording = false;
    if (failure.empty() && graph_launched) failure = "it launches a CUDA graph, whose kernels cannot be traced";
    if (failure.empty() && kernels.empty()) failure = "no launch of a kernel was reported";
    uint32_t most = 0;
    unsigned long long used = 0, lost = 0;
    for (const Kernel& kernel : kernels) {
        most = std::max(most, kernel.header.blocks);
        used += kernel.header.used;
        lost += kernel.header.used - kernel.header.kept;
    }
    fitting = lost ? std::max(1u, uint32_t(0.9 * most * capacity / used)) : 0;
    std::set<CUmodule> modules;
    const char* mode = "wb";
    for (Kernel& kernel : kernels) {
        if (!failure.empty()) break;
        complete(kernel);
        write(path, {{&kernel.header, sizeof kernel.header}, {kernel.name.data(), kernel.name.size()},
                     {kernel.entries.data(), kernel.entries.size() * sizeof(Access)}}, mode);
        mode = "ab";
        const std::string& image = images[kernel.module];
        if (!image.empty() && modules.insert(kernel.module).second)
            write(path + "." + std::to_string(modules.size() - 1) + ".cubin", {{image.data(), image.size()}}, "wb");
    }
    kernels.clear();
    return failure.c_str();
}

// After warplog_end: 0 if the trace is complete, else of how many blocks of each kernel it would be, if all are alike.
extern "C" uint32_t warplog_fitting() { return fitting; }
