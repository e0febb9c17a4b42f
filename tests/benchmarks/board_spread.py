"""Simulates how much faster several boards measure a campaign, from the stage times of a recorded one.

    python tests/benchmarks/board_spread.py [RECORDED_CAMPAIGN] [--families N]

Each board measures its families one stage after the other, while the next job starts up, so that its time is the sum of
theirs; two families that time the host never run at once. --families N repeats the campaign's families N times, as a
larger project would have them.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from warplog.catalog import family as catalog
from warplog.catalog.family import Family
from warplog.plan import boards

PROJECT = Path(__file__).parents[2]
COUNTS = (2, 4, 8)


def makespan(seconds: Mapping[str, float], on_host: Sequence[str], count: int) -> float:
    """Returns how long the slowest board takes; host families of different boards follow each other."""
    of_family = boards.spread(seconds, [str(number) for number in range(count)])
    ends = []
    host_free = 0.0
    for board in sorted({*of_family.values()}):
        mine = [name for name, place in of_family.items() if place == board]
        own = sum(seconds[name] for name in mine if name not in on_host)
        host = sum(seconds[name] for name in mine if name in on_host)
        # The board works on its other families until the host is free.
        host_free = max(host_free, 0.0) + host
        ends.append(max(own + host, host_free if host else 0.0))
    return max(ends)


def show(families: Mapping[str, Family], root: Path, copies: int) -> None:
    """Prints the speed-up for each number of boards, and what bounds it."""
    chosen = {
        name: tuple(v for v in family.variants if not v.draft)
        for name, family in families.items()
        if not (family.draft or family.probes)
    }
    once = boards.expected_seconds(chosen, [root])
    seconds = {f"{name}.{copy}": s for name, s in once.items() for copy in range(copies)}
    on_host = [n for n in seconds if families[n.partition(".")[0]].limit == "pcie"]
    total, longest = sum(seconds.values()), max(seconds, key=lambda name: seconds[name])
    print(f"{root.name}: {len(seconds)} families, {total:.0f} s; longest {longest} {seconds[longest]:.0f} s")
    for count in COUNTS:
        took = makespan(seconds, on_host, count)
        most = min(count, total / seconds[longest])
        print(f"{count} boards: {took:6.1f} s, {total / took:.2f} times ({total / took / count:.2f} per board; "
              f"no more than {most:.2f} times, by the longest family)")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Simulates the measuring time on several boards.")
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT / "results" / "recorded" / "h200")
    parser.add_argument("--families", type=int, default=1, metavar="N")
    options = parser.parse_args()
    show(catalog.load([PROJECT / "kernels"]), options.root, options.families)
    sys.exit(0)
