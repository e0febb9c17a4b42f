// The ring: nodes one cache line apart, each of which names the next; all of them are one cycle in random order.
#pragma once

#include <cuda_runtime.h>

constexpr int LINE = 32;              // elements from node to node: 128 bytes, a line of L1 and of L2
constexpr int CHASE_THREADS = 1024;   // they prepare the ring; one of them follows it
constexpr int UNROLLED_HOPS = 16;

constexpr int nodes_of(int n) { return (n - 1) / LINE + 1; }

// A node that holds the address of the next, as large as a line.
struct alignas(4 * LINE) Node {
    const Node* next;
};
