"""Captures the timeline of one launch of a marked build, and times that build beside the one without marks."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from warplog.core.errors import WarplogError, naming
from warplog.core.statistics import summarise
from warplog.measure.results import LaunchFailed, Marked
from warplog.measure.worker.backend import Backend, Launcher
from warplog.measure.worker.case_data import SEEDS
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.timer import Timer
from warplog.parsers.timeline_buffer import EVENT, HEAD, WARP
from warplog.records.config import TimelineSettings
from warplog.records.requested.timeline import Overhead
from warplog.records.verification.marked_launch import overhead

_SEED = SEEDS["timeline"]
_MOST_WARPS = 1 << 18
_LEAST_EVENTS = 16
_WARM_MS = 25.0  # as before timing, so that the clock has risen
BUILDS = ("plain", "marked", "again")  # the first and the last are the same library


class Buffer(ctypes.Structure):
    """timeline::Buffer of timeline.cuh."""

    _fields_ = [
        *((name, ctypes.c_uint64) for name in ("head", "warps", "events")),
        *((name, ctypes.c_uint32) for name in ("most_warps", "most_events")),
    ]


class Marks:
    """The buffer of a marked library on the device.

    Args:
        backend: the device.
        launcher: the launcher of the marked library, and `library`, its file.

    Raises:
        WarplogError: No kernel of the library is marked.
    """

    def __init__(self, backend: Backend, launcher: Launcher, library: Path) -> None:
        self._xp, self._launcher = backend.xp, launcher
        try:
            self._set = ctypes.CDLL(str(library.resolve())).warplog_timeline
        except AttributeError:
            raise WarplogError(
                f"{library}: no kernel is marked; include timeline.cuh in it, or remove the variant from `timeline`"
            ) from None
        self._head = self._zeros(HEAD.itemsize)
        self._warps = self._zeros(_MOST_WARPS * WARP.itemsize)
        self._events = self._zeros(EVENT.itemsize)
        self._hold(_MOST_WARPS, 0)

    def resize(self, most_bytes: int) -> None:
        """Makes room for twice the events per warp of the last launch, within `most_bytes` in total."""
        warps = self._read(self._warps, WARP)
        used = max(int(np.flatnonzero(warps["begin_clock"]).max(initial=0)) + 1, 1)
        wanted = max(2 * int(warps["events"].max()), _LEAST_EVENTS)
        per_warp = max(min(wanted, most_bytes // (used * EVENT.itemsize)), 1)
        self._warps = self._zeros(used * WARP.itemsize)
        self._events = self._zeros(used * per_warp * EVENT.itemsize)
        self._hold(used, per_warp)

    def clear(self) -> None:
        """Forgets the launches so far; each launch writes the records of all warps anew."""
        self._head.fill(0)

    def save(self, path: Path) -> None:
        """Writes the buffer to a file for `warplog.parsers.timeline_buffer`."""
        head, warps = self._read(self._head, HEAD), self._read(self._warps, WARP)
        with naming(path):
            np.savez(path, head=head, warps=warps, events=self._read(self._events, EVENT))

    def _hold(self, warps: int, events: int) -> None:
        parts = (_address(part) for part in (self._head, self._warps, self._events))
        self._launcher.check(self._set(ctypes.byref(Buffer(*parts, warps, events))))

    def _zeros(self, size: int) -> Any:
        return self._xp.zeros(size, self._xp.uint8)

    def _read(self, part: Any, kind: np.dtype[Any]) -> Any:
        return (part.get() if hasattr(part, "get") else part).view(kind)


def _address(part: Any) -> int:
    return int(part.data.ptr) if hasattr(part.data, "ptr") else int(part.ctypes.data)


def timeline_case(
    backend: Backend,
    plain: Launcher,
    library: Path,
    timer: Timer,
    problem: Problem,
    settings: TimelineSettings,
    path: Path,
) -> Marked:
    """Captures one warm launch to `path` and returns its error and the times of both builds.

    Args:
        backend: the device.
        plain: the launcher of the build without marks.
        library: the build with marks.
        timer: the timing core.
        problem: the case.
        settings: the section `timeline` of the configuration.
        path: the file for the buffer.

    Raises:
        LaunchFailed: The launcher or the device reports an error, no kernel is marked, or the results of the captured
            launch itself are wrong.
    """
    marked, arguments = Launcher(library, backend), problem.arguments
    try:
        marks = Marks(backend, marked, library)
    except WarplogError as error:
        raise LaunchFailed("error", str(error)) from None
    problem.fill(_SEED)
    marked(arguments)
    marks.resize(settings.most_mib << 20)
    times = _overhead(plain, marked, timer, problem, settings)
    problem.restore()
    timer.recover()
    timer.warm_up(marked, arguments, 2, _WARM_MS)
    problem.restore()
    backend.synchronise()
    marks.clear()
    marked(arguments)
    verdict = problem.verdict()
    if verdict.reason:
        raise LaunchFailed("wrong", f"with marks: {verdict.reason}")
    marks.save(path)
    return Marked(max_error_over_tolerance=verdict.max_error_over_tolerance or 0.0, overhead=times)


def _overhead(
    plain: Launcher, marked: Launcher, timer: Timer, problem: Problem, settings: TimelineSettings
) -> Overhead:
    """Returns times at rest of both builds, interleaved; the build without marks runs twice, for the noise."""
    launchers = dict(zip(BUILDS, (plain, marked, plain), strict=True))
    for launcher in (plain, marked):
        timer.warm_up(launcher, problem.arguments, 2, _WARM_MS)
    samples: dict[str, list[float]] = {name: [] for name in BUILDS}
    for round_ in range(settings.rounds):
        first = round_ % len(BUILDS)
        for name in (*BUILDS[first:], *BUILDS[:first]):
            timer.recover()
            found = timer.cold(launchers[name], problem.arguments, settings.samples, settings.pause_us)
            samples[name] += [sample.event_us - timer.empty_us for sample in found]
    plain_us, marked_us, again_us = medians = [summarise(own).median_us for own in samples.values()]
    if min(medians) <= 0:
        raise LaunchFailed("error", "the launch is too short to be timed; capture a larger case")
    return Overhead(
        plain_us=plain_us,
        marked_us=marked_us,
        again_us=again_us,
        plain_samples_us=tuple(samples["plain"]),
        marked_samples_us=tuple(samples["marked"]),
        again_samples_us=tuple(samples["again"]),
        **overhead(plain_us, marked_us, again_us),
    )
