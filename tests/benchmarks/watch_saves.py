"""How long from a save to the verdict of `warplog watch`? Saves a variant ten times, prints each line with its seconds.

    python tests/benchmarks/planted_history.py DIR --guilty 17
    python tests/benchmarks/watch_saves.py DIR --saves 10      on a machine with a GPU

Saves 3 and 7 are slower by about 1 %, save 5 does not compile, all others are as fast as the first one.
"""

import argparse
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from planted_history import SOURCE, source

WORKFLOW = Path(__file__).parents[2] / "workflow"
SLOWER, BROKEN = (3, 7), (5,)
CYCLES = 1900
QUIET_S = 3.0  # without a line, the output of a save has ended
LONGEST_S = 120.0


def lines_of(watch: subprocess.Popen[str]) -> "queue.Queue[str]":
    """Returns a queue that receives what the process prints."""
    lines: queue.Queue[str] = queue.Queue()

    def read() -> None:
        assert watch.stdout is not None
        for line in watch.stdout:
            lines.put(line.rstrip())

    threading.Thread(target=read, daemon=True).start()
    return lines


def printed(lines: "queue.Queue[str]", since: float) -> None:
    """Prints the lines that come until it is quiet, with their seconds since a save."""
    wait = LONGEST_S
    try:
        while True:
            line = lines.get(timeout=wait)
            print(f"{time.monotonic() - since:7.2f} s  {line}", flush=True)
            wait = QUIET_S
    except queue.Empty:
        pass


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
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = lines_of(watch)
    try:
        printed(lines, time.monotonic())
        for number in range(1, options.saves + 1):
            text = source(100 + number, CYCLES if number in SLOWER else 0, number in BROKEN)
            (options.folder / SOURCE).write_text(text)
            print(f"save {number}", flush=True)
            printed(lines, time.monotonic())
    finally:
        watch.send_signal(2)  # as Ctrl-C
        print(f"exit status {watch.wait(timeout=30)}")


if __name__ == "__main__":
    main()
