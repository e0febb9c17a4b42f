"""How often a duel sees a difference between a variant and itself: every variant of every family, at its headline case.

    python tests/benchmarks/aa_duels.py DIR --seconds 600     on a machine with a GPU; adds to DIR/aa_duels.csv

A later visit goes on with the variants that are not in the file yet. Prints the words so far, and each FASTER or
SLOWER.
"""

import argparse
import csv
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

import numpy as np

from warplog.core.errors import say
from warplog.duel import making, match, words
from warplog.duel.sides import Corner, families_of
from warplog.machine import device
from warplog.records.requested.duel import Duel

PROJECT = Path(__file__).parents[2]
COLUMNS = (
    "gpu",
    "commit",
    "family",
    "variant",
    "case",
    "status",
    "word",
    "ratio",
    "low",
    "high",
    "floor",
    "us",
)
COLUMNS += ("step_us", "between_processes", "within_a_window", "processes", "blocks", "turns_s", "seconds")


def row_of(found: Duel, commit: str) -> dict[str, object]:
    about = {
        "gpu": found.provenance.gpu_name,
        "commit": commit or found.provenance.commit,
        "family": found.a.family,
        "variant": found.a.variant,
        "case": found.case,
        "status": found.status,
        "seconds": round(found.seconds, 2),
    }
    if not found.judged:
        return about
    judged = found.judged[0]
    logs = [window.time.log_ratio for window in judged.windows]
    return {
        **about,
        "word": judged.time.word,
        **{name: getattr(judged.time, name) for name in ("ratio", "low", "high", "floor")},
        "us": judged.a_us,
        "step_us": max(window.step_us for window in judged.windows),
        "between_processes": float(np.std(logs, ddof=1)),
        "within_a_window": float(np.median([window.time.error for window in judged.windows])),
        "processes": len(logs),
        "blocks": sum(window.blocks for window in judged.windows),
        "turns_s": round(sum(window.seconds for window in judged.windows), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0, help="start no duel after (default: 600)")
    parser.add_argument("--workers", type=int, default=8, help="compilers at the same time (default: 8)")
    parser.add_argument(
        "--commit", default="", help="of this code, if the machine does not have the repository"
    )
    options = parser.parse_args()
    begin, table = time.monotonic(), options.folder / "aa_duels.csv"
    options.folder.mkdir(parents=True, exist_ok=True)
    had = list(csv.DictReader(table.open(newline=""))) if table.is_file() else []
    done = {(row["family"], row["variant"]) for row in had}
    corners = [
        Corner(f"{family.name}/{variant.name}", family, variant)
        for family in families_of(PROJECT).values()
        for variant in family.variants
        if not variant.draft and (family.name, variant.name) not in done
    ]
    with ProcessPoolExecutor(options.workers) as pool:  # so that the GPU does not wait for compilers
        list(pool.map(partial(making.make, gpu=device.boards()[0], project=PROJECT), corners))
    with table.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not had:
            writer.writeheader()
        for corner in corners:
            if time.monotonic() - begin > options.seconds:
                break
            case = corner.family.headline_case
            if corner.variant.requires.why_not_case(corner.family.case(case)):
                continue
            how = match.Options(case, 9.0, 0.005, sustained=False, counters=False)
            found = match.duel((corner, corner), how, PROJECT)
            had.append({name: str(value) for name, value in row_of(found, options.commit).items()})
            writer.writerow(row_of(found, options.commit))
            file.flush()
            say(words.lines(found)[0])
    counts = Counter(row.get("word") or row["status"] for row in had)
    print(", ".join(f"{count} {word}" for word, count in counts.most_common()))
    for row in had:
        if row.get("word") in ("FASTER", "SLOWER"):
            print(f"{row['family']}/{row['variant']} {row['case']}: {row['word']} {row['ratio']}")


if __name__ == "__main__":
    main()
