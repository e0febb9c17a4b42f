"""How often is the same code called FASTER or SLOWER? Judges A/A rounds from the medians of their processes.

    python tests/benchmarks/aa_words.py workflow/docs/aa/h100-43515e00.csv.gz workflow/docs/aa/h100-2fd92258.csv.gz

Each pair of rounds of a family is judged twice: with floors from the two rounds themselves, as two campaigns are, and
with floors from the other rounds. The interval of the share resamples families, and rounds within them, since pairs
that share a round are not independent. Rows need the columns family, variant, case, round, process and median_us.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from warplog.analysis.noise import ASSUMED, Spread, estimate
from warplog.analysis.verdicts import FASTER, SLOWER, Verdict, judge

Case = tuple[str, str, str]
Rounds = Mapping[
    int, Mapping[Case, list[float]]
]  # by round and case, the medians of the processes in microseconds


def read(path: str) -> Rounds:
    """Returns the rounds in a file."""
    found: dict[int, dict[Case, list[float]]] = defaultdict(dict)
    for (number, *case), rows in pd.read_csv(path).groupby(["round", "family", "variant", "case"]):
        found[int(number)][tuple(case)] = rows["median_us"].tolist()
    return found


def spreads(rounds: Rounds, numbers: list[int]) -> Mapping[Case, Spread]:
    """Returns the spread of each case in some rounds, and the typical one of those that ran in one process."""
    cases = {case for number in numbers for case in rounds[number]}
    times = {case: [rounds[n][case] for n in numbers if case in rounds[n]] for case in sorted(cases)}
    found, typical = estimate(times) or ({}, ASSUMED)
    return dict.fromkeys(times, typical) | found


def verdicts(rounds: Rounds, own: bool) -> dict[str, dict[tuple[int, int], list[Verdict]]]:
    """Returns the verdicts by family and pair of rounds."""
    found: dict[str, dict[tuple[int, int], list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for pair in combinations(sorted(rounds), 2):
        others = [number for number in rounds if number not in pair]
        sides = [spreads(rounds, [number] if own else others) for number in pair]
        for case in rounds[pair[0]]:
            if case in rounds[pair[1]] and case in sides[0] and case in sides[1]:
                a, b = (side[case].timed([rounds[n][case]]) for side, n in zip(sides, pair, strict=True))
                found[case[0]][pair].append(judge(a, b))
    return found


def interval(found: Mapping[str, Mapping[tuple[int, int], list[Verdict]]]) -> tuple[float, float]:
    """Returns the 95 % interval of the share of FASTER and SLOWER, resampled by family and round."""
    random, shares = np.random.default_rng(0), []
    wrong = {
        f: {p: sum(v.word in (FASTER, SLOWER) for v in vs) for p, vs in of.items()} for f, of in found.items()
    }
    for _ in range(4000):
        count = total = 0
        for family in random.choice(sorted(found), len(found)):
            numbers = sorted({number for pair in found[family] for number in pair})
            for pair in combinations(sorted(random.choice(numbers, len(numbers))), 2):
                if pair in found[family]:
                    count, total = count + wrong[family][pair], total + len(found[family][pair])
        shares.append(count / total if total else 0.0)
    low, high = np.percentile(shares, [2.5, 97.5])
    return float(low), float(high)


if __name__ == "__main__":
    files = [read(path) for path in sys.argv[1:]]
    for own in (True, False):
        together: dict[str, dict[tuple[int, int], list[Verdict]]] = {}
        for place, rounds in enumerate(files):
            together |= {f"{family} {place}": found for family, found in verdicts(rounds, own).items()}
        everything = [one for found in together.values() for pair in found.values() for one in pair]
        words = pd.Series([one.word for one in everything]).value_counts().to_dict()
        share = 100 * sum(words.get(word, 0) for word in (FASTER, SLOWER)) / len(everything)
        low, high = interval(together)
        print(
            f"floors of {'the two rounds' if own else 'the other rounds'}: {len(everything)} pairs: {words}"
        )
        print(f"  FASTER or SLOWER: {share:.2f} %, 95 % interval {100 * low:.2f} to {100 * high:.2f} %")
        for family, found in sorted(together.items()):
            own_words = [one for pair in found.values() for one in pair]
            wrong = sum(one.word in (FASTER, SLOWER) for one in own_words)
            print(f"  {family}: {wrong} of {len(own_words)}")
