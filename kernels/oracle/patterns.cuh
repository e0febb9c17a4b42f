// Address patterns with a known number of bank conflicts or sectors.
//
// They are functions of the lane alone, so that a test can compare the 32 lanes of a warp with a model of the hardware.
#pragma once

namespace {
namespace patterns {

// Shared memory has 32 banks, each one word wide. Lanes below `ways` access bank 0 in different rows, the others their
// own bank in row 0. The number of passes is the largest number of words from one bank, `ways`, from 1 to 32.
__host__ __device__ constexpr int conflicting_word(int lane, int ways) {
    return lane < ways ? 32 * lane : lane;
}
constexpr int CONFLICT_WORDS = 32 * 32;

// Global memory is accessed in sectors of 8 words. A warp accesses `sectors` consecutive sectors; the lanes of a sector
// access its words in turn, one word each if there are enough. Request `step` of steps(sectors) accesses the next words
// of each sector, so that all requests together access every word. With fewer than four sectors, lanes share words.
__host__ __device__ constexpr int lanes_of_a_sector(int sectors) { return 32 / sectors; }
__host__ __device__ constexpr int words_of_a_sector(int sectors) {
    return lanes_of_a_sector(sectors) < 8 ? lanes_of_a_sector(sectors) : 8;
}
__host__ __device__ constexpr int steps(int sectors) { return 8 / words_of_a_sector(sectors); }
__host__ __device__ constexpr int sector_word(int lane, int step, int sectors) {
    return lane / lanes_of_a_sector(sectors) * 8 + lane % words_of_a_sector(sectors) +
           step * words_of_a_sector(sectors);
}

}  // namespace patterns
}  // namespace
