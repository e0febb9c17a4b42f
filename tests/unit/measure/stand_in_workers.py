"""Stand-ins for worker processes, which answer at once: to test what is run, and what is made of the answers."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from made_up_launch import pipelined, times
from warplog.core.statistics import summarise
from warplog.measure.results import AtRest, Captured, Checked, Found, Marked, Result
from warplog.measure.task import CaseRun, Task
from warplog.records.fields import Status
from warplog.records.measured import Session
from warplog.records.time import Board, Cold, Hot


class Workers:
    """Replaces run_cases: notes the tasks and leaves the files that a worker or its tool would leave.

    Attributes:
        tasks: what was to be run.
        statuses: of the cases of variants that are not ok.
        silent: numbers of tasks whose profiler writes no report.
        interrupted: whether Ctrl-C ends the next task.
    """

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.statuses: dict[str, Status] = {}
        self.silent: set[int] = set()
        self.interrupted = False

    def __call__(
        self,
        task: Task,
        timeout_s: float,
        show: Callable[[Result], None],
        stop_at: Sequence[Status] = (),
        stop_all: bool = False,
    ) -> tuple[list[Result], Session]:
        if self.interrupted:
            raise KeyboardInterrupt
        self.tasks.append(task)
        results: list[Result] = []
        stopped = False
        for run in task.runs:
            status = "skipped" if stopped else self.statuses.get(run.variant, "ok")
            stopped = stopped or (stop_all and status in stop_at)
            answer = {"found": _found(task, run)} if status == "ok" else {"status": status, "reason": status}
            results.append(Result(run=run, **answer))
        if len(self.tasks) - 1 not in self.silent:
            _leave_files(task)
        return results, Session(cupy="14")

    def variants(self) -> list[list[str]]:
        """Returns the variants of each task, in the order of their runs."""
        return [list(dict.fromkeys(run.variant for run in task.runs)) for task in self.tasks]


def _found(task: Task, run: CaseRun) -> Found | None:
    match task.work.mode:
        case "check":
            return Checked(rounds=1, max_abs_error=0.0, max_error_over_tolerance=0.5)
        case "time":
            return at_rest(100.0)
        case "capture":
            return Captured(launches=1)
        case "timeline":
            return Marked(max_error_over_tolerance=0.5, overhead=times())
    return None


def _leave_files(task: Task) -> None:
    folder = Path(task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    if task.work.mode == "capture":
        output = Path(task.wrapper[task.wrapper.index("-o") + 1]).with_suffix(f".{task.work.tool}-rep")
        output.write_text(" ".join(map(str, task.runs)))
    if task.work.mode == "sanitize":
        (folder / "worker.log").write_text("========= ERROR SUMMARY: 0 errors\n")
    if task.work.mode == "timeline":
        for run in task.runs:
            np.savez(folder / f"{run.variant}.npz", **pipelined().parts())


def at_rest(median_us: float, limited: bool = False) -> AtRest:
    """Returns what a process finds that measures the same time in each of ten launches."""
    samples = (median_us,) * 10
    summary = {**vars(summarise(samples)), "samples_us": samples}
    readings = ("sm_mhz", "sm_mhz_min", "sm_mhz_max", "power_w", "power_w_max", "temperature_c")
    return AtRest(
        warmup_launches=3,
        first_launch_us=1.0,
        launch_host_us=1.0,
        cold=Cold(
            **summary,
            **dict.fromkeys(("empty_us", "discarded", "not_blocked"), 0),
            sm_mhz_samples=(),
            sm_mhz=None,
            set_mhz=None,
        ),
        pause_us=0.0,
        held=False,
        full_mhz=None,
        hot=Hot(**summary, launches=10),
        no_hot="",
        limited=limited,
        board=Board(**dict.fromkeys(readings), power_kind="", throttle_reasons=(), state_samples=0),
    )
