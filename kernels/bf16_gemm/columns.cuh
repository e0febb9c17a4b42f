// What wgmma_cluster and the variants with one change to it share: the shape of their blocks and the launch. The tiles
// of a cluster are CLUSTER tiles below one another.
#pragma once

#include <cstdint>

#include "cluster.cuh"
#include "tiles.cuh"

namespace {

constexpr int CONSUMERS = 2, BM = CONSUMERS * ROWS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
// 65536 registers for 384 threads: 168 each at the start. (24 + 2 * 240) * 128 registers do not exceed this.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

using TileRing = Ring<CONSUMERS, BN, STAGES>;
using Neighbours = Cluster<CLUSTER, 1>;
constexpr int SHARED_BYTES = TileRing::BYTES + tma::ATOM_BYTES;  // with room for alignment

// Launches as many clusters as the device holds at once, or, if `evenly`, no more than the number of waves requires.
template <typename Kernel>
cudaError_t launch_columns(Kernel* kernel, const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M,
                           int N, int K, bool evenly, cudaStream_t stream) {
    thread_local tma::Map a_map, b_map;
    int clusters = 0;
    cudaError_t error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN / CLUSTER);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error == cudaSuccess) error = resident_clusters(kernel, CLUSTER, THREADS, SHARED_BYTES, &clusters);
    if (error != cudaSuccess) return error;
    if (evenly) clusters = tiles::even_workers(((M - 1) / (BM * CLUSTER) + 1) * ((N - 1) / BN + 1), clusters);
    kernel<<<clusters * CLUSTER, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), C, M, N, K);
    return cudaGetLastError();
}

}  // namespace
