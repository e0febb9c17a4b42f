"""Reads the state of a GPU during measurements: clocks, power, temperature and throttle reasons."""

import math
import statistics
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Literal, Self

from warplog.machine.nvml import Card, NoGpuError, opened
from warplog.records.time import Board, Trace

# Bits of nvmlClocksEventReasons (nvml.h), without "gpu_idle", which does not throttle.
_IDLE = 0x1
THROTTLE_REASONS = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
# Reasons that point to a faulty GPU or machine; a power cap also occurs on a healthy one.
BRAKES = ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
_LIMITS = {"sw_power_cap", *BRAKES}
_MILLI = 1e-3
_LEAST_STEPS = 3  # of the energy counter, for a slope


PowerKind = Literal["", "instant", "average"]


@dataclass(frozen=True)
class ClockState:
    """One reading of a GPU's state; a value that the GPU does not report is None.

    Attributes:
        power_kind: "instant", "average" (over about one second, from older drivers), or "" without a power reading.
        throttle_reasons: active reasons, by name; empty, too, if the GPU does not report any.
        idle: whether the GPU reports itself idle.
        energy_j: energy that the board has used since the driver was loaded.
        reports_reasons: whether the GPU reports throttle reasons.
    """

    sm_mhz: int | None
    memory_mhz: int | None
    power_w: float | None
    power_kind: PowerKind
    temperature_c: int | None
    throttle_reasons: tuple[str, ...]
    idle: bool
    energy_j: float | None = None
    reports_reasons: bool = True

    @property
    def limits(self) -> tuple[str, ...]:
        """The active reasons that hold the clock down: power or heat."""
        return tuple(reason for reason in self.throttle_reasons if reason in _LIMITS)


@dataclass(frozen=True)
class Means:
    """Means of a while; None for what the GPU does not report.

    Attributes:
        sm_mhz: the SM clock that is set.
        power_w: power of the board.
        limits: throttle reasons that hold the clock down.
    """

    sm_mhz: float | None
    power_w: float | None
    limits: tuple[str, ...]


def clock_state(uuid: str | None = None) -> ClockState | None:
    """Reads the state of the GPU with this UUID, by default the visible one; None without a GPU."""
    try:
        with opened(uuid) as card:
            return read(card)
    except NoGpuError:
        return None


def read(card: Card, *, with_energy: bool = True) -> ClockState:
    """Reads the state of an open GPU in less than a millisecond, or in about 4 ms with the energy.

    Power and energy are board-wide: they are None for a MIG instance, which shares the board with others.
    """
    reasons = card.ask("GetCurrentClocksEventReasons")
    if reasons is None:
        reasons = card.ask("GetCurrentClocksThrottleReasons")
    reports_reasons, reasons = reasons is not None, reasons or 0
    power_w, kind = (None, "") if card.is_mig else _power(card)
    energy_mj = card.ask("GetTotalEnergyConsumption") if with_energy and not card.is_mig else None
    return ClockState(
        sm_mhz=card.ask("GetClockInfo", card.constant("NVML_CLOCK_SM")),
        memory_mhz=card.ask("GetClockInfo", card.constant("NVML_CLOCK_MEM")),
        power_w=power_w,
        power_kind=kind,
        temperature_c=card.ask("GetTemperature", card.constant("NVML_TEMPERATURE_GPU")),
        throttle_reasons=tuple(name for bit, name in THROTTLE_REASONS.items() if reasons & bit),
        idle=bool(reasons & _IDLE),
        energy_j=None if energy_mj is None else energy_mj * _MILLI,
        reports_reasons=reports_reasons,
    )


def _power(card: Card) -> tuple[float | None, PowerKind]:
    field = card.constant("NVML_FI_DEV_POWER_INSTANT")
    answers = card.ask("GetFieldValues", [field]) if field is not None else None
    if answers and answers[0].nvmlReturn == 0 and answers[0].value.uiVal:
        return answers[0].value.uiVal * _MILLI, "instant"
    power_mw = card.ask("GetPowerUsage")
    return (None, "") if power_mw is None else (power_mw * _MILLI, "average")


class Sampler:
    """Reads a GPU's state in a background thread while the block runs: `with Sampler() as sampler: …`.

    Starting and stopping take longer than many measurements: one sampler serves all measurements of a process, and is
    asked for the readings since their beginning. Without a GPU it takes none, and the values of result() are None.
    """

    def __init__(self, interval_s: float = 0.015, *, with_energy: bool = True) -> None:
        """Prepares readings of the visible GPU every `interval_s` seconds."""
        self._interval_s, self._with_energy = interval_s, with_energy
        self._card: Card | None = None
        self._states: list[tuple[float, ClockState]] = []  # with the time of the host's monotonic clock
        # Of the energy counter: kept, since a sustained run asks for them between its launches.
        self._updates: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._open = ExitStack()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Takes a first reading and starts the thread."""
        try:
            card = self._card = self._open.enter_context(opened())
        except NoGpuError:
            return self
        self._take(card)
        self._thread = threading.Thread(target=self._watch, args=(card,), daemon=True, name="warplog-sampler")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops the thread and releases NVML."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._card = None
        self._open.close()

    def _watch(self, card: Card) -> None:
        while not self._stop.wait(self._interval_s):
            self._take(card)

    def _take(self, card: Card) -> None:
        reading = time.monotonic(), read(card, with_energy=self._with_energy)
        energy_j, before_j = reading[1].energy_j, self._states[-1][1].energy_j if self._states else None
        if energy_j is not None and before_j is not None and energy_j != before_j:
            self._updates.append((reading[0], energy_j))
        self._states.append(reading)

    def _readings(self, begin_s: float, end_s: float) -> list[tuple[float, ClockState]]:
        """Returns the readings between two times; the thread only ever appends to the list."""
        first = bisect_left(self._states, begin_s, key=_time_of)
        return self._states[first : bisect_right(self._states, end_s, lo=first, key=_time_of)]

    def mean_power(self, begin_s: float, end_s: float) -> float | None:
        """Returns the mean power between two times of the monotonic clock, in W; None if it is not known (yet).

        It is the slope of the energy counter between its first and last step in the interval (the counter is updated
        every 0.1 s), or the mean of the power readings if the GPU has no such counter.
        """
        states = self._readings(begin_s, end_s)
        readings = [(t, state.energy_j) for t, state in states if state.energy_j is not None]
        if not readings:
            powers = _known(state.power_w for _, state in states)
            return statistics.fmean(powers) if powers else None
        steps = [after for before, after in pairwise(readings) if after[1] != before[1]]
        if len(steps) < _LEAST_STEPS:
            return None
        (first_s, first_j), (last_s, last_j) = steps[0], steps[-1]
        return (last_j - first_j) / (last_s - first_s)

    def energy_steps(self, begin_s: float, end_s: float) -> list[tuple[float, float, float]]:
        """Returns begin, end and mean power (W) between updates of the energy counter that lie between two times.

        The counter is updated at regular intervals, which all readings of the sampler tell more precisely than two.
        """
        changes = [(t, energy_j) for t, energy_j in list(self._updates) if t <= end_s]
        inside = [(t, energy_j) for t, energy_j in changes if t >= begin_s]
        if len(inside) < _LEAST_STEPS:
            return []
        typical_s = statistics.median(after[0] - before[0] for before, after in pairwise(changes))
        counts = [round((after[0] - before[0]) / typical_s) for before, after in pairwise(changes)]
        period_s = (changes[-1][0] - changes[0][0]) / sum(counts)
        steps = []
        for (t0, e0), (t1, e1) in pairwise(inside):
            updates = max(round((t1 - t0) / typical_s), 1)
            steps.append((t0, t1, (e1 - e0) / (updates * period_s)))
        return steps

    def between(self, begin_s: float, end_s: float) -> Means:
        """Returns means between two times of the monotonic clock."""
        states = [state for _, state in self._readings(begin_s, end_s)]
        clocks = _known(state.sm_mhz for state in states)
        reasons = {reason for state in states for reason in state.throttle_reasons}
        return Means(
            sm_mhz=statistics.fmean(clocks) if clocks else None,
            power_w=self.mean_power(begin_s, end_s),
            limits=tuple(sorted(reasons & _LIMITS)),
        )

    def trace(self, begin_s: float, end_s: float) -> Trace:
        """Returns the readings between two times of the monotonic clock; time_s starts at `begin_s`."""
        readings = self._readings(begin_s, end_s)
        states = [state for _, state in readings]
        return Trace(
            time_s=tuple(t - begin_s for t, _ in readings),
            sm_mhz=tuple(state.sm_mhz for state in states),
            power_w=tuple(state.power_w for state in states),
            temperature_c=tuple(state.temperature_c for state in states),
            energy_j=tuple(state.energy_j for state in states),
            throttle_reasons=tuple(",".join(state.throttle_reasons) for state in states),
        )

    def result(self, since_s: float = 0.0) -> Board:
        """Returns medians and extremes of the readings since a time of the monotonic clock; takes one if none is.

        Readings of an idle GPU count only if there are no others. Of the throttle reasons, it has all that occurred.
        """
        if self._card is not None and (not self._states or self._states[-1][0] < since_s):
            self._take(self._card)
        states = [state for _, state in self._readings(since_s, math.inf)]
        busy = [state for state in states if not state.idle] or states
        clocks = _known(state.sm_mhz for state in busy)
        powers = _known(state.power_w for state in busy)
        reasons = {reason for state in busy for reason in state.throttle_reasons}
        return Board(
            sm_mhz=statistics.median(clocks) if clocks else None,
            sm_mhz_min=min(clocks, default=None),
            sm_mhz_max=max(clocks, default=None),
            power_w=statistics.median(powers) if powers else None,
            power_w_max=max(powers, default=None),
            power_kind=next((state.power_kind for state in busy), ""),
            temperature_c=max(_known(state.temperature_c for state in busy), default=None),
            throttle_reasons=tuple(name for name in THROTTLE_REASONS.values() if name in reasons),
            state_samples=len(states),
        )


def _time_of(reading: tuple[float, ClockState]) -> float:
    return reading[0]


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
