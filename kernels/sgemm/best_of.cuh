// Written by `warplog best-of sgemm`: the fastest variant at each case of campaign
// h200-2026-11-20-69d1f23, NVIDIA H200. Not to be edited.
#pragma once

constexpr int MULTIPROCESSORS = 132;  // of that GPU

#if __CUDA_ARCH_LIST__ >= 750

#include <cstdint>
#include <cuda_runtime.h>

#define launch launch_smem_tiled
namespace smem_tiled {
constexpr int TILE = 32;
#include "smem_tiled.cu"
}  // namespace smem_tiled
#undef launch

#define launch launch_warptile
namespace warptile {
constexpr int BM = 64, BN = 128, BK = 16, WM = 32, WN = 64, WN_PASSES = 2, TM = 8, TN = 4, BLOCKS_PER_SM = 4;
#include "warptile.cu"
}  // namespace warptile
#undef launch

constexpr Row TABLE[] = {  // M, N, K
    {128, 128, 128, smem_tiled::launch_smem_tiled},
    {256, 256, 256, smem_tiled::launch_smem_tiled},
    {512, 512, 512, smem_tiled::launch_smem_tiled},
    {1024, 1024, 1024, warptile::launch_warptile},
    {2048, 2048, 2048, warptile::launch_warptile},
    {4096, 4096, 4096, warptile::launch_warptile},
    {8192, 8192, 8192, warptile::launch_warptile},
};

#endif
