"""What one process of a duel does: it loads both sides, checks their results, and lets them take turns."""

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
        addresses: of the arrays.
    """

    def __init__(self, task: DuelTask, number: int, sides: Sequence[int], open_: ExitStack) -> None:
        """Checks the results.

        Args:
            task: the duel.
            number: of the process, from 1; the first one checks the check cases, too.
            sides: A and B, or twice the one that runs here.
            open_: is closed when the process is done.

        Raises:
            LaunchFailed: A launcher or the device reports an error, or results are wrong.
        """
        self._task, self._number, self._sides = task, number, sides
        self._backend: Backend = make_backend(task.backend)
        name = f"{task.seed}/{number}" + (f"/{NAMES[sides[0]]}" if task.apart else "")
        self.seed = open_.enter_context(scattered(self._backend, name))
        self._random = Random(self.seed)  # noqa: S311 - no secret
        if number == 1 and sides[0] == A:
            note(task.journal, Opened(session=self._backend.session()))
        loaded = {side: task.sides[side].load() for side in dict.fromkeys(sides)}
        self._family: Family = loaded[sides[0]][0]
        data = CaseData(self._backend.xp, self._family)
        problems, launchers = dict[int, Problem](), dict[int, Launcher]()
        for side, (_, variant) in loaded.items():
            memory = task.sides[side].memory
            shared = next((one for one in problems.values() if one.memory == memory), None)
            problems[side] = shared or self._problem(memory, data)
            with blamed(side):
                launchers[side] = self._launcher(side, variant)
        self._problems = [problems[side] for side in sides]
        self._launchers = [launchers[side] for side in sides]
        used = dict.fromkeys(problems.values())
        self.addresses = tuple(array.pointer() for problem in used for array in problem.arrays.values())
        for problem in used:
            problem.fill(SEEDS["time"] + number)
        for side, (_, variant) in loaded.items():
            note(task.journal, Doing(what=f"checking {NAMES[side]}", process=number))
            self._check(sides.index(side), variant)
        note(task.journal, Doing(what="in turns", process=number))
        timer = DuelTimer(Path(task.timer), self._family.measuring.timing == "stream", task.default_mhz)
        arguments = [problem.arguments for problem in self._problems]
        self.pair: Pair = open_.enter_context(timer.pair(self._launchers, arguments, sides))

    def _problem(self, memory: Mapping[str, str], data: CaseData) -> Problem:
        case = self._family.case(self._task.case)
        return Problem(self._backend.xp, self._family, case, memory, data, self._random)

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
        return Turn(place, us, 0.0, True)

    def is_limited(self) -> bool | None:
        """Returns whether a limit acts when a side runs back to back; None if nobody asks."""
        if not self._task.sustained or self._number > 1:
            return None
        limited = False
        for place, problem in enumerate(self._problems):
            with blamed(self._sides[place]):
                limited |= turns.lowers_the_clock(self.pair, place, problem.arguments, _HOT_S)
        return limited
