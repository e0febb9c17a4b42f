// tma_pipelined: TMA loads whole tiles, and no thread computes an address.
//
// Idea         In cp_async_pipelined every thread still computes where its part of a tile lies and whether it is inside
//              the matrix. Here one thread requests both tiles of a step from the tensor memory accelerator (TMA,
//              sm_90), STAGES steps ahead. TMA knows the matrices from two tensor maps, fills elements outside with
//              zeros, and reports the bytes to an mbarrier. It cannot transpose floats, so all threads transpose A half
//              a step early, from rows that TMA has swizzled: 16 bytes of eight rows lie in different banks. The
//              barrier at the end of a step, which the transposition requires anyway, also shows that a stage is free,
//              so no warp has to be the producer. The tile parameters differ from those of the parent as well: a block
//              computes 128 x 256 results in steps of 32 terms and has an SM to itself, where cp_async_pipelined has
//              128 x 128 results, 16 terms and two blocks per SM. With 256 x 128, twice as much of A would have to be
//              transposed.
// Expected     1.01 to 1.03 times cp_async_pipelined: 93 % of the issued instructions are multiply-adds.
// Cost         Shared memory: STAGES tiles of A and B, and two more of A, transposed. Each launch encodes two tensor
//              maps.
// Constraints  sm_90. Any M, N, K >= 1, any alignment. TMA requires rows aligned to 16 bytes: K and N multiples of 4,
//              aligned arrays. The launcher checks this and otherwise uses the loop of double_buffered. M up to 65535 *
//              BM. BM, BN <= 256.
// Source       CUDA C++ Programming Guide, tensor memory access; PTX ISA, cp.async.bulk.tensor and its swizzles; NVIDIA
//              CUTLASS, sm90 main loops.

#include "double_buffer.cuh"
#include "timeline.cuh"
#include "tma_tiles.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;
using Tiles = sgemm::TmaTiles<Warp, BK, STAGES>;

__global__ void __launch_bounds__(Warp::THREADS, BLOCKS_PER_SM)
    sgemm_tma(const __grid_constant__ sgemm::TileMaps maps, float* __restrict__ C, int M, int N, int K,
              float alpha, float beta) {
    extern __shared__ float shared[];
    TIMELINE_TRACK(track);

    const int tid = threadIdx.x;
    const int block_row = blockIdx.y * BM, block_column = blockIdx.x * BN;
    const Warp warp(tid);
    Tiles tiles(shared, tid, warp);

    const int steps = (K - 1) / BK + 1;
    const auto start_copies = [&](int stage, int step) {
        if (tid == 0) tiles.request(maps, stage, block_row, block_column, step * BK);
    };

    if (tid == 0) tiles.init_barriers();
    __syncthreads();
    TIMELINE(track, LOAD);
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage)
        if (stage < steps) start_copies(stage, stage);
    TIMELINE(track, WAIT);
    mbarrier::wait(&tiles.landed[0], 0);
    tiles.take(0);
    tiles.transpose(0);
    __syncthreads();
    TIMELINE(track, COMPUTE);
    float a_column[2][Warp::ROWS], b_row[2][Warp::COLUMNS];
    tiles.load_operands(a_column[0], b_row[0], 0, 0, 0);

    float sum[Warp::ROWS][Warp::COLUMNS] = {};
    int half = 0, reading = 0, filling = STAGES - 1, parity = 0;
    for (int step = 0; step < steps; ++step) {
        const int next = reading + 1 == STAGES ? 0 : reading + 1;
        if (next == 0) parity ^= 1;
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            // The content of this stage was read before the last barrier.
            if (k == 0 && step > 0 && step + STAGES - 1 < steps) start_copies(filling, step + STAGES - 1);
            if (k == BK / 2) {
                TIMELINE(track, WAIT);
                if (step + 1 < steps) mbarrier::wait(&tiles.landed[next], parity);
                TIMELINE(track, COMPUTE);
                tiles.take(next);  // after the last step this is old data, which is not used
            }
            if (k == BK - 1) {
                tiles.transpose(half ^ 1);
                TIMELINE(track, SYNC);
                __syncthreads();
                TIMELINE(track, COMPUTE);
                half ^= 1;
                filling = reading;
                reading = next;
            }
            const int to = (k + 1) % 2;
            tiles.load_operands(a_column[to], b_row[to], half, reading, (k + 1) % BK);
            sgemm::multiply_line_by_line(sum, a_column[k % 2], b_row[k % 2]);
        }
    }
    TIMELINE(track, STORE);
    warp.finish<true>(C, M, N, block_row, block_column, sum, alpha, beta);
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    sgemm::TileMaps maps = {};
    if (!Tiles::describe(&maps, A, B, C, M, N, K))
        return sgemm::start_unaligned(A, B, C, M, N, K, alpha, beta, stream);
    const cudaError_t error =
        cudaFuncSetAttribute(sgemm_tma, cudaFuncAttributeMaxDynamicSharedMemorySize, Tiles::SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    sgemm_tma<<<grid, Warp::THREADS, Tiles::SHARED_BYTES, stream>>>(maps, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
