// best_of: runs the variant that an earlier campaign found fastest at the nearest shape.
//
// Idea         No variant is best everywhere. Large tiles make the best use of registers but require a C with enough of
//              them; small tiles with a split K keep all SMs busy at smaller sizes. The table in best_of.cuh names the
//              fastest variant at each case of a campaign; `warplog best-of sgemm` writes it. The launcher uses the row
//              that is nearest in K and in the number of results (M * N) per SM, both on a logarithmic scale.
// Expected     At each case of the table, the speed of the variant that the table names, which is the fastest one as
//              far as new measurements agree with that campaign. Between the cases, within a few percent of the fastest
//              variant: at least 0.95 times cuBLAS from 256 on.
// Cost         The code and the workspaces of all its parts. The table is valid for the GPU that it was measured on. On
//              a GPU with a different number of SMs, the row is still chosen by K and by the number of results per SM;
//              on an older architecture, the table contains only variants that run there.
// Constraints  As its parts: any M, N, K >= 1, any alignment, one stream at a time.
// Source       BLAS libraries dispatch in this way; cuBLAS uses heuristics trained on measurements.

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

using Launch = int (*)(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                       cudaStream_t stream);

// A measured case and the launcher of the variant that was fastest there.
struct Row {
    int M, N, K;
    Launch fastest;
};

#include "best_of.cuh"

static double octaves(double one, double other) { return std::fabs(std::log2(one / other)); }

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    int device = 0, multiprocessors = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (error != cudaSuccess) return error;

    const double results = static_cast<double>(M) * N / multiprocessors;
    const Row* nearest = nullptr;
    double least = 0;
    for (const Row& row : TABLE) {
        const double row_results = static_cast<double>(row.M) * row.N / MULTIPROCESSORS;
        const double distance = octaves(results, row_results) + octaves(K, row.K);
        if (!nearest || distance < least) nearest = &row, least = distance;
    }
    return nearest->fastest(A, B, C, M, N, K, alpha, beta, stream);
}
