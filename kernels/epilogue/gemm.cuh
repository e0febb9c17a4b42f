// The GEMM of this family, that of wgmma_stmatrix in bf16_gemm, which has its parameters and headers: A*B^T in bf16
// with fp32 sums. Steps of a layer may be applied to the sums in registers, before they are rounded and stored.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tiles_in_turn.cuh"

namespace {

// What a layer does with each result x of the product: x * scale, then + the bias of its column, then max(x, 0).
template <bool Scale, bool Bias, bool Relu>
struct Steps {
    static constexpr bool ANY = Scale || Bias || Relu;

    float scale;
    const __nv_bfloat16* bias;

    __device__ __forceinline__ float operator()(float x, float column_bias) const {
        if constexpr (Scale) x *= scale;
        if constexpr (Bias) x += column_bias;
        return Relu ? fmaxf(x, 0.0f) : x;
    }
};

// Applies the steps to the sums of a warpgroup, whose columns begin at `column`; N is a multiple of 8. The layout of
// the sums is that of wgmma.cuh: a thread has two neighbouring columns of every eight, in two rows.
template <typename Layer, int Count>
__device__ __forceinline__ void apply(const Layer& layer, float (&sum)[Count], int column, int N) {
    const int first = column + threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < Count / 4; ++j) {
        if (first + 8 * j >= N) continue;
        const float2 bias = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(layer.bias + first + 8 * j));
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            sum[4 * j + 2 * h] = layer(sum[4 * j + 2 * h], bias.x);
            sum[4 * j + 2 * h + 1] = layer(sum[4 * j + 2 * h + 1], bias.y);
        }
    }
}

// As bf16_gemm_wgmma_tma_store, where the comments are, but for `apply`.
template <typename Layer>
__global__ void __cluster_dims__(Neighbours::BLOCKS, 1, 1) __launch_bounds__(THREADS, 1)
    epilogue_gemm(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                  const __grid_constant__ CUtensorMap c_map, int tile_rows, int tile_columns, int N, int K,
                  Layer layer) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    TileRing ring(tma::align(shared), barriers);
    if (threadIdx.x == 0) {
        tma::prefetch(a_map), tma::prefetch(b_map), tma::prefetch(c_map);
        ring.init(Neighbours::PEERS * CONSUMERS * 4);
    }
    cluster_meet();

    const Neighbours neighbours(cluster_rank());
    const int first = blockIdx.x / Neighbours::BLOCKS, stride = gridDim.x / Neighbours::BLOCKS;
    if (threadIdx.x < 128) {
        lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0)
            load_tiles(ring, neighbours, a_map, b_map, first, stride, tile_rows, tile_columns, K);
    } else {
        raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1;
        const GiveBack give_back = neighbours.give_back(barriers.empty);
        for (int index = first; index < tile_rows * tile_columns; index += stride) {
            const tiles::Tile tile = tile_at(index, tile_rows, tile_columns);
            const int row = (tile.row * DOWN + neighbours.row) * BM + consumer * ROWS;
            const int column = (tile.column * ACROSS + neighbours.column) * BN;
            float sum[BN / 2];
            ring.multiply<1>(sum, consumer, K, give_back);
            if constexpr (Layer::ANY) apply(layer, sum, column, N);
            store(c_map, ring.stages + TileRing::BYTES, sum, consumer, row, column);
        }
        if (threadIdx.x % 128 == 0) tma::wait_stores_read<0>();
    }
}

template <typename Layer>
cudaError_t launch_gemm(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                        Layer layer, cudaStream_t stream) {
    thread_local Tiling tiling;
    const cudaError_t error = tiling.prepare(epilogue_gemm<Layer>, A, B, C, M, N, K);
    if (error != cudaSuccess) return error;
    const int clusters = tiles::even_workers(tiling.rows * tiling.columns, tiling.clusters);
    epilogue_gemm<<<clusters * Neighbours::BLOCKS, THREADS, SHARED_BYTES, stream>>>(
        tiling.a.map(), tiling.b.map(), tiling.c.map(), tiling.rows, tiling.columns, N, K, layer);
    return cudaGetLastError();
}

}  // namespace
