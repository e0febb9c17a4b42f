// wgmma_tma_store, wgmma_hilbert, wgmma_stmatrix, wgmma_small_tiles, wgmma_four_blocks, wgmma_autotuned: TMA stores the
// results from shared memory.
//
// Idea         wgmma_tma_store: a consumer converts 64 columns of its results at a time to bf16, writes them to shared
//              memory in TMA's swizzle, and has TMA store the box. It continues while the box is stored: BOXES boxes
//              per consumer take turns. A store from registers writes 16 bytes of a row, TMA whole lines.
//              wgmma_hilbert (HILBERT = 1): clusters take the tiles along a Hilbert curve, so that tiles computed at
//              the same time lie in a square, and the next ones beside it.
//              wgmma_stmatrix (STMATRIX = 1): stmatrix writes four 8x8 matrices at a time, a quarter of the stores.
//              wgmma_small_tiles (BN = 64): 128 x 64 results per block, so that 1024 x 1024 has 128 blocks, one per SM,
//              where 128 x 256 has 32. A step loads 24 KiB for a quarter of the products, which pays only if C is
//              small.
//              wgmma_four_blocks (DOWN x ACROSS = 2 x 2): each of four blocks shares A with the one beside it and B
//              with the one above or below it: 24 KiB per step and block from L2 instead of 32.
//              wgmma_autotuned: the cluster (DOWN x ACROSS of 2 or 4 blocks) and the order (HILBERT, or GROUP rows of
//              clusters) are searched for the current GPU.
// Expected     wgmma_tma_store: 758 TFLOP/s on an H100 against 747 for its parent (Gordic); for the public kernel on an
//              H200, 757 at 4096 and 798 at 8192. wgmma_hilbert: 762 and 801. wgmma_stmatrix: 772 and 809. No bank
//              conflicts.
// Cost         CONSUMERS * BOXES * 8 KiB of shared memory; two barriers of a warpgroup per box.
// Constraints  K and N multiples of 8 (TMA requires rows aligned to 16 bytes), arrays aligned to 16 bytes; any M: TMA
//              does not write outside C.
// Source       PTX ISA, cp.async.bulk.tensor, stmatrix, fence.proxy.async; A. Gordic, Anatomy of high performance
//              matmul kernels; D. Hilbert, Ueber die stetige Abbildung einer Linie auf ein Flaechenstueck; NVIDIA
//              CUTLASS.

// Why it cannot deadlock: see cluster.cuh. As to the boxes, one thread of a consumer commits all of its stores and
// waits until all but the newest have been read, before its warpgroup writes the oldest box again; it waits for the
// last ones before the block ends.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tiles_in_turn.cuh"

__global__ void __cluster_dims__(Neighbours::BLOCKS, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_tma_store(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                              const __grid_constant__ CUtensorMap c_map, int tile_rows, int tile_columns, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    TileRing ring(tma::align(shared), barriers);  // at the same address in every block
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
            TIMELINE(ring.track, STORE);
            store(c_map, ring.stages + TileRing::BYTES, sum, consumer, row, column);
        }
        if (threadIdx.x % 128 == 0) tma::wait_stores_read<0>();
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local Tiling tiling;
    const cudaError_t error = tiling.prepare(bf16_gemm_wgmma_tma_store, A, B, C, M, N, K);
    if (error != cudaSuccess) return error;
    const int clusters = tiles::even_workers(tiling.rows * tiling.columns, tiling.clusters);
    bf16_gemm_wgmma_tma_store<<<clusters * Neighbours::BLOCKS, THREADS, SHARED_BYTES, stream>>>(
        tiling.a.map(), tiling.b.map(), tiling.c.map(), tiling.rows, tiling.columns, K);
    return cudaGetLastError();
}
