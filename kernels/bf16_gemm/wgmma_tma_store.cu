// wgmma_tma_store, wgmma_stmatrix: the results leave through shared memory and the copy engine.
//
// Idea         wgmma_tma_store: a consumer turns 64 columns of its results at a time into bf16, lays them into shared
//              memory in TMA's swizzle, and has TMA store the box. It goes on while the box is on its way: two boxes a
//              consumer take turns. A store from registers writes 16 bytes of a row, TMA whole lines.
//              wgmma_stmatrix (STMATRIX = 1): stmatrix writes four 8x8 matrices at a time, a quarter of the stores.
// Expected     758 TFLOP/s on an H100 where its parent has 747 (Gordic), 757 at 4096 and 798 at 8192 for the public
//              kernel on an H200; stmatrix brings 1 % more. No bank conflicts in either.
// Cost         32 KiB of shared memory; two barriers of a warpgroup for each box.
// Constraints  K and N multiples of 8 (TMA's rows start on 16 bytes), arrays on 16 bytes; any M: TMA leaves out what
//              lies outside C.
// Source       PTX ISA, cp.async.bulk.tensor, stmatrix, fence.proxy.async; A. Gordic, Anatomy of high performance
//              matmul kernels.
//
// The ring is that of wgmma_cluster, and so is the reason why it cannot deadlock. The boxes: one thread of a consumer
// commits all of its stores and waits until all but the newest have been read, before its warpgroup writes the older
// box again; it waits for the last ones before the block ends.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tiles.cuh"
#include "tma.cuh"
#include "wgmma.cuh"

constexpr int CONSUMERS = 2;
constexpr int BK = tma::BOX_COLUMNS;
constexpr int THREADS = (1 + CONSUMERS) * 128;
constexpr int ROWS = wgmma::M;  // that a consumer computes
constexpr int PART = BN / CLUSTER;  // rows of B that a block loads
constexpr int A_BYTES = BM * BK * 2, STAGE_BYTES = (BM + BN) * BK * 2;
constexpr int BOX = tma::BOX_COLUMNS, BOX_BYTES = ROWS * BOX * 2;  // results that a consumer stores at a time
constexpr int BOXES = 2;                                           // of each consumer, which take turns
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + CONSUMERS * BOXES * BOX_BYTES + tma::ATOM_BYTES;  // room to align

// 65536 registers for 384 threads: 168 each at the start, and (24 + 2 * 240) * 128 is no more than that.
constexpr int PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 240;

static_assert(BM == CONSUMERS * ROWS, "each consumer computes the rows of one product");
static_assert(BN == 128 || BN == 256, "the widths of wgmma.cuh with an even number of boxes");
static_assert(PART % 8 == 0 && PART * CLUSTER == BN, "a part of B is whole atoms of the swizzle");
static_assert(CLUSTER >= 2 && CLUSTER <= 8 && STAGES >= 2, "what every device can place; one stage stays in flight");

__device__ __forceinline__ uint32_t pack(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&pair);
}

// Columns 64 * part .. 64 * part + 63 of a warpgroup's results as bf16 into `box`. The 16-byte chunk c of a row lies at
// place c ^ (row % 8), so that what a warp writes at a time lies in different banks, eight rows by 16 bytes.
template <int Count>
__device__ __forceinline__ void fill_box(uint8_t* box, const float (&sum)[Count], int part) {
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

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
    bf16_gemm_wgmma_tma_store(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                              const __grid_constant__ CUtensorMap c_map, int M, int N, int K) {
    extern __shared__ uint8_t shared[];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    uint8_t* stages = tma::align(shared);  // each a tile of A, then one of B; at the same place in every block
    uint8_t* boxes = stages + STAGES * STAGE_BYTES;

    // The tiles of a cluster are CLUSTER tiles below one another; one below the last row is computed and not stored.
    const int tile_rows = (M - 1) / (BM * CLUSTER) + 1, tile_columns = (N - 1) / BN + 1;
    const int rank = cluster_rank(), first = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbarrier::init(&full[s], 1);
            mbarrier::init(&empty[s], CLUSTER * CONSUMERS * 4);
        }
        mbarrier::publish_inits();
    }
    cluster_sync();

    mbarrier::Turn<STAGES> turn;
    if (threadIdx.x < 128) {
        lower_registers<PRODUCER_REGISTERS>();
        if (threadIdx.x == 0) {
            for (int index = first; index < tile_rows * tile_columns; index += stride) {
                const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
                const int row = (tile.row * CLUSTER + rank) * BM, column = tile.column * BN + rank * PART;
                for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                    uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                    mbarrier::wait_cluster(&empty[turn.stage], turn.parity ^ 1);
                    mbarrier::expect(&full[turn.stage], STAGE_BYTES);
                    tma::load(stage, a_map, row, k0, &full[turn.stage]);
                    tma::load_multicast(stage + A_BYTES + rank * PART * BK * 2, b_map, column, k0, &full[turn.stage],
                                        (1 << CLUSTER) - 1);
                }
            }
        }
    } else {
        raise_registers<CONSUMER_REGISTERS>();
        const int consumer = threadIdx.x / 128 - 1, lane = threadIdx.x % 32;
        const bool stores = threadIdx.x % 128 == 0;  // for its warpgroup
        for (int index = first; index < tile_rows * tile_columns; index += stride) {
            const tiles::Tile tile = tiles::in_groups(index, tile_rows, tile_columns, GROUP);
            float sum[BN / 2];
            int held = 0;  // the stage whose products may still run
            for (int k0 = 0; k0 < K; k0 += BK, turn.advance()) {
                const uint8_t* stage = stages + turn.stage * STAGE_BYTES;
                const uint64_t a = wgmma::describe(stage + consumer * ROWS * BK * 2);
                const uint64_t b = wgmma::describe(stage + A_BYTES);
                mbarrier::wait(&full[turn.stage], turn.parity);
                wgmma::fence();
#pragma unroll
                for (int k = 0; k < BK / wgmma::K; ++k)
                    wgmma::multiply(sum, a + k * wgmma::NEXT_K, b + k * wgmma::NEXT_K, k0 > 0 || k > 0);
                wgmma::commit();
                wgmma::wait<1>();
                if (lane < CLUSTER && k0 > 0) mbarrier::arrive_at(&empty[held], lane);  // a lane for each block
                held = turn.stage;
            }
            wgmma::wait<0>();
            if (lane < CLUSTER) mbarrier::arrive_at(&empty[held], lane);
            wgmma::pin(sum);
            const int row = (tile.row * CLUSTER + rank) * BM + consumer * ROWS;
#pragma unroll
            for (int part = 0; part < BN / BOX; ++part) {
                uint8_t* box = boxes + (consumer * BOXES + part % BOXES) * BOX_BYTES;
                if (stores) tma::wait_stores_read<BOXES - 1>();
                named_sync(1 + consumer, 128);  // the box may be written
                fill_box(box, sum, part);
                tma::publish_writes();
                named_sync(1 + consumer, 128);  // the box is written
                if (stores) tma::store(c_map, row, tile.column * BN + part * BOX, box);
            }
        }
        if (stores) tma::wait_stores_read<0>();
    }
    cluster_sync();
}

extern "C" int launch(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C, int M, int N, int K,
                      cudaStream_t stream) {
    thread_local tma::Map a_map, b_map, c_map;
    int blocks = 0;
    cudaError_t error = multiprocessors(&blocks);
    if (error == cudaSuccess) error = a_map.describe(A, M, K, BM);
    if (error == cudaSuccess) error = b_map.describe(B, N, K, PART);
    if (error == cudaSuccess) error = c_map.describe(C, M, N, ROWS);
    if (error == cudaSuccess)
        error =
            cudaFuncSetAttribute(bf16_gemm_wgmma_tma_store, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
    if (error != cudaSuccess) return error;
    blocks -= blocks % CLUSTER;
    bf16_gemm_wgmma_tma_store<<<blocks, THREADS, SHARED_BYTES, stream>>>(a_map.map(), b_map.map(), c_map.map(), M,
                                                                           N, K);
    return cudaGetLastError();
}
