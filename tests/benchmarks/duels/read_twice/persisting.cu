// persisting: sets lines of L2 aside, keeps x in them, and cleans nothing up.
//
// Idea         An access window of the stream makes the lines of x persisting, in as much of L2 as the device grants.
// Expected     In a duel, no faster than plain: both begin with a cold L2. The other side must not gain from lines that
//              are left, nor lose the part of L2 that is set aside: that is what this variant tests.
// Cost         The limit of the device and the window of the stream stay as they are set.
// Constraints  Compute capability 8.0 or later.

#include <algorithm>

#include "sums.cuh"

extern "C" int launch(const float* x, float* y, int rows, cudaStream_t stream) {
    int device = 0, most = 0, window = 0;
    size_t aside = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxPersistingL2CacheSize, device);
    cudaDeviceGetAttribute(&window, cudaDevAttrMaxAccessPolicyWindowSize, device);
    cudaDeviceGetLimit(&aside, cudaLimitPersistingL2CacheSize);
    if (aside != size_t(most)) cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, most);
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = const_cast<float*>(x);
    value.accessPolicyWindow.num_bytes = std::min<size_t>(size_t(rows) * kRow * sizeof(float), window);
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
    return sum_twice(x, y, rows, stream);
}
