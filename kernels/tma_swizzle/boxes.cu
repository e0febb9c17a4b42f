// boxes: a tile that TMA copies to shared memory, read again and again by rows or by columns.
//
// Idea         Eight lanes read 16 bytes each at a time, 128 bytes, one pass over the 32 banks if they lie in different
//              groups of four banks. The lanes of a row's pieces do. Lanes that read the same piece of consecutive rows
//              do not: rows of 128 bytes (ROW_BYTES) begin in the same bank, so that eight lanes take eight passes,
//              rows of 64 bytes four, rows of 32 bytes two. plain_32, plain_64, plain_128 show this. In swizzle_32,
//              swizzle_64, swizzle_128 (SWIZZLE) TMA writes the pieces of a box in another order, an XOR of the piece
//              with bits of the row, so that eight consecutive rows have their pieces in eight different groups of
//              banks. The reader computes the same XOR, once before its loop. Rows are as long as the mode permits.
//              The tile has 8 KiB in all variants, so a round of reads is the same number of bytes.
// Expected     Passes per ideal pass: 2, 4 and 8 in columns of the plain boxes, 1 in their rows, and 1 both ways with a
//              swizzle. The time per round, which is the difference between two cases over the difference in rounds,
//              grows by the same factors.
// Cost         An XOR per address. A box must be aligned to its atom, 1024 bytes for the swizzle of 128 bytes.
// Constraints  Any number of rows and pieces; `in` aligned to 16 bytes, as TMA requires. Row tiles up to 65535.
// Source       CUDA driver API, cuTensorMapEncodeTiled; PTX ISA, swizzling modes; A. Gordic, Anatomy of high
//              performance matmul kernels.

#include <cuda_runtime.h>

#include <cstdint>

#include "tma_modes.cuh"

constexpr int TILE_BYTES = 8192, PIECE_BYTES = 16, THREADS = 256, BLOCKS_PER_SM = 8;
constexpr int TILE_PIECES = ROW_BYTES / PIECE_BYTES, TILE_ROWS = TILE_BYTES / ROW_BYTES;
constexpr int READS = TILE_BYTES / PIECE_BYTES / THREADS;  // of a thread per round
constexpr int SHARED_BYTES = TILE_BYTES + tma::ATOM_BYTES;  // with room for alignment

static_assert(TILE_ROWS <= 256, "TMA's limit for a box");

// Reads 16 bytes of shared memory; volatile, so that each round reads them again.
__device__ __forceinline__ int4 read_piece(uint32_t address) {
    int4 piece;
    asm volatile("ld.volatile.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(piece.x), "=r"(piece.y), "=r"(piece.z), "=r"(piece.w)
                 : "r"(address)
                 : "memory");
    return piece;
}

// A block per tile; out[piece][row] = rounds * in[row][piece], in pieces of four integers.
__global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    tma_swizzle(const __grid_constant__ CUtensorMap map, int4* __restrict__ out, int rows, int pieces, int rounds,
                int by_row) {
    extern __shared__ uint8_t shared[];
    __shared__ uint64_t arrived;
    uint8_t* tile = tma::align(shared);
    const int first_row = blockIdx.y * TILE_ROWS, first_piece = blockIdx.x * TILE_PIECES;
    if (threadIdx.x == 0) {
        mbarrier::init(&arrived, 1);
        mbarrier::publish_inits();
        mbarrier::expect(&arrived, TILE_BYTES);
        tma::load(tile, map, first_row, first_piece * (PIECE_BYTES / 4), &arrived);
    }

    int row[READS], piece[READS];
    uint32_t address[READS];
    int4 sum[READS];
#pragma unroll
    for (int i = 0; i < READS; ++i) {
        const int index = threadIdx.x + i * THREADS;
        row[i] = by_row ? index / TILE_PIECES : index % TILE_ROWS;
        piece[i] = by_row ? index % TILE_PIECES : index / TILE_ROWS;
        address[i] = shared_address(tile) + tma::place<SWIZZLE>(row[i] * ROW_BYTES + piece[i] * PIECE_BYTES);
        sum[i] = make_int4(0, 0, 0, 0);
    }
    __syncthreads();  // the barrier is initialised
    mbarrier::wait(&arrived, 0);

#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < READS; ++i) {
            const int4 read = read_piece(address[i]);
            sum[i].x += read.x, sum[i].y += read.y, sum[i].z += read.z, sum[i].w += read.w;
        }
    }

#pragma unroll
    for (int i = 0; i < READS; ++i) {
        const int to_row = first_row + row[i], to_piece = first_piece + piece[i];
        if (to_row < rows && to_piece < pieces) out[static_cast<size_t>(to_piece) * rows + to_row] = sum[i];
    }
}

extern "C" int launch(const int* in, int* out, int rows, int pieces, int rounds, int by_row, cudaStream_t stream) {
    thread_local tma::IntegerMap<SWIZZLE> map;
    const cudaError_t error =
        map.describe(in, rows, pieces * (PIECE_BYTES / 4), TILE_ROWS, ROW_BYTES / static_cast<int>(sizeof(int)));
    if (error != cudaSuccess) return error;
    const dim3 grid((pieces - 1) / TILE_PIECES + 1, (rows - 1) / TILE_ROWS + 1);
    tma_swizzle<<<grid, THREADS, SHARED_BYTES, stream>>>(map.map(), reinterpret_cast<int4*>(out), rows, pieces, rounds,
                                                         by_row);
    return cudaGetLastError();
}
