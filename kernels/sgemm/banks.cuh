// The banks of shared memory, as a model for static_assert: whether an access of a warp is free of conflicts.
#pragma once

namespace {
namespace banks {

// The most different words that a bank must serve at once, where lane i reads or writes `Floats` (1 or 4) neighbouring
// floats from number `first[i]` on: 1 is free of conflicts. Bank b holds the words b, b + 32, ...; lanes are served 32
// / Floats at a time, and those that want the same word share it.
template <int Floats>
constexpr int ways(const int (&first)[32]) {
    static_assert(Floats == 1 || Floats == 4, "one word a lane, or four");
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
