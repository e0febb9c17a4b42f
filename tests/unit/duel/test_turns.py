"""How a process takes turns: whole blocks for a while, with pauses and discards once a limit lowers the clock."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from warplog.duel import turns
from warplog.duel.evidence import TURNS, orders
from warplog.duel.timer import A, B, SideFailed, Turn

FULL, LOW = 1980.0, 1500.0


class Clock:
    """Stands in for the module `time`."""

    now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


class FakePair:
    """Two launchers of 100 us on a board whose clock is low after `busy_s` of work, unless there are pauses.

    Attributes:
        pauses: of each call, in microseconds.
        delays: of all turns.
        alone_with: which launchers ran back to back.
    """

    full_mhz = FULL
    sides = A, B

    def __init__(self, clock: Clock, us: float = 100.0, busy_s: float = 1e9, recovers: bool = True) -> None:
        self.timer: Any = self
        self.was_limited = False
        self._clock, self._us, self._busy_s, self._recovers = clock, us, busy_s, recovers
        self._mhz, self._worked_s = FULL, 0.0
        self.pauses: list[float] = []
        self.delays: list[int] = []
        self.alone_with: list[int] = []

    def turns(self, order: Sequence[int], delays: Sequence[int], pause_us: float) -> list[Turn]:
        self._clock.now_s += len(order) * (self._us + 150.0 + pause_us) * 1e-6
        self._worked_s += 0.0 if pause_us else len(order) * self._us * 1e-6
        self._mhz = LOW if self._worked_s > self._busy_s else FULL
        self.pauses.append(pause_us)
        self.delays += delays
        return [Turn(side, self._us, self._mhz, True) for side in order]

    def is_full(self, mhz: float) -> bool:
        return mhz == FULL

    def probe(self) -> float:
        return self._mhz

    def recover(self) -> bool:
        if self._mhz != FULL and self._recovers:
            self._worked_s, self._mhz = 0.0, FULL
        return self._mhz == FULL

    @contextmanager
    def alone(self, which: int) -> Iterator[str]:
        self.alone_with.append(which)
        yield "launcher"

    @contextmanager
    def batch(self, _launcher: object, _arguments: object, launches: int) -> Iterator[Any]:
        self._launches = launches
        yield self

    def run(self, batches: int) -> tuple[list[float], float]:
        settled = self._clock.now_s >= turns._SETTLE_S
        self._clock.now_s += self._launches * batches * self._us * 1e-6
        return [self._us if settled else 5 * self._us] * batches, FULL


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(turns, "time", clock)
    return clock


def take(pair: FakePair, seconds: float = 0.5) -> turns.Taken:
    return turns.take(pair, lambda blocks: orders([False] * blocks), seconds, Random(1))


def test_blocks_follow_each_other_without_pauses(clock: Clock) -> None:
    pair = FakePair(clock)
    taken = take(pair)
    assert len(taken.kept) % TURNS == 0
    assert 0.5 <= taken.seconds < 0.6
    assert (taken.discarded, taken.held, set(pair.pauses)) == (0, False, {0.0})


def test_delays_spread_the_first_event_over_many_steps_of_the_clock(clock: Clock) -> None:
    pair = FakePair(clock)
    take(pair)
    used = pair.delays[TURNS:]  # without the first block, which only tells how long a launch takes
    assert max(used) > 1800  # cycles: about 1 us
    assert min(used) < 200
    assert len(set(used)) > 0.5 * len(used)


def test_what_ran_with_a_lower_clock_is_discarded_and_launches_pause_from_then_on(clock: Clock) -> None:
    pair = FakePair(clock, busy_s=0.05)
    taken = take(pair)
    assert taken.discarded > 0
    assert {turn.sm_mhz for turn in taken.kept} == {FULL}
    assert pair.pauses[-1] == taken.pause_us > 0
    assert not taken.held
    assert pair.was_limited


def test_a_clock_that_stays_low_is_said_and_nothing_is_discarded(clock: Clock) -> None:
    taken = take(FakePair(clock, busy_s=0.05, recovers=False))
    assert (taken.held, taken.discarded) == (True, 0)
    assert {turn.sm_mhz for turn in taken.kept} == {FULL, LOW}


def test_a_slow_launch_still_gets_some_blocks(clock: Clock) -> None:
    taken = take(FakePair(clock, us=3e6))
    assert len(taken.kept) == turns.LEAST_BLOCKS * TURNS


def test_an_interval_that_is_no_longer_than_the_empty_one_names_its_side(clock: Clock) -> None:
    pair = FakePair(clock, us=-0.1)
    with pytest.raises(SideFailed, match="A: too short to time") as failed:
        take(pair)
    assert failed.value.status == "unsupported"


def test_a_turn_back_to_back_lasts_for_seconds_and_leaves_out_how_it_settles(clock: Clock) -> None:
    pair = FakePair(clock)
    assert turns.back_to_back(pair, B, None) == pytest.approx(100.0)
    assert pair.alone_with == [B]
    assert clock.now_s >= turns.TURN_S >= 3.0
