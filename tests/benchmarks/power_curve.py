"""How small a change a duel finds, and how often it sees one where there is none: windows of turns, and their curve.

    python tests/benchmarks/power_curve.py collect DIR --seconds 600   on a machine with a GPU; adds to DIR/windows.csv
    python tests/benchmarks/power_curve.py curve DIR                   anywhere: DIR/power_curve.csv and its figure

`collect` lets the variants of tests/benchmarks/duels with a planted change take turns with the one without, and that
one with itself, in processes as `warplog ab` starts them, each of which gives WINDOWS windows. It goes round all cells,
so that visits add up: a cell with fewer windows comes first. A third of the time goes to planted changes.

`curve` makes duels of windows: of different processes, drawn at random. What is planted is what the mean of all windows
of a cell says, not what the number of steps says. A cell needs three processes for each look.
"""

import argparse
import csv
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

import numpy as np
from msgspec.structs import replace

from warplog.core.errors import WarplogError, say
from warplog.core.files import temporary_folder
from warplog.core.locks import hold
from warplog.duel import making, match, sides, worker
from warplog.duel.evidence import REST, Rule
from warplog.duel.task import DuelTask
from warplog.duel.timer import A, B
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
WINDOWS = 8  # of a process
WINDOW_S = 0.75
MARGIN = 0.005
DUELS = 2000
_PLANTED_SHARE = 1 / 3
COLUMNS = ("gpu", "commit", "visit", "family", "case", "change", "process", "seconds", "blocks")
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
            for window in windows(tasks[cell], is_new, end):
                writer.writerow({**about, **row_of(cell, window, visit)})
                had[cell] += 1
            file.flush()
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


def windows(task: DuelTask, checks: bool, end: float) -> Iterator[Window]:
    """Yields windows of a new process; the first process of a duel is the one that checks the check cases."""
    with worker.process(task, 1 if checks else 2, (A, B)) as both:
        both.meet(task)
        for _ in range(WINDOWS):
            if time.monotonic() > end:
                break
            window = both.ask("rest").window
            assert window is not None
            yield window


def row_of(cell: Cell, window: Window, visit: str) -> dict[str, object]:
    return {
        "family": cell.family,
        "case": cell.case,
        "change": cell.change,
        "process": f"{visit}/{window.seed}",
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
    with suppress(FileNotFoundError), table.open(newline="") as file:
        return list(csv.DictReader(file))
    return []


def curve(folder: Path) -> None:
    """Writes `folder`/power_curve.csv and power_curve.png, and prints the table."""
    found = []
    for cell in CELLS:
        own = [
            row
            for row in rows_of(folder / "windows.csv")
            if Cell(row["family"], row["case"], row["change"]) == cell
        ]
        by_process: dict[str, list[dict[str, str]]] = {}
        for row in own:
            by_process.setdefault(row["process"], []).append(row)
        for looks in range(1, 4):
            if len(by_process) >= Rule(REST, MARGIN, looks).sizes[-1] + 1:
                found.append(point(cell, list(by_process.values()), looks))
    if not found:
        raise SystemExit(f"{folder}/windows.csv: no cell has windows of four processes")
    with (folder / "power_curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]))
        writer.writeheader()
        writer.writerows(found)
    for row in found:
        print("  ".join(str(value) for value in row.values()))
    draw(found, folder / "power_curve.png")


def point(cell: Cell, processes: Sequence[Sequence[dict[str, str]]], looks: int) -> dict[str, object]:
    """Returns what duels with at most `looks` looks say of a cell: shares of words, and mean seconds of turns."""
    rng = np.random.default_rng([CELLS.index(cell), looks])
    rule = Rule(REST, MARGIN, looks)
    words, seconds = Counter[str](), 0.0
    for _ in range(DUELS):
        order = rng.permutation(len(processes))
        taken: list[Window] = []
        while not rule.is_over(taken):
            of_process = processes[order[len(taken)]]
            taken.append(as_window(of_process[rng.integers(len(of_process))], len(taken) + 1))
        words[rule.judge(taken).word] += 1
        seconds += sum(window.seconds for window in taken) / DUELS
    logs = [float(np.mean([float(row["log_ratio"]) for row in own])) for own in processes]
    first = processes[0][0]
    return {
        "family": cell.family,
        "case": cell.case,
        "change": cell.change,
        "us": round(float(first["a_us"]), 3),
        "effect_percent": round(100 * float(np.mean(logs)), 4),
        "between_processes_percent": round(100 * float(np.std(logs, ddof=1)), 4),
        "within_a_window_percent": round(
            100 * float(np.median([float(row["error"]) for own in processes for row in own])), 4
        ),
        "processes": len(processes),
        "windows": sum(map(len, processes)),
        "looks": looks,
        "seconds": round(seconds, 2),
        **{word.lower(): round(words[word] / DUELS, 4) for word in ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")},
    }


def as_window(row: dict[str, str], number: int) -> Window:
    return Window(
        process=number,
        seed=0,
        addresses=(),
        seconds=float(row["seconds"]),
        blocks=int(row["blocks"]),
        time=Estimate(log_ratio=float(row["log_ratio"]), error=float(row["error"])),
        cycles=None,
        a_us=float(row["a_us"]),
        b_us=float(row["b_us"]),
        a_mhz=None,
        b_mhz=None,
        step_us=float(row["step_us"]),
    )


def draw(found: Sequence[dict[str, object]], file: Path) -> None:
    """Draws the share of duels that find a change over its size, with one line per time of the kernel."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(FAMILIES), figsize=(8, 3.2), sharey=True, layout="constrained")
    for axis, family in zip(axes, FAMILIES, strict=True):
        for case in CASES:
            own = [row for row in found if (row["family"], row["case"], row["looks"]) == (family, case, 1)]
            own.sort(key=lambda row: float(str(row["effect_percent"])))
            x = [float(str(row["effect_percent"])) for row in own]
            y = [100 * (float(str(row["slower"])) + float(str(row["faster"]))) for row in own]
            axis.plot(x, y, marker="o", label=case)
        axis.set(title=family, xlabel="change of the time, %")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("FASTER or SLOWER, % of duels")
    axes[-1].legend(title="time of a launch")
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
