// vectorized, written_in_order: tiles of 64x64 with accesses of four floats in global and in shared memory.
//
// Idea         A thread loads a patch of 4x4: four float4, one from each of four neighbouring rows. It transposes the
//              patch in registers, which takes no instruction, and stores four float4 to the transposed tile; another
//              thread reads rows of that tile and writes them. All accesses are 16 bytes wide: a quarter of the
//              instructions, and four independent loads in flight per thread. The tile is kept in groups of four
//              floats: group g of the transposed row r lies at g ^ (r / 4). A store by a quarter of a warp goes to
//              eight rows with consecutive r / 4 and the same g, and so to eight different groups of four banks; a read
//              goes along one row.
//              written_in_order (DOWN = 1): of the thousand tiles in flight, those with neighbouring numbers lie below
//              one another in `in`, so that rows of the result are completed over their whole length, and rows of `in`
//              are read in pieces. A piece of a read is a quarter of a KiB in both variants, but DRAM is slower when
//              writes are scattered.
// Expected     vectorized: at least as fast as padded, with about a quarter of the instructions. written_in_order: a
//              few percent faster than vectorized.
// Cost         16 KiB of shared memory per block; a row of 64 floats is only 16 lanes, so a warp accesses two rows at a
//              time.
// Constraints  Any M, N >= 1, M (DOWN: N) up to 65535 * TILE. Wide accesses require rows aligned to 16 bytes: M and N
//              multiples of 4, aligned arrays. The launcher checks this and otherwise uses the instantiation that
//              copies float by float.
// Source       G. Ruetsch and P. Micikevicius, Optimizing matrix transpose in CUDA, NVIDIA 2009; with wide accesses.

#include <cuda_runtime.h>

#include "alignment.cuh"
#include "quads.cuh"

constexpr int GROUPS = TILE / 4;  // groups of four floats in a row of the tile

static_assert(THREADS == GROUPS * GROUPS, "one thread per patch of 4x4");
static_assert(GROUPS % 8 == 0 && (GROUPS & (GROUPS - 1)) == 0, "the swizzle permutes at least eight groups");

template <bool WIDE>
__global__ void __launch_bounds__(THREADS)
    transpose_vectorized(const float* __restrict__ in, float* __restrict__ out, int M, int N) {
    __shared__ float4 tile[TILE][GROUPS];  // transposed: a row holds a column of `in`

    const int block_row = (DOWN ? blockIdx.x : blockIdx.y) * TILE, block_col = (DOWN ? blockIdx.y : blockIdx.x) * TILE;
    const int group = threadIdx.x % GROUPS, patch = threadIdx.x / GROUPS;

    // The patch: rows 4 * patch to 4 * patch + 3, columns 4 * group to 4 * group + 3 of the tile of `in`.
    float4 quad[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = block_row + patch * 4 + i, col = block_col + group * 4;
        quad[i] = load_quad<WIDE>(in + static_cast<size_t>(row) * N + col, row < M ? N - col : 0);
    }
    const int place = patch ^ group;  // of group `patch` in rows 4 * group to 4 * group + 3
    tile[group * 4 + 0][place] = make_float4(quad[0].x, quad[1].x, quad[2].x, quad[3].x);
    tile[group * 4 + 1][place] = make_float4(quad[0].y, quad[1].y, quad[2].y, quad[3].y);
    tile[group * 4 + 2][place] = make_float4(quad[0].z, quad[1].z, quad[2].z, quad[3].z);
    tile[group * 4 + 3][place] = make_float4(quad[0].w, quad[1].w, quad[2].w, quad[3].w);
    __syncthreads();

#pragma unroll
    for (int i = 0; i < TILE; i += THREADS / GROUPS) {
        const int r = i + patch;  // row of the transposed tile
        const int row = block_col + r, col = block_row + group * 4;
        store_quad<WIDE>(out + static_cast<size_t>(row) * M + col, row < N ? M - col : 0,
                         tile[r][group ^ (r / 4)]);
    }
}

extern "C" int launch(const float* in, float* out, int M, int N, cudaStream_t stream) {
    const int down = (M - 1) / TILE + 1, across = (N - 1) / TILE + 1;
    const dim3 grid(DOWN ? down : across, DOWN ? across : down);
    if (M % 4 == 0 && N % 4 == 0 && on_16_bytes(in) && on_16_bytes(out))
        transpose_vectorized<true><<<grid, THREADS, 0, stream>>>(in, out, M, N);
    else
        transpose_vectorized<false><<<grid, THREADS, 0, stream>>>(in, out, M, N);
    return cudaGetLastError();
}
