// What the device and the host side of the tracer share, and the kinds of accesses in the file that the host writes.
//
// A request is one execution of a memory instruction by a warp. It has one entry per active lane, in ascending order and
// next to each other; `active` is their mask. wgmma and bulk copies read or write one region for all lanes and have one
// entry: `thread` is the lowest active lane's, `active` holds the bytes of the region, and `size` the number of blocks
// that receive it, more than 1 if it is multicast.
//
// Addresses of shared and local memory are offsets in the window of the block or thread. Those of remote shared memory,
// of bulk copies and of wgmma are addresses in the window of the cluster, whose upper 8 bits are the rank of the block.
// A copy that moves data between two spaces, or an instruction with two operands, has one request for each.
#pragma once
#include <cstdint>

enum Kind : uint32_t {
    GLOBAL = 1,
    SHARED = 2,
    LOCAL = 3,
    LDMATRIX = 4,      // a row of 16 bytes; lanes from 8 * matrices on have no row, and size 0
    STMATRIX = 5,      // the same for what is written
    ASYNC_GLOBAL = 6,  // cp.async: what is read; size 0 if the lane only fills with zeros
    ASYNC_SHARED = 7,  // cp.async: what is written
    WGMMA_A = 8,       // address in the descriptor; bytes of the whole warpgroup, of which each warp has an entry
    WGMMA_B = 9,
    BULK_GLOBAL = 10,  // cp.async.bulk and cp.reduce.async.bulk without a tensor map; those with one are not reported
    BULK_SHARED = 11,
    REMOTE = 12,       // shared memory of a block of the cluster: load, store, atomic, st.async, red.async
};

enum Flag : uint32_t { READ = 1, WRITE = 2, ATOMIC = 4, PREFETCH = 8 };

struct Access {
    uint64_t address;
    uint32_t block, offset, active;  // block: linear index; offset: of the instruction from the start of the function
    uint16_t thread;                 // linear index in the block
    uint8_t size, what;              // bytes of a lane; kind | flags << 4
};
static_assert(sizeof(Access) == 24, "the reader expects 24 bytes");

// A request takes its entries with one atomic addition to `used`. One that does not fit is dropped; the first of these
// lowers `kept` to where its entries would have begun, so that the entries below `kept` are complete.
struct Trace {
    unsigned long long used, kept, capacity;
    uint32_t first_block, blocks;
    Access* entries;
};
