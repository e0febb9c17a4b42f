"""What one process of a duel does: it loads both sides, checks their results, and lets them take turns.

Its context, arrays and libraries stay for the next duel, if there is one.
"""

import ctypes
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from statistics import fmean

from msgspec.structs import replace

from warplog.catalog.family import Family, Variant
from warplog.duel import turns
from warplog.duel.evidence import blocks_of, estimate, found_in, orders, step_of
from warplog.duel.task import Doing, DuelTask, Opened, Turned, note
from warplog.duel.timer import NAMES, A, DuelTimer, Pair, SideFailed, Turn
from warplog.measure.results import LaunchFailed
from warplog.measure.worker.backend import DEVICE_ERRORS, Backend, Launcher, classify, make_backend, scattered
from warplog.measure.worker.case_data import SEEDS, CaseData
from warplog.measure.worker.check_case import check_case
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.python.launcher import PythonLauncher
from warplog.records import door
from warplog.records.requested.duel import Regime, Window

_TURN_APART_S = 0.1
_HALF = 0.5
_HOT_S = 0.2  # back to back, to see whether a limit acts


@contextmanager
def blamed(side: int) -> Iterator[None]:
    """Lets an error of the launcher or the device in the block name the side."""
    try:
        yield
    except SideFailed:
        raise
    except LaunchFailed as failed:
        raise SideFailed(side, failed) from None
    except Exception as error:
        if type(error).__name__ not in DEVICE_ERRORS:
            raise
        raise SideFailed(side, LaunchFailed(*classify(error))) from None


class Bout:
    """The sides of a process, checked, with their arrays filled; both sides, or twice the same.

    Attributes:
        seed: of the inputs, the addresses and the order of the turns.
        addresses: of the arrays.
    """

    addresses: tuple[int, ...]
    pair: Pair

    def __init__(self, task: DuelTask, number: int, sides: Sequence[int], open_: ExitStack) -> None:
        """Creates what the sides share: the context, and the inputs with their answers.

        Args:
            task: the first duel.
            number: of the process, from 1; the first one checks the check cases, too.
            sides: A and B in the order in which they are loaded, or twice the one that runs here.
            open_: is closed when the process is done.
        """
        self._number, self._sides = number, sides
        for file in (file for side in sides for file in task.sides[side].libraries):
            ctypes.CDLL(file)
        self._backend: Backend = make_backend(task.backend)
        name = f"{task.seed}/{number}" + (f"/{NAMES[sides[0]]}" if task.apart else "")
        self.seed = open_.enter_context(scattered(self._backend, name))
        self._random = Random(self.seed)  # noqa: S311 - no secret
        if number == 1 and sides[0] == A:
            note(task.journal, Opened(session=self._backend.session()))
        self._family: Family = task.sides[min(sides)].load()[0]
        self._data = CaseData(self._backend.xp, self._family)
        self._arrays: list[Problem] = []  # one for each kind of memory
        self._loaded: dict[str, Launcher] = {}
        self._timer: DuelTimer | None = None
        self._turns = open_.enter_context(ExitStack())

    def meet(self, task: DuelTask) -> None:
        """Loads the sides of a duel and checks the results of those that are new to the process.

        Raises:
            LaunchFailed: A launcher or the device reports an error, or results are wrong.
        """
        self._turns.close()
        self._task = task
        keys = {side: door.as_json(task.sides[side]) for side in self._sides}
        new = {side: task.sides[side].load()[1] for side in keys if keys[side] not in self._loaded}
        problems = {side: self._problem(task.sides[side].memory) for side in keys}
        for side, variant in new.items():
            with blamed(side):
                self._loaded[keys[side]] = self._launcher(side, variant)
        self._problems = [problems[side] for side in self._sides]
        self._launchers = [self._loaded[keys[side]] for side in self._sides]
        used = dict.fromkeys(problems.values())
        self.addresses = tuple(array.pointer() for problem in used for array in problem.arrays.values())
        for problem in used:
            problem.fill(SEEDS["time"] + self._number)
        for side, variant in new.items():
            note(task.journal, Doing(what=f"checking {NAMES[side]}", process=self._number))
            self._check(self._sides.index(side), variant)
        note(task.journal, Doing(what="in turns", process=self._number))
        if self._timer is None:
            blocking = self._family.measuring.timing == "stream"
            self._timer = DuelTimer(Path(task.timer), blocking, task.default_mhz)
        arguments = [problem.arguments for problem in self._problems]
        self.pair = self._turns.enter_context(self._timer.pair(self._launchers, arguments, self._sides))

    def _problem(self, memory: Mapping[str, str]) -> Problem:
        """Returns the arrays in these kinds of memory, which sides share."""
        found = next((one for one in self._arrays if one.memory == memory), None)
        if found is None:
            case = self._family.case(self._task.case)
            found = Problem(self._backend.xp, self._family, case, memory, self._data, self._random)
            self._arrays.append(found)
        return found

    def _launcher(self, side: int, variant: Variant) -> Launcher:
        file = Path(self._task.sides[side].file)
        if file.suffix == ".py":
            return PythonLauncher(replace(variant, file=file), self._backend)
        return Launcher(file, self._backend)

    def _check(self, place: int, variant: Variant) -> None:
        """Checks one side: in the first process at the check cases, and in each at the case of the duel."""
        launcher, problem, family = self._launchers[place], self._problems[place], self._family
        with blamed(self._sides[place]):
            cases = family.check_cases.values() if self._number == 1 else ()
            for case in cases:
                if not variant.requires.why_not_case(case):
                    small = Problem(self._backend.xp, family, case, problem.memory)
                    launcher.prepare(small, SEEDS["check"])
                    _, wrong = check_case(self._backend, launcher, small, 1)
                    if wrong:
                        raise LaunchFailed("wrong", f"case {case.name}: {wrong}")
            launcher.prepare(problem, SEEDS["time"] + self._number)
        self._verify(place, "")

    def verify(self) -> None:
        """Checks the results of each side once more, after its turns."""
        for place in range(len(self._sides)):
            self._verify(place, "after its turns: ")

    def _verify(self, place: int, when: str) -> None:
        problem = self._problems[place]
        with blamed(self._sides[place]):
            problem.fill(SEEDS["time"] + self._number)
            self._backend.synchronise()
            self._launchers[place](problem.arguments)
            if wrong := problem.verdict().reason:
                raise LaunchFailed("wrong", f"case {problem.case.name}: {when}{wrong}")

    def window(self, regime: Regime) -> Window:
        """Lets both sides take turns and returns what they show."""
        if regime == "sustained":
            begin = time.monotonic()
            taken = [self.sustained(place) for place in orders([self._random.random() < _HALF])]
            found = found_in(blocks_of(taken), 0.0) | {"limited": True}
            found["seconds"] = time.monotonic() - begin
        else:
            rest = turns.take(self.pair, self._shuffled, self._task.window_s, self._random)
            found = {
                **found_in(blocks_of(rest.kept), step_of(rest.kept)),
                "seconds": rest.seconds,
                "discarded": rest.discarded,
                "held": rest.held,
                "not_blocked": sum(not turn.blocked for turn in rest.kept),
                "pause_us": rest.pause_us,
                "limited": self.is_limited(),
            }
        self.verify()
        return Window(process=self._number, seed=self.seed, addresses=self.addresses, **found)

    def _shuffled(self, blocks: int) -> list[int]:
        return orders([self._random.random() < _HALF for _ in range(blocks)])

    def rest(self) -> Turned:
        """Returns a turn at rest of the one side that runs here."""
        taken = turns.take(self.pair, self._shuffled, _TURN_APART_S, self._random)
        step_us = step_of(taken.kept)
        logs = estimate([math.log(turn.us) for turn in taken.kept], step_us / taken.launch_us)
        clocks = [turn.sm_mhz for turn in taken.kept]
        return Turned(
            us=math.exp(logs.log_ratio),
            sm_mhz=fmean(clocks) if all(clocks) else 0.0,
            blocked=all(turn.blocked for turn in taken.kept),
            step_us=step_us,
            discarded=taken.discarded,
            held=taken.held,
            pause_us=taken.pause_us,
        )

    def sustained(self, place: int = 0) -> Turn:
        """Returns a turn back to back."""
        with blamed(self._sides[place]):
            us = turns.back_to_back(self.pair, place, self._problems[place].arguments)
        return Turn(self._sides[place], us, 0.0, True)

    def is_limited(self) -> bool | None:
        """Returns whether a limit acts when a side runs back to back; None if nobody asks."""
        if not self._task.sustained or self._number > 1:
            return None
        limited = False
        for place, problem in enumerate(self._problems):
            with blamed(self._sides[place]):
                limited |= turns.lowers_the_clock(self.pair, place, problem.arguments, _HOT_S)
        return limited
