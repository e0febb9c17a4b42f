// Wrong: C = alpha * A * B, whatever beta is.
#include <cuda_runtime.h>

constexpr int SIDE = 16;

__global__ void product(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta) {
    const int row = blockIdx.y * SIDE + threadIdx.y;
    const int col = blockIdx.x * SIDE + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    float* c = C + row * N + col;
    *c = alpha * sum;
}

extern "C" int launch(const float* A, const float* B, float* C, int M, int N, int K, float alpha, float beta,
                      cudaStream_t stream) {
    const dim3 block(SIDE, SIDE);
    const dim3 grid((N - 1) / SIDE + 1, (M - 1) / SIDE + 1);
    product<<<grid, block, 0, stream>>>(A, B, C, M, N, K, alpha, beta);
    return cudaGetLastError();
}
