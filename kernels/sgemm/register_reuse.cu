// register_reuse: multiply-adds in an order that reads fewer registers, and loads that make the compiler keep it.
//
// Idea         A multiply-add has three operands, and the register file delivers one register from each of its two
//              banks per cycle. The speed therefore depends on what the reuse caches hold, and at the limit of 700 W
//              also on the energy of the reads. Each operand has a reuse cache with one entry per bank. Along a line of
//              the thread tile (tma_pipelined) one operand stays in it: 2 reads per multiply-add. With two columns at a
//              time, both stay, and a row serves two products: 1.5 reads.
//              ptxas reorders products line by line, to free registers as early as it can. A load that might not happen
//              keeps the previous operand alive, so that another order frees nothing. So the loads of operands have a
//              condition that always holds but that the compiler does not know, `K > 0`; it becomes a predicate of LDS.
//              The wait for TMA moves to the beginning of a step, so that the step is one basic block.
// Expected     1.03 to 1.06 times tma_pipelined, and 5 to 10 % less power per TFLOP/s.
// Cost         0.2 % more executed instructions than tma_pipelined with the same tile parameters (at 4096), and a wait
//              for TMA half a step earlier. The order is up to the compiler; a test counts the register reads.
// Constraints  As tma_pipelined; a thread tile has an even number of columns.
// Source       NVIDIA CUTLASS, two-by-two zigzag of its thread-level products (cutlass/gemm/thread/mma_sm50.h). Z. Jia
//              et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking (arxiv.org/abs/1804.06826)
//              found two register banks and reuse caches on Volta; this kernel assumes that Hopper has them too.

#include "double_buffer.cuh"
#include "tma_tiles.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;
using Tiles = sgemm::TmaTiles<Warp, BK, STAGES>;

__global__ void __launch_bounds__(Warp::THREADS, BLOCKS_PER_SM)
    sgemm_register_reuse(const __grid_constant__ sgemm::TileMaps maps, float* __restrict__ C, int M, int N, int K,
                         float alpha, float beta) {
    extern __shared__ float shared[];

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
#pragma unroll
    for (int stage = 0; stage < STAGES; ++stage)
        if (stage < steps) start_copies(stage, stage);
    mbarrier::wait(&tiles.landed[0], 0);
    tiles.take(0);
    tiles.transpose(0);
    __syncthreads();
    float a_column[2][Warp::ROWS] = {}, b_row[2][Warp::COLUMNS] = {};
    tiles.load_operands(a_column[0], b_row[0], 0, 0, 0);

    float sum[Warp::ROWS][Warp::COLUMNS] = {};
    int half = 0, reading = 0, filling = STAGES - 1, parity = 0;
    for (int step = 0; step < steps; ++step) {
        const int next = reading + 1 == STAGES ? 0 : reading + 1;
        if (next == 0) parity ^= 1;
        // The content of this stage was read before the last barrier.
        if (step > 0 && step + STAGES - 1 < steps) start_copies(filling, step + STAGES - 1);
        if (step + 1 < steps) mbarrier::wait(&tiles.landed[next], parity);
        // There is no branch from here to the end of the step: it is one basic block.
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            if (k == BK / 2) tiles.take(next);  // after the last step this is old data, which is not used
            if (k == BK - 1) {
                tiles.transpose(half ^ 1);
                __syncthreads();
                half ^= 1;
                filling = reading;
                reading = next;
            }
            const int to = (k + 1) % 2;
            if (K > 0) tiles.load_operands(a_column[to], b_row[to], half, reading, (k + 1) % BK);  // always
            sgemm::multiply_by_column_pairs(sum, a_column[k % 2], b_row[k % 2]);
        }
    }
    warp.finish<true>(C, M, N, block_row, block_column, sum, alpha, beta);
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    sgemm::TileMaps maps = {};
    if (!Tiles::describe(&maps, A, B, C, M, N, K))
        return sgemm::start_unaligned(A, B, C, M, N, K, alpha, beta, stream);
    const cudaError_t error =
        cudaFuncSetAttribute(sgemm_register_reuse, cudaFuncAttributeMaxDynamicSharedMemorySize, Tiles::SHARED_BYTES);
    if (error != cudaSuccess) return error;
    const dim3 grid((N - 1) / BN + 1, (M - 1) / BM + 1);
    sgemm_register_reuse<<<grid, Warp::THREADS, Tiles::SHARED_BYTES, stream>>>(maps, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
