"""How small a change a duel finds, and how often it sees one where there is none: windows of turns, and their curve.

    python tests/benchmarks/power_curve.py collect DIR --seconds 600   on a machine with a GPU; adds to DIR/windows.csv
    python tests/benchmarks/power_curve.py curve DIR                   anywhere: tables and figures in DIR

`collect` lets the variants of tests/benchmarks/duels with a planted change take turns with the one without, and that
one with itself, in processes as `warplog ab` starts them, for one window each: later windows of a process show other
ratios. It goes round all cells, so that visits add up: a cell with fewer windows comes first.

`curve` reads all DIR/*windows.csv and *windows.csv.gz, and takes the first window of each process. For each GPU, it
writes what the processes of each cell show (power_processes.csv, same_code.png), and what duels of them say
(power_curve.csv and .png). These duels are made of processes of the same code, drawn at random, each once, to whose
ratios a change is added. Every other process is one that loads B first or, where none was measured, the inverse of one
that loads A first. Whether a planted change adds to each process what it adds to their mean is what power_processes.csv
says.
"""

import argparse
import csv
import math
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

import numpy as np
import pandas as pd
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
KEYS = ["gpu", "family", "case", "change", "first"]
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
            order = worker.in_order(1 + had[cell])
            window = window_of(tasks[cell], 1 if is_new else 2, order)
            writer.writerow({**about, **row_of(cell, window, visit), "first": NAMES[order[0]]})
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


def window_of(task: DuelTask, number: int, order: tuple[int, int]) -> Window:
    """Returns the window of a new process; the first process of a duel is the one that checks the check cases."""
    with worker.process(task, number, order) as both:
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
    with suppress(FileNotFoundError), table.open() as file:
        return list(csv.DictReader(file))
    return []


def curve(folder: Path) -> None:
    """Writes the tables and figures of all windows in `folder`, and prints the tables."""
    processes = processes_of(folder)
    write(spread(processes), folder / "power_processes.csv")
    same = processes[processes["change"] == "base"]
    draw_same(same, folder / "same_code.png")
    found = [
        point(own, effect, looks)
        for _, own in same.groupby(KEYS[:3], observed=True)
        for looks in range(1, 4)
        for effect in EFFECTS
        if len(own) > Rule(REST, MARGIN, looks).sizes[-1]
    ]
    if found:
        write(pd.DataFrame(found), folder / "power_curve.csv")
        draw(pd.DataFrame(found), folder / "power_curve.png")


def write(table: pd.DataFrame, file: Path) -> None:
    """Writes a table and prints it."""
    table.to_csv(file, index=False, lineterminator="\n")
    print(file.read_text())


def processes_of(folder: Path) -> pd.DataFrame:
    """Returns the first window of each process in `folder`."""
    tables = sorted((*folder.glob("*windows.csv"), *folder.glob("*windows.csv.gz")))
    windows = pd.concat([pd.read_csv(table) for table in tables])
    # Before every other process loaded B first, each loaded A first, and there was no such column.
    windows = windows.reindex(columns=COLUMNS).fillna({"first": NAMES[A]}).drop_duplicates("process")
    orders = {"family": FAMILIES, "case": CASES, "change": CHANGES}
    return windows.assign(**{name: pd.Categorical(windows[name], own) for name, own in orders.items()})


def spread(processes: pd.DataFrame) -> pd.DataFrame:
    """Returns what the processes of each cell show of B against A: those that load A or B first, and both alike.

    Errors are standard errors of means. `less_same_code` is the mean less that of the same code in the same order.
    """
    found = processes.groupby(KEYS, observed=True).agg(
        us=("a_us", "mean"),
        processes=("process", "size"),
        mean=("log_ratio", "mean"),
        between=("log_ratio", "std"),
        within=("error", "median"),
    )
    found["error"] = found["between"] / found["processes"] ** 0.5
    a, b = (found.xs(first, level="first") for first in NAMES)
    both = pd.DataFrame(
        {
            "us": (a["us"] + b["us"]) / 2,
            "processes": a["processes"] + b["processes"],
            "mean": (a["mean"] + b["mean"]) / 2,
            "error": np.hypot(a["error"], b["error"]) / 2,
        }
    ).dropna()
    found = pd.concat([found, both.assign(first="both").set_index("first", append=True)]).sort_index()
    same = found.xs("base", level="change")[["mean", "error"]].add_suffix("_same")
    found = found.join(same).reorder_levels(KEYS)
    is_planted = found.index.get_level_values("change") != "base"
    percent = {
        "mean": found["mean"],
        "error": found["error"],
        "less_same_code": (found["mean"] - found["mean_same"]).where(is_planted),
        "less_same_code_error": ((found["error"] ** 2 + found["error_same"] ** 2) ** 0.5).where(is_planted),
        "between_processes": found["between"],
        "within_a_window": found["within"],
    }
    about = {
        "us": found["us"],
        "processes": found["processes"].astype(int),
        "mean_ns": 1e3 * found["us"] * found["mean"],
        "error_ns": 1e3 * found["us"] * found["error"],
    }
    table = pd.DataFrame(about | {f"{name}_percent": 100 * value for name, value in percent.items()})
    return table.sort_index().round(4).reset_index()


def point(own: pd.DataFrame, effect: float, looks: int) -> dict[str, object]:
    """Returns what duels with at most `looks` looks say of a change: shares of words, and mean seconds of turns.

    Args:
        own: the processes of a cell of the same code.
        effect: the change, relative to the time.
        looks: how often a duel may judge.
    """
    about, rows = own.iloc[0], own.to_dict("records")
    cell = Cell(about["family"], about["case"], about["change"])
    rng = np.random.default_rng([CELLS.index(cell), looks])
    rule = Rule(REST, MARGIN, looks)
    words, seconds, processes = Counter[str](), 0.0, 0
    for _ in range(DUELS):
        left = [rows[number] for number in rng.permutation(len(rows))]
        taken: list[Window] = []
        while not rule.is_over(taken):
            number = len(taken) + 1
            first = NAMES[worker.in_order(number)[0]]
            at = next((at for at, row in enumerate(left) if row["first"] == first), 0)
            taken.append(as_window(left.pop(at), number, math.log1p(effect)))
        words[rule.judge(taken).word] += 1
        seconds += sum(window.seconds for window in taken) / DUELS
        processes += len(taken)
    return {
        "gpu": about["gpu"],
        "family": cell.family,
        "case": cell.case,
        "us": round(float(own["a_us"].mean()), 3),
        "processes": len(own),
        "looks": looks,
        "effect_percent": 100 * effect,
        **{word.lower(): round(words[word] / DUELS, 4) for word in ("FASTER", "SLOWER", "SAME", "AMBIGUOUS")},
        "seconds": round(seconds, 2),
        "processes_of_a_duel": round(processes / DUELS, 2),
    }


def as_window(row: dict[Any, Any], number: int, effect: float) -> Window:
    """Returns the window of a process of the same code as one of this number shows it, with a change added."""
    is_inverse = row["first"] != NAMES[worker.in_order(number)[0]]
    return Window(
        process=number,
        seed=0,
        addresses=(),
        seconds=row["seconds"],
        blocks=row["blocks"],
        time=Estimate(log_ratio=effect + (-1 if is_inverse else 1) * row["log_ratio"], error=row["error"]),
        cycles=None,
        a_us=row["a_us"],
        b_us=row["b_us"],
        a_mhz=None,
        b_mhz=None,
        step_us=row["step_us"],
    )


def draw(found: pd.DataFrame, file: Path) -> None:
    """Draws the share of duels that find a change over its size, with one line per time of the kernel."""
    figure, axes = panels(found[found["looks"] == found["looks"].max()], "change of the time, %")
    for axis, own in axes:
        for (_, kernel), marker in zip(own.groupby("us"), "os^D", strict=True):
            us = kernel["us"].iloc[0]
            label = f"{us:{'.0f' if us > 100 else '.2g'}} µs"
            axis.plot(
                kernel["effect_percent"],
                100 * (kernel["slower"] + kernel["faster"]),
                marker=marker,
                label=label,
            )
        axis.set_xticks([100 * effect for effect in EFFECTS], [f"{100 * effect:g}" for effect in EFFECTS])
        axis.legend(title="a launch takes", loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.supylabel("FASTER or SLOWER, % of duels", fontsize="medium")
    figure.savefig(file, dpi=150)


def draw_same(same: pd.DataFrame, file: Path) -> None:
    """Draws what each process shows of the same code over its mean time, side by side for the side loaded first."""
    figure, axes = panels(same, "time of a launch, µs")
    for axis, own in axes:
        for first, color, aside in zip(NAMES, ("#0072b2", "#d55e00"), (0.95, 1.05), strict=True):
            rows = own[own["first"] == first]
            us = rows.groupby("case", observed=True)["a_us"].transform("mean")
            style = {"color": color, "markersize": 4, "alpha": 0.4, "label": f"{first} is loaded first"}
            axis.plot(aside * us, 100 * rows["log_ratio"], "o", **style)
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set(xscale="log")
        axis.xaxis.set_major_formatter("{x:g}")
    axis.legend(loc="upper right")
    figure.supylabel("B against A, the same code, %", fontsize="medium")
    figure.savefig(file, dpi=150)


def panels(table: pd.DataFrame, x: str) -> tuple[Any, list[tuple[Any, pd.DataFrame]]]:
    """Returns a figure with a row of panels for each GPU, one for each family, and the rows of the table for each."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    gpus = table["gpu"].nunique()
    figure, axes = plt.subplots(
        gpus,
        len(FAMILIES),
        figsize=(8, 0.5 + 2.5 * gpus),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    pieces = table.groupby(["gpu", "family"], observed=True, sort=False)
    for axis, ((gpu, family), _) in zip(axes.flat, pieces, strict=True):
        axis.set_title(f"{family}, {gpu}", fontsize="medium")
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel(x)
    return figure, [(axis, own) for axis, (_, own) in zip(axes.flat, pieces, strict=True)]


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
