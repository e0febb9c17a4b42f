// stream_k: as many blocks as fit, and no wave that is not full.
//
// Idea         512 tiles of 256 x 128 on 132 SMs are 3.9 waves and take as long as 4: 3 % at 4096; at 1024 there are 32.
//              Here each block computes whole tiles as long as there is one for every block. The tiles that are left
//              are cut along K into equal shares, one a block, wherever that cuts a tile. The block that has a tile's
//              last steps also adds what blocks before it have left of its first ones. And a block asks for the first
//              tiles of its next segment before it writes the results of this one.
// Expected     1.03 times register_reuse at 4096 and 8192; 54 to 57 TFLOP/s, where the board's 700 W limit it. 3 to 4
//              times at 512 and 1024, where register_reuse leaves most SMs without a tile.
// Cost         Each tile that is cut goes through L2 twice more, some 2 us for each block that shares it. A workspace of
//              a tile a block.
// Constraints  Those of register_reuse; one stream at a time, which share the workspace. Sums are added in a fixed
//              order, so that the answer is the same every time on the same GPU.
// Source       M. Osama et al., Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication on
//              the GPU (arxiv.org/abs/2301.03598); NVIDIA CUTLASS.
//
// Why it cannot deadlock: a block waits only for blocks of lower numbers, which start no later than it. A share is
// walked from its end to its begin: what others wait for comes first, what waits for others last.

#include "double_buffer.cuh"
#include "tiles.cuh"
#include "tma_tiles.cuh"
#include "workspace.cuh"

using Warp = sgemm::WarpTile<BM, BN, WM, WN, LANES_M>;
using Ring = sgemm::TmaTiles<Warp, BK, STAGES>;

constexpr int THREADS = Warp::THREADS;
constexpr int MOST_BLOCKS = 1024;

// Whether the partial sums of a block lie in the workspace; all zero between launches.
__device__ unsigned int is_ready[MOST_BLOCKS];

// Steps [begin, end) of a tile.
struct Segment {
    int tile, begin, end;
};

// What a block does, in order: its share of the tiles that do not suffice for all blocks, from its end to its begin,
// and then whole tiles.
class Work {
   public:
    int steps;  // of a tile

    __device__ __forceinline__ Work(int tiles, int k_steps) : steps(k_steps) {
        whole_ = tiles / static_cast<int>(gridDim.x);
        shared_from_ = whole_ * gridDim.x;
        shared_steps_ = (tiles - shared_from_) * steps;
        left_ = begin_of(blockIdx.x + 1);
    }

    // The next segment; false where none is left.
    __device__ __forceinline__ bool next(Segment& segment) {
        const int begin = begin_of(blockIdx.x);
        if (left_ > begin) {
            const int tile = (left_ - 1) / steps, tile_begin = tile * steps;
            segment = {shared_from_ + tile, max(begin, tile_begin) - tile_begin, left_ - tile_begin};
            left_ = tile_begin + segment.begin;
            return true;
        }
        if (done_ == whole_) return false;
        segment = {done_++ * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x), 0, steps};
        return true;
    }

    // Whether steps of this tile come before the share of block `block`, and whether that has a share at all.
    __device__ __forceinline__ bool begins_within(int block, int tile) const {
        return begin_of(block) > (tile - shared_from_) * steps;
    }
    __device__ __forceinline__ bool has_share(int block) const { return begin_of(block) < begin_of(block + 1); }

   private:
    // Where the share of a block begins, in steps of all shared tiles.
    __device__ __forceinline__ int begin_of(int block) const {
        return static_cast<int>(static_cast<int64_t>(shared_steps_) * block / gridDim.x);
    }

    int whole_, shared_from_, shared_steps_, left_, done_ = 0;
};

constexpr int QUADS = Warp::ROWS * Warp::COLUMNS / 4;  // float4 of sums that a thread holds

// A block's partial sums, in the order in which its threads hold them: float4 number `quad` of this thread.
__device__ __forceinline__ float4* partial_of(float4* partials, int block, int quad) {
    return partials + static_cast<size_t>(block) * (BM * BN / 4) + quad * THREADS + threadIdx.x;
}

// Leaves alpha times the sums of a tile's first steps for the block that has its last ones.
__device__ __forceinline__ void hand_over(float4* partials, const float (&sum)[Warp::ROWS][Warp::COLUMNS],
                                          float alpha) {
#pragma unroll
    for (int quad = 0; quad < QUADS; ++quad) {
        const float* s = &sum[quad * 4 / Warp::COLUMNS][quad * 4 % Warp::COLUMNS];
        __stcg(partial_of(partials, blockIdx.x, quad),
               make_float4(alpha * s[0], alpha * s[1], alpha * s[2], alpha * s[3]));
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(&is_ready[blockIdx.x], 1u);
}

// Adds to C what block `block` left. It has a lower number, so it was started before this one: the wait ends.
__device__ __forceinline__ void add_partial(float4* partials, int block, Warp warp, float* C, int M, int N,
                                            int block_row, int block_column) {
    if (threadIdx.x == 0) {
        while (atomicExch(&is_ready[block], 0u) == 0u) {
        }
        __threadfence();
    }
    __syncthreads();
    // Eight quads or so at a time, so that their loads wait for L2 together. Not all of them: what lives here takes
    // registers from the loop above.
    constexpr int WIDE = Warp::COLUMNS / 4, HIGH = WIDE >= 2 ? 8 / WIDE : 4, AT_ONCE = HIGH * WIDE;
    static_assert(HIGH >= 1 && 4 % HIGH == 0, "rows that follow each other");
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
            sgemm::add_quad(total[q], sgemm::load_quad<true>(at, count));
        });
        each([&](int q, float* at, int count) { sgemm::store_quad<true>(at, count, total[q]); });
    }
}

__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sgemm_stream_k(const __grid_constant__ sgemm::TileMaps maps, float* __restrict__ C, float4* __restrict__ partials,
                   int M, int N, int K, float alpha, float beta) {
    extern __shared__ float shared[];

    const int tid = threadIdx.x;
    const int tile_rows = (M - 1) / BM + 1, tile_columns = (N - 1) / BN + 1;
    const Warp warp(tid);
    Ring ring(shared, tid, warp);
    if (tid == 0) ring.init_barriers();
    __syncthreads();

    Work work(tile_rows * tile_columns, (K - 1) / BK + 1);
    int reading = 0, parity = 0, half = 0;
    // Asks for the first tiles of a segment: they are under way while the segment before it is written.
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
        mbarrier::wait(&ring.landed[reading], parity);
        half ^= 1;  // the other one may still be read
        ring.take(reading);
        ring.transpose(half);
        __syncthreads();
        float a_column[2][Warp::ROWS] = {}, b_row[2][Warp::COLUMNS] = {};
        ring.load_operands(a_column[0], b_row[0], half, reading, 0);

        float sum[Warp::ROWS][Warp::COLUMNS] = {};
        int filling = reading;  // once the first step is done
        for (int step = segment.begin; step < segment.end; ++step) {
            const int next = reading + 1 == STAGES ? 0 : reading + 1;
            if (next == 0) parity ^= 1;
            // What this stage held was read before the last barrier.
            if (tid == 0 && step > segment.begin && step + STAGES - 1 < segment.end)
                ring.request(maps, filling, block_row, block_column, (step + STAGES - 1) * BK);
            if (step + 1 < segment.end) mbarrier::wait(&ring.landed[next], parity);
#pragma unroll
            for (int k = 0; k < BK; ++k) {
                if (k == BK / 2) ring.take(next);  // after the last step these are old, and nobody uses them
                if (k == BK - 1) {
                    ring.transpose(half ^ 1);
                    __syncthreads();
                    half ^= 1;
                    filling = reading;
                    reading = next;
                }
                const int to = (k + 1) % 2;
                if (k < BK - 1 ? K > 0 : step + 1 < segment.end)  // K > 0: always, see register_reuse
                    ring.load_operands(a_column[to], b_row[to], half, reading, (k + 1) % BK);
                sgemm::multiply_by_column_pairs(sum, a_column[k % 2], b_row[k % 2]);
            }
        }

        const Segment finished = segment;
        is_left = work.next(segment);
        if (is_left) start(segment);
        if (finished.end < work.steps) {
            hand_over(partials, sum, alpha);
            continue;
        }
        warp.finish<true>(C, M, N, block_row, block_column, sum, alpha, beta);
        if (finished.begin > 0)
            for (int block = blockIdx.x - 1; work.begins_within(block + 1, finished.tile); --block)
                if (work.has_share(block)) add_partial(partials, block, warp, C, M, N, block_row, block_column);
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
