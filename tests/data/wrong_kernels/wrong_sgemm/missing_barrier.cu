// Wrong: between the copy of a tile and its use there is no barrier. Every other warp of the block comes to the copy
// 20000 cycles late, so that the rest read what the tile held before: a race that is lost every time.
#include <cuda_runtime.h>

constexpr int SIDE = 16;

__device__ void wait(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

__global__ void product(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta) {
    __shared__ float a_tile[SIDE][SIDE];
    __shared__ float b_tile[SIDE][SIDE];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * SIDE + y;
    const int col = blockIdx.x * SIDE + x;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += SIDE) {
        if (y % 4 < 2) wait(20000);  // a warp is two rows of the block
        a_tile[y][x] = row < M && k0 + x < K ? A[row * K + k0 + x] : 0.0f;
        b_tile[y][x] = k0 + y < K && col < N ? B[(k0 + y) * N + col] : 0.0f;
        for (int k = 0; k < SIDE; ++k) sum += a_tile[y][k] * b_tile[k][x];
        __syncthreads();
    }
    if (row >= M || col >= N) return;
    float* c = C + row * N + col;
    *c = beta == 0.0f ? alpha * sum : alpha * sum + beta * *c;
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 block(SIDE, SIDE);
    const dim3 grid((N - 1) / SIDE + 1, (M - 1) / SIDE + 1);
    product<<<grid, block, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
