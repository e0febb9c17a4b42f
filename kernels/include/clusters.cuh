// Launches of thread block clusters whose size is known only at the launch (sm_90).
#pragma once

#include <cuda_runtime.h>

// Internal to each shared object, as in workspace.cuh.
namespace {

// What a launch requires; it holds pointers to itself and is not copied.
struct ClusterLaunch {
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};

    // `clusters` clusters of `blocks` blocks each, in one dimension, without dynamic shared memory.
    ClusterLaunch(int clusters, int blocks, int threads, cudaStream_t stream) {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
        config.gridDim = clusters * blocks;
        config.blockDim = threads;
        config.stream = stream;
        config.attrs = &attribute;
        config.numAttrs = 1;
    }
    ClusterLaunch(const ClusterLaunch&) = delete;
};

}  // namespace
