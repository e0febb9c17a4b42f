"""Simulates how much faster several boards measure a campaign, from the stage times of a recorded one.

    python tests/benchmarks/board_spread.py [RECORDED_CAMPAIGN] [--families N] [--split]

Each board measures its families one stage after the other, while the next job starts up, so that its time is the sum of
theirs; two families that time the host never run at once. --families N repeats the campaign's families N times, as a
larger project would have them. --split supposes that the variants of a family may be measured on several boards: each
board then measures the baseline too, and the parent of each of its variants, so that no step of the ladder compares two
boards. A family that times the host is never split.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from warplog.catalog import family as catalog
from warplog.catalog.family import Family, Variant
from warplog.core.records import FamilyRecord
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


def parts_of(family: Family, seconds: Mapping[str, float], count: int) -> list[float]:
    """Returns how long `count` parts of a family take, each a piece of the ladder with the baseline and all parents."""
    ladder = [v for v in family.variants if v.name in seconds]

    def cost(piece: Sequence[Variant]) -> float:
        names = {v.name for v in piece}
        beside = {family.baseline, *(v.parent for v in piece if v.parent)} - names
        return sum(seconds.get(name, 0.0) for name in (*names, *beside))

    # best[n][k]: the longest part of the first n variants in k parts, and where the last part begins.
    best = {(0, 0): (0.0, 0)}
    for k in range(1, count + 1):
        for n in range(k, len(ladder) + 1):
            best[n, k] = min(
                (max(best[m, k - 1][0], cost(ladder[m:n])), m) for m in range(k - 1, n) if (m, k - 1) in best
            )
    found, n = [], len(ladder)
    for k in range(count, 0, -1):
        m = best[n, k][1]
        found.append(cost(ladder[m:n]))
        n = m
    return found


def split(
    families: Mapping[str, Family], root: Path, once: Mapping[str, float], count: int
) -> dict[str, float]:
    """Returns the time of each part: families are split further as long as that makes the slowest board faster."""
    each = {name: seconds_of_variants(root, name) for name in once}
    pieces = dict.fromkeys(once, 1)
    on_host = [name for name in once if families[name].limit == "pcie"]

    def parts(of: Mapping[str, int]) -> dict[str, float]:
        return {
            f"{name}.{place}": s
            for name, number in of.items()
            for place, s in enumerate(
                parts_of(families[name], each[name], number) if number > 1 else [once[name]]
            )
        }

    while True:
        now = makespan(parts(pieces), [f"{name}.0" for name in on_host], count)
        options = [
            {**pieces, name: n + 1}
            for name, n in pieces.items()
            if name not in on_host and n < len(each[name])
        ]
        after = [
            (makespan(parts(one), [f"{name}.0" for name in on_host], count), place)
            for place, one in enumerate(options)
        ]
        if not after or min(after)[0] >= now:
            return parts(pieces)
        pieces = options[min(after)[1]]


def seconds_of_variants(root: Path, family: str) -> dict[str, float]:
    """Returns how long each variant of a family took, over all measuring stages."""
    found: dict[str, float] = {}
    for stage in ("check/*/{}.json", "time/*/{}.json", "profile/*/{}.ncu.json", "profile/*/{}.nsys.json"):
        for path in root.glob(stage.format(family)):
            for name, record in FamilyRecord.read(path).variants.items():
                cases = sum(case.get("seconds", 0.0) for case in record["cases"])
                start = record.get("session", {}).get("start_seconds", 0.0)
                found[name] = found.get(name, 0.0) + cases + start
    return found


def show(families: Mapping[str, Family], root: Path, copies: int, splits: bool) -> None:
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
        if splits:
            parts = split(families, root, once, count)
            took = makespan(parts, [f"{name}.0" for name in on_host_once(families, once)], count)
            print(
                f"{count} boards, split into {len(parts)} parts: {took:6.1f} s, {total / took:.2f} times"
                f" ({total / took / count:.2f} per board); {sum(parts.values()) - total:.0f} s measured twice"
            )
            continue
        took = makespan(seconds, on_host, count)
        most = min(count, total / seconds[longest])
        print(f"{count} boards: {took:6.1f} s, {total / took:.2f} times ({total / took / count:.2f} per board; "
              f"no more than {most:.2f} times, by the longest family)")  # fmt: skip


def on_host_once(families: Mapping[str, Family], once: Mapping[str, float]) -> list[str]:
    """Returns the families that time the host."""
    return [name for name in once if families[name].limit == "pcie"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Simulates the measuring time on several boards.")
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT / "results" / "recorded" / "h200")
    parser.add_argument("--families", type=int, default=1, metavar="N")
    parser.add_argument("--split", action="store_true", help="suppose that families may be split")
    options = parser.parse_args()
    show(catalog.load([PROJECT / "kernels"]), options.root, options.families, options.split)
    sys.exit(0)
