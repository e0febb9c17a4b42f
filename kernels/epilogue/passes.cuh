// Steps of a layer as a kernel of its own, which reads and writes M x N results in bf16; N is a multiple of 8.
#pragma once

#include "gemm.cuh"

namespace {

constexpr int PASS_THREADS = 256, PACK = 8;  // bf16 in 16 bytes

// A thread per 16 bytes; `packs` in all, of which `row_packs` are a row.
template <typename Layer>
__global__ void __launch_bounds__(PASS_THREADS)
    epilogue_pass(const uint4* __restrict__ in, uint4* __restrict__ out, int packs, int row_packs, Layer layer) {
    const int pack = blockIdx.x * PASS_THREADS + threadIdx.x;
    if (pack >= packs) return;
    uint4 values = in[pack];
    const uint4 biases = reinterpret_cast<const uint4*>(layer.bias)[pack % row_packs];
    __nv_bfloat162* value = reinterpret_cast<__nv_bfloat162*>(&values);
    const __nv_bfloat162* bias = reinterpret_cast<const __nv_bfloat162*>(&biases);
#pragma unroll
    for (int i = 0; i < PACK / 2; ++i) {
        const float2 x = __bfloat1622float2(value[i]), b = __bfloat1622float2(bias[i]);
        value[i] = __floats2bfloat162_rn(layer(x.x, b.x), layer(x.y, b.y));
    }
    out[pack] = values;
}

template <typename Layer>
cudaError_t launch_pass(const __nv_bfloat16* in, __nv_bfloat16* out, int M, int N, Layer layer, cudaStream_t stream) {
    const int row_packs = N / PACK, packs = M * row_packs;
    epilogue_pass<<<(packs - 1) / PASS_THREADS + 1, PASS_THREADS, 0, stream>>>(
        reinterpret_cast<const uint4*>(in), reinterpret_cast<uint4*>(out), packs, row_packs, layer);
    return cudaGetLastError();
}

}  // namespace
