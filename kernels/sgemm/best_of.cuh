// Written by `warplog best-of sgemm`: the fastest variant at each case of campaign
// h200-2026-11-20-2bb22f0, NVIDIA H200. Not to be edited.
#pragma once

constexpr int MULTIPROCESSORS = 132;  // of that GPU

#if __CUDA_ARCH_LIST__ >= 900

#include "double_buffer.cuh"
#include "tiles.cuh"
#include "tma_tiles.cuh"
#include "workspace.cuh"

#define launch launch_split_k
namespace split_k {
constexpr int BM = 64, BN = 64, BK = 32, WM = 32, WN = 32, LANES_M = 4, BLOCKS_PER_SM = 4, MIN_K = 32, WAVES = 2;
#include "split_k.cu"
}  // namespace split_k
#undef launch

#define launch launch_stream_k
namespace stream_k {
constexpr int BM = 128, BN = 256, BK = 16, WM = 64, WN = 64, LANES_M = 8, BLOCKS_PER_SM = 1, STAGES = 4, GROUP = 16;
#include "stream_k.cu"
}  // namespace stream_k
#undef launch

#define launch launch_register_reuse
namespace register_reuse {
constexpr int BM = 128, BN = 256, BK = 32, WM = 64, WN = 64, LANES_M = 4, BLOCKS_PER_SM = 1, STAGES = 3;
#include "register_reuse.cu"
}  // namespace register_reuse
#undef launch

constexpr Row TABLE[] = {  // M, N, K
    {128, 128, 128, split_k::launch_split_k},
    {256, 256, 256, split_k::launch_split_k},
    {512, 512, 512, split_k::launch_split_k},
    {1024, 1024, 1024, split_k::launch_split_k},
    {2048, 2048, 2048, stream_k::launch_stream_k},
    {4096, 4096, 4096, register_reuse::launch_register_reuse},
    {8192, 8192, 8192, register_reuse::launch_register_reuse},
    {16384, 16384, 16384, register_reuse::launch_register_reuse},
};

#elif __CUDA_ARCH_LIST__ >= 800

#include "double_buffer.cuh"

#define launch launch_split_k
namespace split_k {
constexpr int BM = 64, BN = 64, BK = 32, WM = 32, WN = 32, LANES_M = 4, BLOCKS_PER_SM = 4, MIN_K = 32, WAVES = 2;
#include "split_k.cu"
}  // namespace split_k
#undef launch

#define launch launch_double_buffered
namespace double_buffered {
constexpr int BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, LANES_M = 4, BLOCKS_PER_SM = 2;
#include "double_buffered.cu"
}  // namespace double_buffered
#undef launch

#define launch launch_cp_async_pipelined
namespace cp_async_pipelined {
constexpr int BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, LANES_M = 4, BLOCKS_PER_SM = 2, STAGES = 3;
#include "cp_async_pipelined.cu"
}  // namespace cp_async_pipelined
#undef launch

#define launch launch_block_swizzled
namespace block_swizzled {
constexpr int BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, LANES_M = 4, BLOCKS_PER_SM = 2, GROUP = 16;
#include "block_swizzled.cu"
}  // namespace block_swizzled
#undef launch

constexpr Row TABLE[] = {  // M, N, K
    {128, 128, 128, split_k::launch_split_k},
    {256, 256, 256, split_k::launch_split_k},
    {512, 512, 512, split_k::launch_split_k},
    {1024, 1024, 1024, split_k::launch_split_k},
    {2048, 2048, 2048, double_buffered::launch_double_buffered},
    {4096, 4096, 4096, cp_async_pipelined::launch_cp_async_pipelined},
    {8192, 8192, 8192, block_swizzled::launch_block_swizzled},
    {16384, 16384, 16384, block_swizzled::launch_block_swizzled},
};

#elif __CUDA_ARCH_LIST__ >= 750

#include "double_buffer.cuh"

#define launch launch_split_k
namespace split_k {
constexpr int BM = 64, BN = 64, BK = 32, WM = 32, WN = 32, LANES_M = 4, BLOCKS_PER_SM = 4, MIN_K = 32, WAVES = 2;
#include "split_k.cu"
}  // namespace split_k
#undef launch

#define launch launch_double_buffered
namespace double_buffered {
constexpr int BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, LANES_M = 4, BLOCKS_PER_SM = 2;
#include "double_buffered.cu"
}  // namespace double_buffered
#undef launch

#define launch launch_block_swizzled
namespace block_swizzled {
constexpr int BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, LANES_M = 4, BLOCKS_PER_SM = 2, GROUP = 16;
#include "block_swizzled.cu"
}  // namespace block_swizzled
#undef launch

constexpr Row TABLE[] = {  // M, N, K
    {128, 128, 128, split_k::launch_split_k},
    {256, 256, 256, split_k::launch_split_k},
    {512, 512, 512, split_k::launch_split_k},
    {1024, 1024, 1024, split_k::launch_split_k},
    {2048, 2048, 2048, double_buffered::launch_double_buffered},
    {4096, 4096, 4096, block_swizzled::launch_block_swizzled},
    {8192, 8192, 8192, block_swizzled::launch_block_swizzled},
    {16384, 16384, 16384, block_swizzled::launch_block_swizzled},
};

#endif
