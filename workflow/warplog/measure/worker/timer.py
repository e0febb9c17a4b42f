"""Python interface of the timing core (timer.cu)."""

import ctypes
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.statistics import summarise
from warplog.measure.results import LaunchFailed
from warplog.measure.worker.backend import Launcher

EMPTY_SAMPLES = 31
# Of the highest SM clock: below it, a limit holds the clock down. One step of the clock is 0.8 %.
FULL_CLOCK = 0.99
_RECOVERY_S, _POLL_S = 1.0, 0.005


class _Sample(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_float) for name in ("event_us", "sm_mhz", "set_mhz")),
        ("blocked", ctypes.c_int),
        ("host_us", ctypes.c_float),
    ]


@dataclass(frozen=True)
class ColdSample:
    """One launch after an L2 flush.

    Attributes:
        event_us: between the two events; still includes the empty interval.
        sm_mhz: mean SM clock during the launch; 0 if unknown.
        set_mhz: SM clock that was set just before the launch, without load; 0 if unknown.
        blocked: whether the launch was queued before it started, so that event_us contains no host time.
        host_us: host time of the launcher, until it has queued its work.
    """

    event_us: float
    sm_mhz: float
    set_mhz: float
    blocked: bool
    host_us: float = 0.0


@dataclass(frozen=True)
class WarmUp:
    """The launches before sampling: their number, and the host times of the first and the fastest."""

    launches: int
    first_us: float
    fastest_us: float


class Timer:
    """The native timing core in this process's CUDA context.

    Attributes:
        blocking: whether the stream is blocked while a cold sample is queued, and batches are graphs. False for
            launchers that synchronise their stream: their times include the host's part of each launch.
        empty_us: median of the empty interval, to subtract from cold samples.
        full_mhz: the SM clock that is set if no limit acts: normally the GPU's maximum, else what idling brings back.
        was_limited: whether a limit has lowered the clock in this process.

    Raises:
        WarplogError: The library cannot be loaded.
        LaunchFailed: The device reports an error, such as a lack of memory.
    """

    def __init__(self, library: Path, blocking: bool = True, default_mhz: float = 0.0) -> None:
        """Waits up to a second until the clock has reached `default_mhz`, since other work may have lowered it."""
        self.blocking = blocking
        try:
            self._library = ctypes.CDLL(str(library.resolve()))
        except OSError as error:
            raise WarplogError(f"{library}: cannot be loaded ({error}); delete it and run again") from None
        self._library.warplog_timer_error.restype = ctypes.c_char_p
        self._handle = ctypes.c_void_p()
        self._call("create", ctypes.byref(self._handle))
        self.cold(None, None, 5)
        self.empty_us = summarise([s.event_us for s in self.cold(None, None, EMPTY_SAMPLES)]).median_us
        self.was_limited = False
        self.full_mhz = default_mhz or self.probe()
        self.recover()

    def close(self) -> None:
        """Frees the buffers."""
        self._call("destroy", self._handle)

    def is_full(self, set_mhz: float) -> bool:
        """Returns whether no limit holds this SM clock down; True for an unknown clock (0)."""
        return set_mhz == 0 or set_mhz >= FULL_CLOCK * self.full_mhz

    def recover(self) -> bool:
        """Idles until no limit holds the SM clock down, for up to a second; returns whether the clock has recovered.

        If it has not, the highest clock seen is the full clock from now on: a warm board may boost less than before.
        """
        highest, deadline = self.probe(), time.monotonic() + _RECOVERY_S
        while not self.is_full(highest) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            highest = max(highest, self.probe())
        recovered = self.is_full(highest)
        if not recovered:
            self.full_mhz = highest
        return recovered

    def probe(self) -> float:
        """Returns the SM clock that is set while the GPU is otherwise idle, in MHz; 0 if unknown."""
        mhz = ctypes.c_float()
        self._call("probe", self._handle, ctypes.byref(mhz))
        return float(mhz.value)

    def warm_up(self, launcher: Launcher, arguments: Any, launches: int, milliseconds: float) -> WarmUp:
        """Launches before sampling, at least `launches` times and for `milliseconds`."""
        count, first, fastest = ctypes.c_int(), ctypes.c_float(), ctypes.c_float()
        self._launch(
            launcher,
            "warm_up",
            self._handle,
            launcher.function,
            ctypes.byref(arguments),
            launches,
            ctypes.c_float(milliseconds),
            ctypes.byref(count),
            ctypes.byref(first),
            ctypes.byref(fastest),
        )
        return WarmUp(count.value, first.value, fastest.value)

    def cold(
        self, launcher: Launcher | None, arguments: Any, count: int, pause_us: float = 0.0
    ) -> list[ColdSample]:
        """Takes `count` cold samples with pauses before them; without a launcher, of the empty interval."""
        out = (_Sample * count)()
        function = launcher.function if launcher else None
        packed = ctypes.byref(arguments) if launcher else None
        pause = ctypes.c_float(pause_us)
        self._launch(launcher, "cold", self._handle, function, packed, count, out, int(self.blocking), pause)
        return [ColdSample(s.event_us, s.sm_mhz, s.set_mhz, bool(s.blocked), s.host_us) for s in out]

    @contextmanager
    def batch(self, launcher: Launcher, arguments: Any, launches: int) -> Iterator["Batch"]:
        """Prepares a batch of `launches` back-to-back launches."""
        uncaptured = self._prepare(launcher, arguments, launches)
        try:
            yield Batch(self, launcher, launches, uncaptured)
        finally:
            self._call("release", self._handle)

    def run_batch(self, launcher: Launcher, count: int, pause_us: float) -> tuple[list[float], float]:
        """Runs the prepared batch; see Batch.run."""
        out, mhz = (ctypes.c_float * count)(), ctypes.c_float()
        self._launch(launcher, "run", self._handle, count, ctypes.c_float(pause_us), out, ctypes.byref(mhz))
        return [float(v) for v in out], float(mhz.value)

    def _prepare(self, launcher: Launcher, arguments: Any, launches: int) -> str:
        """Prepares a batch; returns why it is no graph although the stream is blocked, else ''."""
        of_batch = self._handle, launcher.function, ctypes.byref(arguments), launches
        try:
            self._launch(launcher, "prepare", *of_batch, int(self.blocking))
        except LaunchFailed as refused:
            if not (self.blocking and launcher.needs_no_graph):
                raise
            self._launch(launcher, "prepare", *of_batch, 0)
            return refused.reason
        return ""

    def _launch(self, launcher: Launcher | None, name: str, *arguments: Any) -> None:
        """Calls a function that calls the launcher; raises what the launcher says about its failure, if anything."""
        try:
            self._call(name, *arguments)
        except LaunchFailed as failed:
            raise (launcher.failure() if launcher else None) or failed from None

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, f"warplog_timer_{name}")(*arguments)
        if code:
            text = self._library.warplog_timer_error(code).decode(errors="replace")
            raise LaunchFailed("out_of_memory" if code == 2 else "crashed", text)


@dataclass(frozen=True)
class Batch:
    """A prepared batch of back-to-back launches: a CUDA graph, or plain launches if `timer` does not block.

    `uncaptured` says why a launcher that does not synchronise its stream is no graph; '' if it is one.
    """

    timer: Timer
    launcher: Launcher
    launches: int
    uncaptured: str = ""

    def run(self, count: int, pause_us: float = 0.0) -> tuple[list[float], float]:
        """Runs the batch `count` times with pauses before; returns us per launch, and the SM clock set afterwards."""
        return self.timer.run_batch(self.launcher, count, pause_us)
