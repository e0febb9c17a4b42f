"""Python interface of the timing core with a second launcher (duel.cu)."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.measure.results import LaunchFailed
from warplog.measure.worker.backend import Launcher
from warplog.measure.worker.timer import Timer

SOURCE = Path(__file__).with_name("duel.cu")
A, B = 0, 1
NAMES = "A", "B"


class SideFailed(LaunchFailed):
    """A launch of one side failed; the reason names the side."""

    def __init__(self, side: int, failed: LaunchFailed) -> None:
        super().__init__(failed.status, f"{NAMES[side]}: {failed.reason}")


class _Turn(ctypes.Structure):
    _fields_ = [("event_us", ctypes.c_float), ("sm_mhz", ctypes.c_float), ("blocked", ctypes.c_int)]


@dataclass(frozen=True)
class Turn:
    """One cold launch.

    Attributes:
        side: A or B, whose launch it was.
        us: between the two events, without the empty interval.
        sm_mhz: mean SM clock during the launch; 0 if unknown.
        blocked: whether the launch was queued before it started, so that `us` contains no host time.
    """

    side: int
    us: float
    sm_mhz: float
    blocked: bool


class DuelTimer(Timer):
    """The timing core, which lets two launchers take turns."""

    @contextmanager
    def pair(
        self, launchers: Sequence[Launcher], arguments: Sequence[Any], sides: Sequence[int] = (A, B)
    ) -> Iterator["Pair"]:
        """Launches two launchers a few times and yields what takes turns with them; `sides` says whose they are.

        Raises:
            SideFailed: A launcher reports an error.
        """
        pair = Pair(self, ctypes.c_void_p(), launchers, sides)
        a, b = zip((one.function for one in launchers), map(ctypes.byref, arguments), strict=True)
        try:
            pair.call("pair", self._handle, *a, *b, ctypes.byref(pair.handle))
            yield pair
        finally:
            self.call("part", pair.handle)

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function of the core.

        Raises:
            LaunchFailed: The device reports an error.
        """
        self._call(name, *arguments)


@dataclass(frozen=True)
class Pair:
    """Two launchers that take turns; `sides` says whose they are."""

    timer: DuelTimer
    handle: ctypes.c_void_p
    launchers: Sequence[Launcher]
    sides: Sequence[int]

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function of the core whose last argument says which launcher has failed.

        Raises:
            SideFailed: A launcher or the device reports an error.
        """
        failed = ctypes.c_int()
        try:
            self.timer.call(name, *arguments, ctypes.byref(failed))
        except LaunchFailed as error:
            said = self.launchers[failed.value].failure() or error
            raise SideFailed(self.sides[failed.value], said) from None

    def turns(self, order: Sequence[int], delays: Sequence[int], pause_us: float) -> list[Turn]:
        """Takes a turn of each launcher in `order`, after a pause and a delay in cycles that is not part of its time.

        Raises:
            SideFailed: A launcher or the device reports an error.
        """
        count = len(order)
        out = (_Turn * count)()
        which, waits = (ctypes.c_ubyte * count)(*order), (ctypes.c_uint * count)(*delays)
        pause = ctypes.c_float(pause_us)
        self.call("turns", self.handle, which, waits, count, int(self.timer.blocking), pause, out)
        return [
            Turn(self.sides[place], turn.event_us - self.timer.empty_us, turn.sm_mhz, bool(turn.blocked))
            for place, turn in zip(order, out, strict=True)
        ]

    @contextmanager
    def alone(self, which: int) -> Iterator[Launcher]:
        """Gives the idle device to one launcher in the block, with its own stream and limits of the device."""
        self.timer.call("enter", self.handle, which)
        try:
            yield self.launchers[which]
        finally:
            self.timer.call("leave", self.handle, which)
