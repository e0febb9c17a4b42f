// best_of: the variant that suits the shape.
//
// Idea         No variant is best everywhere. Large tiles use the registers best but need a C of some 132 of them to
//              keep an H200 busy; small tiles, with K split, keep it busy earlier. So the launcher counts the tiles of
//              the large variant, and where they do not fill the SMs it takes the next smaller one.
// Expected     The best of its parts at every size, and never more than a few percent behind.
// Cost         The code and the static memory of all its parts.
// Constraints  Those of its parts: right for any M, N, K >= 1 and any alignment, one stream at a time.
// Source       Every BLAS does so; cuBLAS picks by a heuristic trained on measurements.

#include <cuda_runtime.h>

#include <cstdint>

constexpr int LARGE_BM = 256, LARGE_BN = 128;  // the tile of the large variant

// Each part is the file of its variant, compiled with its parameters in a namespace of its own.
#define BLOCKS_PER_SM 1
#define BM LARGE_BM
#define BN LARGE_BN
#define BK 16
#define WM 64
#define WN 64
#define LANES_M 4
#define launch launch_large
namespace large {
#include "double_buffered.cu"
}
#undef launch
#undef BLOCKS_PER_SM
#undef BM
#undef BN
#undef BK
#undef WM
#undef WN
#undef LANES_M

#define BLOCKS_PER_SM 4
#define BM 64
#define BN 64
#define BK 32
#define WM 32
#define WN 32
#define LANES_M 4
#define MIN_K 32
#define WAVES 4
#define launch launch_small
namespace small {
#include "split_k.cu"
}
#undef launch

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    int device = 0, multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;
    // Above 3/4 of an SM a tile, the large tiles' better use of registers outweighs the SMs that stay idle.
    const int64_t large_tiles = static_cast<int64_t>((M - 1) / LARGE_BM + 1) * ((N - 1) / LARGE_BN + 1);
    return large_tiles * 4 >= multiprocessors * 3 ? large::launch_large(A, B, C, M, N, K, alpha, beta, stream)
                                                  : small::launch_small(A, B, C, M, N, K, alpha, beta, stream);
}
