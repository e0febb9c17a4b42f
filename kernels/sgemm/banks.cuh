// A model of the banks of shared memory for static_assert: whether an access of a warp is free of conflicts.
#pragma once

namespace {
namespace banks {

// The largest number of different words that a bank must serve at once, if lane i reads or writes `Floats` (1 or 4)
// neighbouring floats starting at number `first[i]`: 1 is free of conflicts. Bank b holds the words b, b + 32, ...;
// 32 / Floats lanes are served at a time, and lanes that access the same word share it.
template <int Floats>
constexpr int ways(const int (&first)[32]) {
    static_assert(Floats == 1 || Floats == 4, "one word per lane, or four");
    constexpr int LANES = 32 / Floats;
    int most = 0;
    for (int phase = 0; phase < Floats; ++phase) {
        int words[32][LANES] = {}, count[32] = {};
        for (int i = 0; i < 32; ++i) {
            const int word = first[phase * LANES + i / Floats] + i % Floats, bank = word % 32;
            bool is_new = true;
            for (int j = 0; j < count[bank]; ++j) is_new = is_new && words[bank][j] != word;
            if (is_new) words[bank][count[bank]++] = word;
            most = count[bank] > most ? count[bank] : most;
        }
    }
    return most;
}

}  // namespace banks
}  // namespace
