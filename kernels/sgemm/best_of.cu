// best_of: the variant that was fastest at the most similar case of a campaign.
//
// Idea         No variant is best everywhere. Large tiles use the registers best but need a C that has enough of them;
//              small tiles, with K split, keep all SMs busy earlier. Which one wins where has been measured: the table
//              in best_of.cuh is written from a campaign by `warplog best-of sgemm`, one row a case. The launcher takes
//              the row that is nearest in the number of results an SM and in K, in octaves.
// Expected     The fastest of its parts at each case of the table, and within a few percent of it between them: at
//              least 0.95 times cuBLAS from 256 on.
// Cost         The code and the memory of all its parts. The table is right for the GPU that it was measured on;
//              another one with more or fewer SMs takes the row for C as much larger or smaller, and one of an older
//              architecture the fastest of the variants that it can run.
// Constraints  Those of its parts: right for any M, N, K >= 1 and any alignment, one stream at a time.
// Source       Every BLAS does so; cuBLAS picks by a heuristic trained on measurements.

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
