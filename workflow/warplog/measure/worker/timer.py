"""Python interface of the timing core (timer.cu), and the rules for when to stop sampling."""

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core.errors import WarplogError
from warplog.core.statistics import summarise
from warplog.measure.worker.backend import Launcher, LaunchFailed

EMPTY_SAMPLES = 51
LEAST_SAMPLES = 3  # taken even if the kernel is so slow that they exceed the time limit
THROTTLED_BELOW = 0.75  # of the default SM clock; slower samples are discarded
HELD_BACK_BELOW = 0.97  # of the default SM clock; see is_held_back
_BATCH_SECONDS = 0.1
_BATCH_MOST = 20
_GRAPH_SECONDS = 0.02
_GRAPH_MOST_LAUNCHES = 500


class _Sample(ctypes.Structure):
    _fields_ = [("event_us", ctypes.c_float), ("sm_mhz", ctypes.c_float), ("blocked", ctypes.c_int)]


@dataclass(frozen=True)
class ColdSample:
    """One launch after an L2 flush; event_us still includes the empty interval."""

    event_us: float
    sm_mhz: float
    blocked: bool


@dataclass(frozen=True)
class WarmUp:
    """The launches before sampling: their number, and the host times of the first and the fastest."""

    launches: int
    first_us: float
    fastest_us: float


@dataclass(frozen=True)
class StopRule:
    """When to stop sampling; the fields are settings of the section `time`, see config/README.md."""

    min_samples: int
    max_samples: int
    max_seconds: float
    rel_spread: float


def sample_until(
    collect: Callable[[int], Sequence[ColdSample]], rule: StopRule, batch: int
) -> list[ColdSample]:
    """Collects batches of samples until the spread is small or has settled, or a limit is reached.

    The spread has settled if it changed by less than 5 % over the last three batches and there are at least
    three times the minimum number of samples. At least LEAST_SAMPLES are taken, however long they last.
    """
    samples: list[ColdSample] = []
    spreads: list[float] = []
    begin = time.monotonic()
    while len(samples) < rule.max_samples:
        late = time.monotonic() - begin >= rule.max_seconds
        if late and len(samples) >= LEAST_SAMPLES:
            break
        samples += collect(min(batch, rule.max_samples - len(samples)))
        spreads.append(summarise([s.event_us for s in samples]).rel_spread)
        if len(samples) < rule.min_samples:
            continue
        if spreads[-1] < rule.rel_spread:
            break
        recent = spreads[-3:]
        settled = len(recent) == 3 and max(recent) - min(recent) < 0.05 * recent[-1]
        if settled and len(samples) >= 3 * rule.min_samples:
            break
    return samples


def sample_throughout(
    collect: Callable[[int], Sequence[ColdSample]], rule: StopRule, batch: int
) -> list[ColdSample]:
    """Samples for `max_seconds` and keeps at most `max_samples` samples, evenly spaced.

    This is for a clock that a power limit moves: it changes every 0.1 s, so that a hundred samples of a short
    kernel would all be taken at one clock.
    """
    samples: list[ColdSample] = []
    begin = time.monotonic()
    while len(samples) < LEAST_SAMPLES or time.monotonic() - begin < rule.max_seconds:
        samples += collect(batch)
    kept = min(len(samples), rule.max_samples)
    return [samples[i * len(samples) // kept] for i in range(kept)]


def is_held_back(samples: Sequence[ColdSample], default_mhz: float) -> bool:
    """Returns whether the median SM clock is below 97 % of the default, as at the power limit or when hot.

    The clock then keeps falling for a while, so that earlier samples would appear faster than later ones.
    """
    clocks = [s.sm_mhz for s in samples if s.sm_mhz]
    return bool(clocks) and summarise(clocks).median_us < HELD_BACK_BELOW * default_mhz


def unthrottled(samples: Sequence[ColdSample], default_mhz: float) -> tuple[list[ColdSample], int]:
    """Returns the samples to keep, and how many were below 75 % of the default clock.

    Samples below are discarded if they are at most a third. If there are more, the power limit holds the clock
    down, and the fast samples would show a speed that the kernel does not sustain: all are kept and flagged.
    """
    kept = [s for s in samples if s.sm_mhz == 0 or s.sm_mhz >= THROTTLED_BELOW * default_mhz]
    discarded = len(samples) - len(kept)
    strays = len(kept) >= LEAST_SAMPLES and discarded <= len(samples) // 3
    return (kept, discarded) if strays else (list(samples), discarded)


class Timer:
    """The native timing core in this process's CUDA context.

    Attributes:
        blocking: whether the stream is blocked while a cold sample is queued, and hot launches form a graph. False
            for launchers that synchronise their stream: their times include the host's part of each launch.
        empty_us: median of the empty interval, to subtract from cold samples.

    Raises:
        WarplogError: The library cannot be loaded.
        LaunchFailed: The device reports an error, such as a lack of memory.
    """

    def __init__(self, library: Path, blocking: bool = True) -> None:
        self.blocking = blocking
        try:
            self._library = ctypes.CDLL(str(library.resolve()))
        except OSError as error:
            raise WarplogError(f"{library}: cannot be loaded ({error}); delete it and run again") from None
        self._library.warplog_timer_error.restype = ctypes.c_char_p
        self._handle = ctypes.c_void_p()
        self._call("create", ctypes.byref(self._handle))
        self.empty_us = self._measure_empty()

    def close(self) -> None:
        """Frees the buffers."""
        self._call("destroy", self._handle)

    def warm_up(self, launcher: Launcher, arguments: Any, launches: int, milliseconds: float) -> WarmUp:
        """Launches before sampling, at least `launches` times and for `milliseconds`."""
        count, first, fastest = ctypes.c_int(), ctypes.c_float(), ctypes.c_float()
        self._call(
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

    def cold(self, launcher: Launcher | None, arguments: Any, count: int) -> list[ColdSample]:
        """Takes `count` cold samples; without a launcher, of the empty interval."""
        out = (_Sample * count)()
        function = launcher.function if launcher else None
        packed = ctypes.byref(arguments) if launcher else None
        self._call("cold", self._handle, function, packed, count, out, int(self.blocking))
        return [ColdSample(s.event_us, s.sm_mhz, bool(s.blocked)) for s in out]

    def hot(self, launcher: Launcher, arguments: Any, launches: int, replays: int) -> list[float]:
        """Returns microseconds per launch, for each of `replays` graphs (or batches) of `launches` launches."""
        out = (ctypes.c_float * replays)()
        how = "hot" if self.blocking else "batches"
        self._call(how, self._handle, launcher.function, ctypes.byref(arguments), launches, replays, out)
        return [float(v) for v in out]

    def _measure_empty(self) -> float:
        self.cold(None, None, 5)
        return summarise([s.event_us for s in self.cold(None, None, EMPTY_SAMPLES)]).median_us

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, f"warplog_timer_{name}")(*arguments)
        if code:
            text = self._library.warplog_timer_error(code).decode(errors="replace")
            raise LaunchFailed("out_of_memory" if code == 2 else "crashed", text)


def cold_batch(estimate_us: float) -> int:
    """Returns the number of samples per batch, so that a batch lasts at most about 0.1 s."""
    return max(1, min(_BATCH_MOST, int(_BATCH_SECONDS * 1e6 / max(estimate_us, 1.0))))


def hot_plan(estimate_us: float, seconds: float) -> tuple[int, int]:
    """Returns launches per graph (about 20 ms) and replays (`seconds` in total; 1 if one launch lasts longer)."""
    launches = max(1, min(_GRAPH_MOST_LAUNCHES, int(_GRAPH_SECONDS * 1e6 / max(estimate_us, 0.5))))
    replays = int(seconds * 1e6 / max(launches * estimate_us, 1.0)) + 1
    return launches, 1 if estimate_us >= seconds * 1e6 else max(5, min(replays, 2000))
