"""Launches one case for a profiler; only the launches to be profiled lie inside the captured range."""

import time

from warplog.machine.clocks import clock_state
from warplog.measure.results import Captured
from warplog.measure.task import CaptureWork
from warplog.measure.worker.backend import CupyBackend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import Problem

_SEED = SEEDS["capture"]
_MOST_SECONDS = 1.0
_WARM_SECONDS = 0.025  # as before timing, so that the clock has risen
_MOST_WARM = 200
_RECOVERY_S, _POLL_S = 1.0, 0.01


def capture_case(
    backend: CupyBackend, launcher: Launcher, problem: Problem, work: CaptureWork, name: str
) -> Captured:
    """Warms up, then launches inside cudaProfilerStart/Stop and the NVTX range `case:<name>`.

    For ncu there is one launch; for nsys, `work.launches` back-to-back ones, or fewer if they would last longer than
    about a second. Each is in a range `launch:<i>`.

    Raises:
        LaunchFailed: The launcher or the device reports an error.
    """
    cuda = backend.xp.cuda
    problem.fill(_SEED)
    begin, end = cuda.Event(), cuda.Event()
    launcher(problem.arguments)
    begin.record()
    launcher(problem.arguments)
    end.record()
    end.synchronize()
    seconds = cuda.get_elapsed_time(begin, end) / 1e3
    count = 1
    if work.tool == "nsys":  # back-to-back launches, compared with the hot time
        count = max(1, min(work.launches, int(_MOST_SECONDS / max(seconds, 1e-6))))
        for _ in range(min(_MOST_WARM, int(_WARM_SECONDS / max(seconds, 1e-6)))):
            launcher.enqueue(problem.arguments)
        backend.synchronise()
    _recover()
    cuda.profiler.start()
    cuda.nvtx.RangePush(f"case:{name}")
    begin.record()
    for i in range(count):
        cuda.nvtx.RangePush(f"launch:{i}")
        launcher.enqueue(problem.arguments)
        cuda.nvtx.RangePop()
    end.record()
    backend.synchronise()
    cuda.nvtx.RangePop()
    cuda.profiler.stop()
    traced_us = cuda.get_elapsed_time(begin, end) * 1e3 / count if work.tool == "nsys" else None
    return Captured(launches=count, traced_us=traced_us)


def _recover() -> None:
    """Idles until no limit holds the clock down, as before a time at rest; at most a second."""
    deadline = time.monotonic() + _RECOVERY_S
    while (state := clock_state()) is not None and state.limits and time.monotonic() < deadline:
        time.sleep(_POLL_S)
