"""How long from a save to the verdict of `warplog watch`? Saves a variant ten times, prints each line with its seconds.

    python tests/benchmarks/planted_history.py DIR --guilty 17
    python tests/benchmarks/watch_saves.py DIR --saves 10      on a machine with a GPU

Saves 3 and 7 are slower by about 1 %, save 5 does not compile, all others are as fast as the first one. A save follows
the line on the one before it: `watch` prints one on stdout for each version that it tried, and all else on stderr. The
exit status is 1 if a line does not come.
"""

import argparse
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from planted_history import SOURCE, source

WORKFLOW = Path(__file__).parents[2] / "workflow"
SLOWER, BROKEN = (3, 7), (5,)
CYCLES = 1900
LONGEST_S = 120.0  # from a save to its line, in which nvcc, checks and two duels take place


def lines_of(watch: subprocess.Popen[str]) -> "queue.Queue[str]":
    """Returns a queue that receives what the process prints, and "" at its end."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert watch.stdout is not None
        for line in watch.stdout:
            lines.put(line.rstrip())
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


def verdict(lines: "queue.Queue[str]", since: float) -> str:
    """Returns the next line with its seconds since a save; "" if the program ended or none comes in LONGEST_S."""
    with suppress(queue.Empty):
        if line := lines.get(timeout=LONGEST_S):
            return f"{time.monotonic() - since:7.2f} s  {line}"
    return ""


def saves(folder: Path, count: int, lines: "queue.Queue[str]") -> bool:
    """Saves so many versions, each after the line on the one before it; returns whether there is one for each."""
    for number in range(count + 1):
        since = time.monotonic()
        if number:
            text = source(100 + number, CYCLES if number in SLOWER else 0, number in BROKEN)
            (folder / SOURCE).write_text(text)
        line = verdict(lines, since)
        print(f"{f'save {number}' if number else 'start':7}  {line or 'no line'}", flush=True)
        if not line:
            return False
    return True


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--saves", type=int, default=10)
    options = parser.parse_args()
    paths = [str(WORKFLOW), os.environ.get("PYTHONPATH", "")]
    watch = subprocess.Popen(
        [sys.executable, "-m", "warplog", "watch", "reduction/two_stage"],
        cwd=options.folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        done = saves(options.folder, options.saves, lines_of(watch))
    finally:
        watch.send_signal(signal.SIGINT)  # as Ctrl-C
        print(f"exit status {watch.wait(timeout=30)}")
    sys.exit(not done)


if __name__ == "__main__":
    main()
