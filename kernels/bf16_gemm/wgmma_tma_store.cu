// wgmma_tma_store, wgmma_hilbert, wgmma_stmatrix, wgmma_four_blocks, wgmma_autotuned: the results leave through shared
// memory and the copy engine.
//
// Idea         wgmma_tma_store: a consumer turns 64 columns of its results at a time into bf16, lays them into shared
//              memory in TMA's swizzle, and has TMA store the box. It goes on while the box is on its way: BOXES boxes
//              a consumer take turns. A store from registers writes 16 bytes of a row, TMA whole lines.
//              wgmma_hilbert (HILBERT = 1): clusters take the tiles along a Hilbert curve, so that those computed at
//              the same time lie in a square, and the next ones beside it.
//              wgmma_stmatrix (STMATRIX = 1): stmatrix writes four 8x8 matrices at a time, a quarter of the stores.
//              wgmma_four_blocks (DOWN x ACROSS = 2 x 2): four blocks share, A with the one beside, B with the one
//              below: 24 KiB a step and block from L2 instead of 32.
//              wgmma_autotuned: the cluster (DOWN x ACROSS of 2 or 4 blocks) and the order (HILBERT, or GROUP rows of
//              clusters) are searched for the GPU at hand.
// Expected     758 TFLOP/s on an H100 where its parent has 747 (Gordic), 757 at 4096 and 798 at 8192 for the public
//              kernel on an H200; 762 and 801 along the Hilbert curve; 772 and 809 with stmatrix. No bank conflicts.
// Cost         CONSUMERS * BOXES * 8 KiB of shared memory; two barriers of a warpgroup for each box.
// Constraints  K and N multiples of 8 (TMA's rows start on 16 bytes), arrays on 16 bytes; any M: TMA leaves out what
//              lies outside C.
// Source       PTX ISA, cp.async.bulk.tensor, stmatrix, fence.proxy.async; A. Gordic, Anatomy of high performance
//              matmul kernels; D. Hilbert, Ueber die stetige Abbildung einer Linie auf ein Flaechenstueck; NVIDIA
//              CUTLASS.
//
// Why it cannot deadlock: see cluster.cuh. The boxes: one thread of a consumer commits all of its stores and waits
// until all but the newest have been read, before its warpgroup writes the oldest box again; it waits for the last ones
// before the block ends.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "cluster.cuh"
#include "tiles.cuh"

constexpr int CONSUMERS = 2, BM = CONSUMERS * ROWS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
// 65536 registers for 384 threads: 168 each at the start, and (24 + 2 * 240) * 128 is no more than that.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

constexpr int BOX = tma::BOX_COLUMNS, BOX_BYTES = ROWS * BOX * 2;  // results that a consumer stores at a time

using TileRing = Ring<CONSUMERS, BN, STAGES>;
using Neighbours = Cluster<DOWN, ACROSS>;
constexpr int SHARED_BYTES = TileRing::BYTES + CONSUMERS * BOXES * BOX_BYTES + tma::ATOM_BYTES;  // with room to align

static_assert(BN / BOX % BOXES == 0, "every tile begins with the first box");

// Columns 64 * part .. 64 * part + 63 of a warpgroup's results as bf16 into `box`. The 16-byte chunk c of a row lies at
// place c ^ (row % 8), so that what a warp writes at a time lies in different banks, eight rows by 16 bytes.
template <int Count>
__device__ __forceinline__ void fill_box(uint8_t* box, const float (&sum)[Count], int part) {
    using wgmma::pack;
    const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
#pragma unroll
    for (int c = 0; c < BOX / 8; c += 2) {
        const float* s = sum + (part * (BOX / 8) + c) * 4;  // of two chunks: 8 columns are 4 sums
        if constexpr (STMATRIX) {
            // Matrices: chunk c of rows 0-7, of rows 8-15, then chunk c + 1 of both; matrix l / 8 is lane l's.
            const int row = warp * 16 + lane / 8 % 2 * 8 + lane % 8, chunk = c + lane / 16;
            stmatrix(box + row * 128 + (chunk ^ lane % 8) * 16, pack(s[0], s[1]), pack(s[2], s[3]), pack(s[4], s[5]),
                     pack(s[6], s[7]));
        } else {
            const int row = warp * 16 + lane / 4;  // row % 8 is lane / 4, of row + 8 too
            uint8_t* first = box + row * 128 + (c ^ lane / 4) * 16 + lane % 4 * 4;
            uint8_t* second = box + row * 128 + ((c + 1) ^ lane / 4) * 16 + lane % 4 * 4;
            *reinterpret_cast<uint32_t*>(first) = pack(s[0], s[1]);
            *reinterpret_cast<uint32_t*>(first + 8 * 128) = pack(s[2], s[3]);
            *reinterpret_cast<uint32_t*>(second) = pack(s[4], s[5]);
            *reinterpret_cast<uint32_t*>(second + 8 * 128) = pack(s[6], s[7]);
        }
    }
}

// The results of a warpgroup, 64 rows from (row, column) on.
template <int Count>
__device__ __forceinline__ void store(const CUtensorMap& c_map, uint8_t* boxes, const float (&sum)[Count], int consumer,
                                      int row, int column) {
    const bool speaks = threadIdx.x % 128 == 0;
#pragma unroll
    for (int part = 0; part < BN / BOX; ++part) {
        uint8_t* box = boxes + (consumer * BOXES + part % BOXES) * BOX_BYTES;
        if (speaks) tma::wait_stores_read<BOXES - 1>();
        named_sync(1 + consumer, 128);  // the box may be written
        fill_box(box, sum, part);
        tma::publish_writes();
        named_sync(1 + consumer, 128);  // the box is written
        if (speaks) tma::store_streaming(c_map, row, column + part * BOX, box);
    }
}

__device__ __forceinline__ tiles::Tile tile_at(int index, int rows, int columns) {
    return HILBERT ? tiles::along_hilbert(index, rows, columns) : tiles::in_groups(index, rows, columns, GROUP);
}

__global__ void __cluster_dims__(Neighbours::BLOCKS, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_tma_store(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                              const __grid_constant__ CUtensorMap c_map, int tile_rows, int tile_columns, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ TileRing::Barriers barriers;
    TileRing ring(tma::align(shared), barriers);  // at the same place in every block
    if (threadIdx.x == 0) {
        tma::prefetch(a_map), tma::prefetch(b_map), tma::prefetch(c_map);
        ring.init(Neighbours::PEERS * CONSUMERS * 4);
    }
    cluster_meet();

    const Neighbours neighbours(cluster_rank());
    const int first = blockIdx.x / Neighbours::BLOCKS, stride = gridDim.x / Neighbours::BLOCKS;
    if (threadIdx.x < 128) {
        lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int index = first; index < tile_rows * tile_columns; index += stride) {
                const tiles::Tile tile = tile_at(index, tile_rows, tile_columns);
                const int row = (tile.row * DOWN + neighbours.row) * BM;
                const int column = (tile.column * ACROSS + neighbours.column) * BN;
                for (int k0 = 0; k0 < K; k0 += BK, ring.turn.advance()) {
                    ring.claim();
                    neighbours.load(ring, a_map, b_map, row, column, k0);
                }
            }
            ring.drain();
        }
    } else {
        raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
        const bool speaks = lane < Neighbours::PEERS;  // a lane for each block
        const uint32_t peer_empty = mbarrier::address_in(barriers.empty, speaks ? neighbours.peer(lane) : 0);
        const auto give_back = [&](int stage) {
            if (speaks) mbarrier::signal(peer_empty + stage * sizeof(uint64_t));
        };
        for (int index = first; index < tile_rows * tile_columns; index += stride) {
            const tiles::Tile tile = tile_at(index, tile_rows, tile_columns);
            const int row = (tile.row * DOWN + neighbours.row) * BM + consumer * ROWS;
            const int column = (tile.column * ACROSS + neighbours.column) * BN;
            float sum[BN / 2];
            ring.multiply<1>(sum, consumer, K, give_back);
            store(c_map, ring.stages + TileRing::BYTES, sum, consumer, row, column);
        }
        if (threadIdx.x % 128 == 0) tma::wait_stores_read<0>();
    }
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map, c_map;
    int clusters = 0;
    cudaError_t error = a_map.describe(A, M, K, BM / ACROSS);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, BN / DOWN);
    if (error == cudaSuccess) error = c_map.describe(C, M, N, ROWS);
    if (error == cudaSuccess)
        error =
            cudaFuncSetAttribute(bf16_gemm_wgmma_tma_store, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error == cudaSuccess)
        error = resident_clusters(bf16_gemm_wgmma_tma_store, Neighbours::BLOCKS, THREADS, SHARED_BYTES, &clusters);
    if (error != cudaSuccess) return error;
    // The tiles of a cluster are DOWN x ACROSS neighbours; those outside the matrix are computed and not stored.
    const int tile_rows = (M - 1) / (BM * DOWN) + 1, tile_columns = (N - 1) / (BN * ACROSS) + 1;
    clusters = tiles::even_workers(tile_rows * tile_columns, clusters);
    bf16_gemm_wgmma_tma_store<<<clusters * Neighbours::BLOCKS, THREADS, SHARED_BYTES, stream>>>(
        a_map.map(), b_map.map(), c_map.map(), tile_rows, tile_columns, K);
    return cudaGetLastError();
}
