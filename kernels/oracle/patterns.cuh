// Which lane goes where: address patterns with a known number of bank conflicts or sectors.
//
// A function of the lane alone, so that it can be evaluated for the 32 lanes of a warp against a model of the hardware.
#pragma once

namespace {
namespace patterns {

// Shared memory has 32 banks, each a word wide. Lanes below `ways` take bank 0, each in a row of its own; the others their
// own bank in row 0: passes = the most words that one bank must give = `ways`, for any from 1 to 32.
__host__ __device__ constexpr int conflicting_word(int lane, int ways) {
    return lane < ways ? 32 * lane : lane;
}
constexpr int CONFLICT_WORDS = 32 * 32;

// Global memory is fetched in sectors of 8 words. A warp touches `sectors` of them in a row; the lanes of a sector take
// its words in turn, one each where they suffice. Request `step` of steps(sectors) takes the next words of each sector,
// so that all requests together touch every word; below four sectors lanes share words.
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
