"""Predicts the time of a child from its parent's time and the work of both.

    T_child = L K_child + R_child B_child
    R_parent = (T_parent - L K_parent) / B_parent
    R_child = 1 + S (R_parent - 1)

K are the kernels of a launch, L what one more of them costs, B the time of the units of its kernels, as far as they
overlap (`units.norm`). R is how much longer a kernel takes than its B: the
child as much as the parent, as far as the same units decide (S, from 0 to 1), since what holds up one unit says nothing
of another. No kernel is faster than one of its units. The child's time, stalls and utilisation are not used.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from warplog.analysis.mechanisms.ceilings import Gpu
from warplog.analysis.mechanisms.units import (
    CHAIN,
    WAITED_FOR,
    WAITS,
    Times,
    bound,
    chain,
    follows,
    norm,
    unit_times,
)
from warplog.analysis.mechanisms.work import Launch
from warplog.analysis.verdicts import Timed
from warplog.records import door

LAUNCHES = "launches"
LAUNCH_US = "launch_us"
CALIBRATION = Path(__file__).with_name("calibration.yaml")


class Calibration(Struct, frozen=True, forbid_unknown_fields=True):
    """What is fitted to pairs with a known cause.

    Attributes:
        power: p of the norm.
        error: share of a predicted gain within which nine of ten measured gains lie.
        campaigns: those that it was fitted to.
    """

    power: Annotated[float, Meta(ge=1)]
    error: Annotated[float, Meta(gt=0)]
    campaigns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prediction:
    """What a step should save.

    Attributes:
        parent_us: the parent's measured time.
        saved_us, low_us, high_us: the time that the child should take less, and its interval.
        shares: what of it is due to each unit and to launches; negative for what acts against it.
    """

    parent_us: float
    saved_us: float
    low_us: float
    high_us: float
    shares: Mapping[str, float]

    @property
    def speedup(self) -> float:
        """The parent's time over the child's; NaN if nothing would be left."""
        return self._speedup(self.saved_us)

    @property
    def speedup_interval(self) -> tuple[float, float]:
        """The ends of the interval of the speed-up."""
        return self._speedup(self.low_us), self._speedup(self.high_us)

    def _speedup(self, saved_us: float) -> float:
        left = self.parent_us - saved_us
        return self.parent_us / left if left > 0 else math.nan


def calibration() -> Calibration:
    """Returns the values in calibration.yaml.

    Raises:
        WarplogError: The file is not valid.
    """
    return door.read_yaml(CALIBRATION, Calibration)


def predict(
    parent: Launch,
    child: Launch,
    timed: Timed,
    gpu: Gpu,
    calibration: Calibration,
    kernels: int | None = None,
) -> Prediction | None:
    """Returns what the child should save of the parent's time; None if no unit of the parent is known to work.

    The interval has three sources, which add up in quadrature: the spread of the parent's time, that of each ceiling,
    and the error of the model. By no more than this error is the child faster than one of its units.

    Args:
        timed: the parent's time.
        kernels: how many the child launches, if that is not the number of those in `child`.
    """
    if not parent or not child or not bound(parent, gpu, calibration.power) > 0:
        return None
    child = _received(parent, child)

    def times(parent_us: float, on: Gpu) -> tuple[float, float]:
        return _child_us(parent, child, parent_us, on, calibration.power, kernels)

    us, least_us = times(timed.us, gpu)
    central = timed.us - us
    noisy_us = timed.us * (1 + timed.noise.gap())
    moved = [
        noisy_us - times(noisy_us, gpu)[0],
        *(timed.us - times(timed.us, on)[0] for on in gpu.spread().values()),
    ]
    half = math.hypot(calibration.error * central, *(other - central for other in moved))
    most = timed.us - least_us / (1 + calibration.error)
    shares = _shares(parent, child, timed.us, central, kernels or len(child), gpu, calibration.power)
    return Prediction(timed.us, central, central - half, min(central + half, most), shares)


def _received(parent: Launch, child: Launch) -> Launch:
    """Returns the child, whose SMs receive by multicast what each of them asked for in the parent."""
    asked = sum(work.l2_requests for work in parent if not work.multicasts)
    return [
        replace(work, received=max(work.l2_requests, asked)) if work.multicasts and asked else work
        for work in child
    ]


@dataclass(frozen=True)
class _Modelled:
    """A launch on a GPU without its start.

    Attributes:
        us: modelled time, as `units.bound`.
        least_us: how long its kernels take at least, one unit of each; waits are shorter beside others.
        decide: share of each unit, and of each part of a chain, in the modelled time.
    """

    us: float
    least_us: float
    decide: Times

    @classmethod
    def of(cls, launch: Launch, gpu: Gpu, power: float) -> "_Modelled":
        times = [unit_times(work, gpu) for work in launch]
        whole = sum(norm(each, power) for each in times)
        least = sum(max((us for unit, us in each.items() if unit != WAITS), default=0.0) for each in times)
        shares: Times = {}
        for work, each in zip(launch, times, strict=True):
            us_per_us = follows(each, power)
            parts = {name: (CHAIN, us) for name, us in chain(work, gpu).items() if name not in WAITED_FOR} | {
                unit: (unit, us) for unit, us in each.items() if unit != CHAIN
            }
            for name, (unit, us) in parts.items():
                shares[name] = shares.get(name, 0.0) + us_per_us[unit] * us / whole
        return cls(whole, least, shares)

    def alike(self, other: "_Modelled") -> float:
        """Returns how far the same units decide about the time of both: 1 if all do, 0 if none does."""
        return sum(min(share, other.decide.get(unit, 0.0)) for unit, share in self.decide.items())


def child_us(parent: Launch, child: Launch, parent_us: float, gpu: Gpu, power: float) -> float:
    """Returns the predicted time of the child."""
    return _child_us(parent, _received(parent, child), parent_us, gpu, power)[0]


def _child_us(
    parent: Launch, child: Launch, parent_us: float, gpu: Gpu, power: float, kernels: int | None = None
) -> tuple[float, float]:
    """Returns the predicted time of the child, and how long it takes at least."""
    start = launch_us(gpu)
    running = max(0.0, parent_us - start * len(parent))
    before, after = (_Modelled.of(launch, gpu, power) for launch in (parent, child))
    reached = running / before.us
    own = 1 + before.alike(after) * (reached - 1)
    if (own * after.us - running) * (after.us - before.us) < 0:  # less work does not take longer
        own = reached
    least = after.least_us
    if before.least_us > running:  # it beats a ceiling, and so may the child
        least *= running / before.least_us
    starts = start * (kernels or len(child))
    return starts + max(own * after.us, least), starts + least


def total(launch: Launch, gpu: Gpu) -> dict[str, float]:
    """Returns how long each unit works in all kernels of a launch."""
    times: dict[str, float] = {}
    for work in launch:
        for unit, us in unit_times(work, gpu).items():
            times[unit] = times.get(unit, 0.0) + us
    return times


def fit(
    pairs: Iterable[tuple[Launch, Launch, Timed, Timed]], gpu: Gpu, powers: Sequence[float]
) -> Calibration:
    """Returns the power with which most gains of pairs are predicted best, and the error that nine of ten stay within.

    Args:
        pairs: parent and child, and their times.
        powers: those to choose from.
    """
    known = [pair for pair in pairs if pair[2].us != pair[3].us and bound(pair[0], gpu, 1.0) > 0]

    def errors(power: float) -> list[float]:
        gains = (
            (before.us - after.us, before.us - child_us(parent, child, before.us, gpu, power))
            for parent, child, before, after in known
        )
        return sorted(
            abs(measured / predicted - 1) if predicted else math.inf for measured, predicted in gains
        )

    best = min(powers, key=lambda power: _rank(errors(power), 0.5))
    return Calibration(best, _rank(errors(best), 0.9))


def _rank(ordered: Sequence[float], share: float) -> float:
    """Returns the smallest value that this share of values does not exceed; infinite without values."""
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else math.inf


def launch_us(gpu: Gpu) -> float:
    """Returns what one more kernel of a launch costs; 0 if that was not measured."""
    us = gpu.us(LAUNCH_US)
    return 0.0 if math.isnan(us) else us


def _shares(
    parent: Launch, child: Launch, parent_us: float, saved_us: float, kernels: int, gpu: Gpu, power: float
) -> dict[str, float]:
    """Returns what of the predicted saving is due to launches, and to each unit.

    A unit has the part of the rest that its change has of all changes, each as far as the time of its kernel follows
    that unit. What is more than its change alone, where the parent takes longer than its units, is due to others that
    save, as far as theirs is less. Without a sum of changes in the direction of the rest, as where the same work is
    cut into other kernels, units have none.
    """
    starts = launch_us(gpu) * (len(parent) - kernels)
    changes = _changes(parent, child, gpu, power)
    whole, rest = sum(changes.values()), saved_us - starts
    shares = {unit: rest * change / whole for unit, change in changes.items() if change and whole * rest > 0}
    sides = [total(launch, gpu) for launch in (parent, child)]
    longer = max(1.0, (parent_us - launch_us(gpu) * len(parent)) / bound(parent, gpu, power))
    most = {unit: longer * abs(sides[0].get(unit, 0.0) - sides[1].get(unit, 0.0)) for unit in shares}
    saving = {unit: abs(us) for unit, us in shares.items() if us * rest > 0}
    over = sum(max(0.0, us - most[unit]) for unit, us in saving.items())
    room = sum(max(0.0, most[unit] - us) for unit, us in saving.items())
    if room >= over > 0:
        for unit, us in saving.items():
            more = min(0.0, most[unit] - us) + max(0.0, most[unit] - us) * over / room
            shares[unit] += math.copysign(1.0, rest) * more
    return {**shares, LAUNCHES: starts} if starts else shares


def _changes(parent: Launch, child: Launch, gpu: Gpu, power: float) -> dict[str, float]:
    """Returns how much longer each unit works in the parent, as far as it makes its kernels longer.

    The longest kernels of both are compared with each other, then the next; those that only one has are gained or lost.
    """
    sides = (
        sorted((unit_times(work, gpu) for work in launch), key=lambda times: -norm(times, power))
        for launch in (parent, child)
    )
    changes: dict[str, float] = {}
    for before, after in zip_longest(*sides, fillvalue={}):
        kernels = [follows(times, power) for times in (before, after) if times]
        for unit in dict.fromkeys((*before, *after)):
            us_per_us = sum(kernel.get(unit, 0.0) for kernel in kernels) / len(kernels)
            change = (before.get(unit, 0.0) - after.get(unit, 0.0)) * us_per_us
            changes[unit] = changes.get(unit, 0.0) + change
    return changes
