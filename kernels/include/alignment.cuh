// Whether addresses allow accesses of 16 bytes.
#pragma once

#include <cstdint>

// Internal to each shared object, as in workspace.cuh.
namespace {

inline bool on_16_bytes(const void* array) { return reinterpret_cast<uintptr_t>(array) % 16 == 0; }

}  // namespace
