"""How small a change a duel finds, and how often it sees one where there is none: windows of turns, and their curve.

    python tests/benchmarks/power_curve.py collect DIR --seconds 600   on a machine with a GPU; adds to DIR/windows.csv
    python tests/benchmarks/power_curve.py curve DIR                   anywhere: tables and figures in DIR

`collect` lets the variants of tests/benchmarks/duels with a planted change take turns with the one without, and that
one with itself, in processes as `warplog ab` starts them, for one window each: later windows of a process show other
ratios. It goes round all cells, so that visits add up: a cell with fewer windows comes first.

`curve` reads all DIR/*windows.csv and *windows.csv.gz, and takes the first window of each process. It writes what the
processes of each cell show (power_processes.csv, same_code.png), and what duels of them say (power_curve.csv and .png).
These duels are made of processes of the same code, drawn at random, each once, to whose ratios a change is added. Every
other process loads B first: of the same code, it shows the inverse of the ratio that one shows which loads A first.
Whether a planted change adds to each process what it adds to their mean is what power_processes.csv says.
"""

import argparse
import csv
import gzip
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

import numpy as np
from msgspec.structs import replace

from warplog.core.errors import WarplogError, say
from warplog.core.files import temporary_folder
from warplog.core.locks import hold
from warplog.duel import making, match, sides, worker
from warplog.duel.evidence import REST, Rule
from warplog.duel.task import DuelTask
from warplog.duel.timer import NAMES, A
from warplog.machine import device
from warplog.measure import provenance
from warplog.measure.worker.backend import import_arrays
from warplog.records.campaign import Gpu
from warplog.records.requested.duel import Estimate, Window

HERE = Path(__file__).parent
DUELS_FOLDER = HERE / "duels"
FAMILIES = ("planted_copy", "planted_chain")
CASES = ("3us", "10us", "100us", "1ms")
CHANGES = ("base", "plus_0_1", "plus_0_25", "plus_0_5", "plus_1")
WINDOW_S = 0.75
MARGIN = 0.005
DUELS = 2000
EFFECTS = (0.0, 0.001, 0.0025, 0.005, 0.01)
_PLANTED_SHARE = 1 / 3
COLUMNS = ("gpu", "commit", "visit", "family", "case", "change", "process", "first", "seconds", "blocks")
COLUMNS += ("step_us", "a_us", "b_us", "log_ratio", "error", "log_cycles", "cycles_error", "discarded")


@dataclass(frozen=True, order=True)
class Cell:
    """A kernel, its time, and what is planted: `base` for nothing."""

    family: str
    case: str
    change: str


CELLS = [Cell(*names) for names in ((f, c, p) for p in CHANGES for f in FAMILIES for c in CASES)]


def collect(folder: Path, seconds: float, commit: str) -> None:
    """Adds windows to `folder`/windows.csv for `seconds`, which includes the start of processes."""
    end = time.monotonic() + seconds
    gpu, project = device.boards()[0], HERE.parents[1]
    table = folder / "windows.csv"
    had = Counter(Cell(row["family"], row["case"], row["change"]) for row in rows_of(table))
    visit = provenance.now()
    about = {"gpu": gpu.name, "commit": commit or provenance.commit_of(project), "visit": visit}
    timer = making.make_timer(gpu, project)
    with temporary_folder() as work, hold(gpu.uuid), table.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not table.stat().st_size:
            writer.writeheader()
        os.environ.update({**gpu.environment, "CUPY_ACCELERATORS": ""})
        import_arrays(match.BACKEND)
        tasks = dict[Cell, DuelTask]()
        while time.monotonic() < end:
            cell, is_new = next_cell(had), False
            if cell not in tasks:
                tasks[cell], is_new = task_of(cell, gpu, timer, work / f"cell-{len(tasks)}"), True
            tasks[cell] = replace(tasks[cell], seed=(tasks[cell].seed + 1) % 2**32)
            window = window_of(tasks[cell], 1 if is_new else 2 + had[cell] % 2)
            writer.writerow({**about, **row_of(cell, window, visit)})
            file.flush()
            had[cell] += 1
            say(f"  {cell.family} {cell.case} {cell.change}: {had[cell]} windows")


def next_cell(had: Counter[Cell]) -> Cell:
    """Returns the cell with the fewest windows of those that are behind: same code, or planted changes."""
    planted = sum(count for cell, count in had.items() if cell.change != "base")
    behind = planted <= _PLANTED_SHARE * had.total()
    return min((cell for cell in CELLS if (cell.change != "base") == behind), key=lambda cell: had[cell])


def task_of(cell: Cell, gpu: Gpu, timer: Path, folder: Path) -> DuelTask:
    """Returns the duel of a cell."""
    folder.mkdir()
    project = HERE.parents[1]
    names = f"{cell.family}/base", f"{cell.family}/{cell.change}"
    made = [making.make(corner, gpu, project) for corner in sides.resolve(*names, project, [DUELS_FOLDER])]
    if failed := [one.build.reason for one in made if one.build and one.build.status != "ok"]:
        raise WarplogError(failed[0])
    options = match.Options(cell.case, WINDOW_S, MARGIN, sustained=False, counters=False)
    return match.Match(project, options, gpu, made).task(timer, folder)


def window_of(task: DuelTask, number: int) -> Window:
    """Returns the window of a new process; the first process of a duel is the one that checks the check cases."""
    with worker.process(task, number, worker.in_order(number)) as both:
        both.meet(task)
        window = both.ask("rest").window
    assert window is not None
    return window


def row_of(cell: Cell, window: Window, visit: str) -> dict[str, object]:
    return {
        "family": cell.family,
        "case": cell.case,
        "change": cell.change,
        "process": f"{visit}/{window.seed}",
        "first": NAMES[worker.in_order(window.process)[0]],
        "seconds": round(window.seconds, 4),
        "blocks": window.blocks,
        "step_us": window.step_us,
        "a_us": window.a_us,
        "b_us": window.b_us,
        "log_ratio": window.time.log_ratio,
        "error": window.time.error,
        "log_cycles": window.cycles.log_ratio if window.cycles else "",
        "cycles_error": window.cycles.error if window.cycles else "",
        "discarded": window.discarded,
    }


def rows_of(table: Path) -> list[dict[str, str]]:
    with suppress(FileNotFoundError), (gzip.open if table.suffix == ".gz" else open)(table, "rt") as file:
        return list(csv.DictReader(file))
    return []


def curve(folder: Path) -> None:
    """Writes the tables and figures of all windows in `folder`, and prints the tables."""
    firsts: dict[str, dict[str, str]] = {}
    for table in sorted((*folder.glob("*windows.csv"), *folder.glob("*windows.csv.gz"))):
        for row in rows_of(table):
            firsts.setdefault(row["process"], row)  # the first of its windows
    by_cell: dict[Cell, dict[str, list[dict[str, str]]]] = {}
    for row in firsts.values():
        cell = Cell(row["family"], row["case"], row["change"])
        # Before every other process loaded B first, each loaded A first.
        by_cell.setdefault(cell, {}).setdefault(row.get("first") or NAMES[A], []).append(row)
    cells = [cell for cell in CELLS if cell in by_cell]
    spread = [spread_of(cell, first, own) for cell in cells for first, own in sorted(by_cell[cell].items())]
    write(spread, folder / "power_processes.csv")
    draw_same(by_cell, folder / "same_code.png")
    same = [(cell, [row for own in by_cell[cell].values() for row in own]) for cell in cells]
    found = [
        point(cell, own, effect, looks)
        for cell, own in same
        for looks in range(1, 4)
        for effect in EFFECTS
        if cell.change == "base" and len(own) > Rule(REST, MARGIN, looks).sizes[-1]
    ]
    if found:
        write(found, folder / "power_curve.csv")
        draw(found, folder / "power_curve.png")


def write(rows: Sequence[dict[str, object]], file: Path) -> None:
    """Writes a table and prints it."""
    with file.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(file.read_text())


def spread_of(cell: Cell, first: str, own: Sequence[dict[str, str]]) -> dict[str, object]:
    """Returns what the processes of a cell that load the same side first show of B against A."""
    logs, us = [float(row["log_ratio"]) for row in own], float(np.mean([float(row["a_us"]) for row in own]))
    mean, between = float(np.mean(logs)), float(np.std(logs, ddof=1)) if len(logs) > 1 else math.nan
    return {
        "family": cell.family,
        "case": cell.case,
        "change": cell.change,
        "first": first,
        "us": round(us, 3),
        "processes": len(own),
        "mean_percent": round(100 * mean, 4),
        "error_percent": round(100 * between / math.sqrt(len(own)), 4),
        "mean_ns": round(1e3 * us * mean, 2),
        "between_processes_percent": round(100 * between, 4),
        "within_a_window_percent": round(100 * float(np.median([float(row["error"]) for row in own])), 4),
    }


def point(cell: Cell, own: Sequence[dict[str, str]], effect: float, looks: int) -> dict[str, object]:
    """Returns what duels with at most `looks` looks say of a change: shares of words, and mean seconds of turns."""
    rng = np.random.default_rng([CELLS.index(cell), looks])
    rule = Rule(REST, MARGIN, looks)
    words, seconds, processes = Counter[str](), 0.0, 0
    for _ in range(DUELS):
        order = rng.permutation(len(own))
        taken: list[Window] = []
        while not rule.is_over(taken):
            taken.append(as_window(own[order[len(taken)]], len(taken) + 1, math.log1p(effect)))
        words[rule.judge(taken).word] += 1
        seconds += sum(window.seconds for window in taken) / DUELS
        processes += len(taken)
    return {
        "family": cell.family,
        "case": cell.case,
        "us": round(float(np.mean([float(row["a_us"]) for row in own])), 3),
        "processes": len(own),
        "looks": looks,
        "effect_percent": 100 * effect,
        **{word.lower(): round(words[word] / DUELS, 4) for word in ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")},
        "seconds": round(seconds, 2),
        "processes_of_a_duel": round(processes / DUELS, 2),
    }


def as_window(row: dict[str, str], number: int, effect: float) -> Window:
    """Returns the window of a process of the same code as one of this number shows it, with a change added."""
    is_inverse = (row.get("first") or NAMES[A]) != NAMES[worker.in_order(number)[0]]
    log_ratio = effect + (-1 if is_inverse else 1) * float(row["log_ratio"])
    return Window(
        process=number,
        seed=0,
        addresses=(),
        seconds=float(row["seconds"]),
        blocks=int(row["blocks"]),
        time=Estimate(log_ratio=log_ratio, error=float(row["error"])),
        cycles=None,
        a_us=float(row["a_us"]),
        b_us=float(row["b_us"]),
        a_mhz=None,
        b_mhz=None,
        step_us=float(row["step_us"]),
    )


def draw(found: Sequence[dict[str, Any]], file: Path) -> None:
    """Draws the share of duels that find a change over its size, with one line per time of the kernel."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(FAMILIES), figsize=(8, 3.2), sharey=True, layout="constrained")
    for axis, family in zip(axes, FAMILIES, strict=True):
        for case, marker in zip(CASES, "os^D", strict=True):
            cell = [row for row in found if (row["family"], row["case"]) == (family, case)]
            own = [row for row in cell if row["looks"] == cell[-1]["looks"]]
            if not own:
                continue
            y = [100 * (row["slower"] + row["faster"]) for row in own]
            x = [row["effect_percent"] for row in own]
            axis.plot(
                x, y, marker=marker, label=f"{own[0]['us']:{'.0f' if own[0]['us'] > 100 else '.2g'}} µs"
            )
        axis.set(title=family, xlabel="change of the time, %")
        axis.set_xticks([100 * effect for effect in EFFECTS], [f"{100 * effect:g}" for effect in EFFECTS])
        axis.grid(alpha=0.3)
        axis.legend(title="time of a launch", loc="lower right")
    axes[0].set_ylabel("FASTER or SLOWER, % of duels")
    figure.savefig(file, dpi=200)


def draw_same(by_cell: Mapping[Cell, Mapping[str, Sequence[dict[str, str]]]], file: Path) -> None:
    """Draws what each process shows of the same code over the time of a launch, by the side that it loads first."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(FAMILIES), figsize=(8, 3.2), sharey=True, layout="constrained")
    for axis, family in zip(axes, FAMILIES, strict=True):
        for first, color in zip(NAMES, ("#0072b2", "#d55e00"), strict=True):
            same = [by_cell.get(Cell(family, case, "base"), {}).get(first, ()) for case in CASES]
            rows = [row for own in same for row in own]
            x = [float(row["a_us"]) for row in rows]
            y = [100 * float(row["log_ratio"]) for row in rows]
            if rows:
                axis.plot(x, y, "o", color=color, markersize=4, alpha=0.5, label=f"{first} is loaded first")
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set(title=family, xlabel="time of a launch, µs", xscale="log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("B against A, the same code, %")
    axes[-1].legend()
    figure.savefig(file, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("collect", "curve"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0, help="of collecting, at most (default: 600)")
    parser.add_argument(
        "--commit", default="", help="of this code, if the machine does not have the repository"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.verb == "collect":
        collect(options.folder, options.seconds, options.commit)
    else:
        curve(options.folder)


if __name__ == "__main__":
    main()
