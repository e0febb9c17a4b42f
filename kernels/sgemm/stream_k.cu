// stream_k: as many blocks as the GPU holds, all with the same amount of work.
//
// Idea         512 tiles of 128 x 256 on 132 SMs are 3.9 waves and take as long as 4: a loss of 3 % at 4096. At 1024
//              there are only 32 tiles. Here each block computes whole tiles as long as there is one for every block.
//              The remaining tiles, which come first, are cut along K into equal shares, one per block, even if a cut
//              falls within a tile. The block with the last steps of a tile also adds the partial sums of the blocks
//              that have its first steps. A block requests the first tiles of its next segment before it writes the
//              results of the current one.
//              A block waits for the partial sums of others, and CUDA does not promise in which order blocks start. So
//              blocks take their numbers from a counter when they start, and wait only for lower numbers.
// Expected     1.03 times register_reuse at 4096 and 8192: 54 to 57 TFLOP/s, where the 700 W of the board are the
//              limit. 3 to 4 times at 512 and 1024, where register_reuse leaves most SMs without a tile.
// Cost         Each tile that is cut passes through L2 twice more, about 2 us per block that shares it. A workspace of
//              one tile per block. One atomic operation per block, before its first load. The tile parameters are
//              searched separately from those of register_reuse and may differ: for an H200 the search chose steps of
//              16 terms, four stages and LANES_M = 8, and for register_reuse 32 terms, three stages and LANES_M = 4.
// Constraints  As register_reuse. One stream at a time: concurrent streams would share the workspace and the counter.
//              Sums are added in a fixed order, so the result is the same every time on the same GPU.
// Source       M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on
//              the GPU (arxiv.org/abs/2301.03598); NVIDIA CUTLASS.

// Why it cannot deadlock: a block waits only for blocks with lower numbers, which took them earlier and so are running.
// A share is processed from its end to its beginning: the part that others wait for comes first, the part that waits
// for others last.

#include "double_buffer.cuh"
#include "tiles.cuh"
#include "timeline.cuh"
#include "tma_tiles.cuh"
#include "workspace.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;
using Ring = sgemm::TmaTiles<Warp, BK, STAGES>;

constexpr int THREADS = Warp::THREADS;
constexpr int MOST_BLOCKS = 1024;

// The number of the next block to start; wraps back to 0 for the next launch.
__device__ unsigned int next_number;

// Whether the partial sums of a block are in the workspace; all zero between launches.
__device__ unsigned int is_ready[MOST_BLOCKS];

// Steps [begin, end) of a tile.
struct Segment {
    int tile, begin, end;
};

// What a block computes, in order: its share of the tiles that are too few for all blocks, from its end to its
// beginning, and then whole tiles.
class Work {
   public:
    int steps;  // of a tile

    __device__ __forceinline__ Work(int number, int tiles, int k_steps) : steps(k_steps), number_(number) {
        whole_ = tiles / static_cast<int>(gridDim.x);
        shared_from_ = whole_ * gridDim.x;
        shared_steps_ = (tiles - shared_from_) * steps;
        left_ = begin_of(number_ + 1);
    }

    // The next segment; false if none is left.
    __device__ __forceinline__ bool next(Segment& segment) {
        const int begin = begin_of(number_);
        if (left_ > begin) {
            const int tile = (left_ - 1) / steps, tile_begin = tile * steps;
            segment = {shared_from_ + tile, max(begin, tile_begin) - tile_begin, left_ - tile_begin};
            left_ = tile_begin + segment.begin;
            return true;
        }
        if (done_ == whole_) return false;
        segment = {done_++ * static_cast<int>(gridDim.x) + number_, 0, steps};
        return true;
    }

    // Whether the tile begins before the share of block `block`, and whether that block has a share at all.
    __device__ __forceinline__ bool begins_within(int block, int tile) const {
        return begin_of(block) > (tile - shared_from_) * steps;
    }
    __device__ __forceinline__ bool has_share(int block) const { return begin_of(block) < begin_of(block + 1); }

   private:
    // The beginning of a block's share, in steps over all shared tiles.
    __device__ __forceinline__ int begin_of(int block) const {
        return static_cast<int>(static_cast<int64_t>(shared_steps_) * block / gridDim.x);
    }

    int number_, whole_, shared_from_, shared_steps_, left_, done_ = 0;
};

constexpr int QUADS = Warp::ROWS * Warp::COLUMNS / 4;  // float4 of sums that a thread holds

// A block's partial sums, in the order in which its threads hold them: float4 number `quad` of this thread.
__device__ __forceinline__ float4* partial_of(float4* partials, int block, int quad) {
    return partials + static_cast<size_t>(block) * (BM * BN / 4) + quad * THREADS + threadIdx.x;
}

// Writes alpha times the sums of a tile's first steps for the block that has its last steps.
__device__ __forceinline__ void hand_over(float4* partials, int number,
                                          const float (&sum)[Warp::ROWS][Warp::COLUMNS], float alpha) {
#pragma unroll
    for (int quad = 0; quad < QUADS; ++quad) {
        const float* s = &sum[quad * 4 / Warp::COLUMNS][quad * 4 % Warp::COLUMNS];
        __stcg(partial_of(partials, number, quad),
               make_float4(alpha * s[0], alpha * s[1], alpha * s[2], alpha * s[3]));
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&is_ready[number], 1u);
}

// Adds to C the partial sums of block `block`. It has a lower number, so it is running already: the wait ends.
__device__ __forceinline__ void add_partial(float4* partials, int block, Warp warp, float* C, int M, int N,
                                            int block_row, int block_column) {
    if (threadIdx.x == 0) {
        while (atomicExch(&is_ready[block], 0u) == 0u) {
        }
        __threadfence();
    }
    __syncthreads();
    // About eight quads at a time, so that their loads wait for L2 together. Not all of them at once: values that are
    // live here take registers from the main loop.
    constexpr int WIDE = Warp::COLUMNS / 4, HIGH = WIDE >= 2 ? 8 / WIDE : 4, AT_ONCE = HIGH * WIDE;
    static_assert(HIGH >= 1 && 4 % HIGH == 0, "consecutive rows");
    const int first_row = block_row + warp.row, first_column = block_column + warp.column;
#pragma unroll 1
    for (int i = 0; i < Warp::ROWS; i += HIGH) {
        const int row = first_row + Warp::row_of(i);
        float* const c = C + static_cast<size_t>(row) * N + first_column;
        const auto each = [&](auto visit) {
#pragma unroll
            for (int q = 0; q < AT_ONCE; ++q) {
                const int down = q / WIDE, along = Warp::column_of(q % WIDE * 4);
                visit(q, c + static_cast<size_t>(down) * N + along, row + down < M ? N - first_column - along : 0);
            }
        };
        float4 total[AT_ONCE];
        each([&](int q, float* at, int count) {
            total[q] = __ldcg(partial_of(partials, block, i * WIDE + q));
            add_quad(total[q], load_quad<true>(at, count));
        });
        each([&](int q, float* at, int count) { store_quad<true>(at, count, total[q]); });
    }
}

__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sgemm_stream_k(const __grid_constant__ sgemm::TileMaps maps, float* __restrict__ C, float4* __restrict__ partials,
                   int M, int N, int K, float alpha, float beta) {
    extern __shared__ float shared[];
    TIMELINE_TRACK(track);

    const int tid = threadIdx.x;
    const int tile_rows = (M - 1) / BM + 1, tile_columns = (N - 1) / BN + 1;
    const Warp warp(tid);
    Ring ring(shared, tid, warp);
    __shared__ int number;  // of this block, in the order in which blocks start
    if (tid == 0) {
        number = static_cast<int>(atomicInc(&next_number, gridDim.x - 1));
        ring.init_barriers();
    }
    __syncthreads();

    Work work(number, tile_rows * tile_columns, (K - 1) / BK + 1);
    int reading = 0, parity = 0, half = 0;
    // Requests the first tiles of a segment, which are loaded while the previous segment is written.
    const auto start = [&](const Segment& segment) {
        if (tid != 0) return;
        const tiles::Tile tile = tiles::in_groups(segment.tile, tile_rows, tile_columns, GROUP);
        for (int i = 0; i < STAGES && segment.begin + i < segment.end; ++i)
            ring.request(maps, (reading + i) % STAGES, tile.row * BM, tile.column * BN, (segment.begin + i) * BK);
    };

    Segment segment;
    bool is_left = work.next(segment);
    if (is_left) start(segment);
    while (is_left) {
        const tiles::Tile tile = tiles::in_groups(segment.tile, tile_rows, tile_columns, GROUP);
        const int block_row = tile.row * BM, block_column = tile.column * BN;
        TIMELINE(track, WAIT);
        mbarrier::wait(&ring.landed[reading], parity);
        half ^= 1;  // the other one may still be read
        ring.take(reading);
        ring.transpose(half);
        __syncthreads();
        TIMELINE(track, COMPUTE);
        float a_column[2][Warp::ROWS] = {}, b_row[2][Warp::COLUMNS] = {};
        ring.load_operands(a_column[0], b_row[0], half, reading, 0);

        // [excerpt]
        float sum[Warp::ROWS][Warp::COLUMNS] = {};
        int filling = reading;  // once the first step is done
        for (int step = segment.begin; step < segment.end; ++step) {
            const int next = reading + 1 == STAGES ? 0 : reading + 1;
            if (next == 0) parity ^= 1;
            // The content of this stage was read before the last barrier.
            if (tid == 0 && step > segment.begin && step + STAGES - 1 < segment.end)
                ring.request(maps, filling, block_row, block_column, (step + STAGES - 1) * BK);
            TIMELINE(track, WAIT);
            if (step + 1 < segment.end) mbarrier::wait(&ring.landed[next], parity);
            TIMELINE(track, COMPUTE);
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK / 2) ring.take(next);  // after the last step this is old data, which is not used
                if (k == BK - 1) {
                    ring.transpose(half ^ 1);
                    TIMELINE(track, SYNC);
                    __syncthreads();
                    TIMELINE(track, COMPUTE);
                    half ^= 1;
                    filling = reading;
                    reading = next;
                }
                const int to = (k + 1) % 2;
                if (k < BK - 1 ? K > 0 : step + 1 < segment.end)  // K > 0 always holds, see register_reuse
                    ring.load_operands(a_column[to], b_row[to], half, reading, (k + 1) % BK);
                sgemm::multiply_by_column_pairs(sum, a_column[k % 2], b_row[k % 2]);
            }
        }

        TIMELINE(track, LOAD);
        const Segment finished = segment;
        is_left = work.next(segment);
        if (is_left) start(segment);
        if (finished.end < work.steps) {
            TIMELINE(track, HANDOVER);
            hand_over(partials, number, sum, alpha);
            continue;
        }
        TIMELINE(track, STORE);
        warp.finish<true>(C, M, N, block_row, block_column, sum, alpha, beta);
        if (finished.begin > 0)
            for (int block = number - 1; work.begins_within(block + 1, finished.tile); --block) {
                TIMELINE(track, HANDOVER);
                if (work.has_share(block)) add_partial(partials, block, warp, C, M, N, block_row, block_column);
            }
        // [/excerpt]
    }
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    sgemm::TileMaps maps = {};
    if (!Ring::describe(&maps, A, B, C, M, N, K))
        return sgemm::start_unaligned(A, B, C, M, N, K, alpha, beta, stream);
    int blocks = 0;
    void* partials = nullptr;
    cudaError_t error = multiprocessors(&blocks);
    blocks = min(blocks * BLOCKS_PER_SM, MOST_BLOCKS);
    if (error == cudaSuccess) error = workspace(static_cast<size_t>(blocks) * BM * BN * sizeof(float), &partials);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(sgemm_stream_k, cudaFuncAttributeMaxDynamicSharedMemorySize, Ring::SHARED_BYTES);
    if (error != cudaSuccess) return error;
    sgemm_stream_k<<<blocks, THREADS, Ring::SHARED_BYTES, stream>>>(maps, C, static_cast<float4*>(partials), M, N, K,
                                                                    alpha, beta);
    return cudaGetLastError();
}
