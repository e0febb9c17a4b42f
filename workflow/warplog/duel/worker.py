"""The worker of a duel: lets one process after the other take turns until the rule says stop, and notes what they find.

    python -m warplog.duel.worker TASK.json
    python -m warplog.duel.worker             for one window after another, as lines of standard input ask

It imports the array library and forks, so that a process costs a CUDA context and no imports. Each process serves
requests: to load the sides of a duel, for a window, or, if the sides run apart, for a turn of its side.
"""

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import IO, TypeVar

from warplog.core.locks import hold
from warplog.core.process import die_with_parent
from warplog.duel.bout import Bout
from warplog.duel.evidence import TURNS, blocks_of, found_in, orders, rules
from warplog.duel.task import Asked, Doing, DuelTask, Failed, Found, Turned, note, notes
from warplog.duel.timer import A, B, Turn
from warplog.duel.turns import LEAST_BLOCKS
from warplog.measure.results import LaunchFailed
from warplog.measure.worker.backend import DEVICE_ERRORS, NumpyBackend, classify, import_arrays
from warplog.measure.worker.main import BROKEN
from warplog.measure.worker.python.launcher import import_languages
from warplog.records import door
from warplog.records.fields import Frozen
from warplog.records.requested.duel import Regime, Window

_HALF = 0.5
_T = TypeVar("_T")


class _Died(Exception):
    """A process ended before it answered; the text says how."""


class _Answer(Frozen, frozen=True, kw_only=True):
    """What a process answers: one of these."""

    window: Window | None = None
    turned: Turned | None = None
    addresses: tuple[int, ...] = ()
    limited: bool | None = None
    failed: Failed | None = None


def main(task_file: Path) -> int:
    """Runs the duel; its journal then holds a window of each process, or why there is no verdict."""
    task = door.read(task_file, DuelTask)
    die_with_parent(signal.SIGKILL)
    _import(task)
    with _noted(task):
        _measure(task)
    return 0


def stay() -> int:
    """Measures each window that standard input asks for; its process stays for the next ones, unless it fails."""
    die_with_parent(signal.SIGKILL)
    staying: dict[int, _Process] = {}
    with ExitStack() as open_:
        for line in sys.stdin:
            asked = door.decode(json.loads(line), Asked, "standard input")
            task, number = asked.task, asked.process
            _import(task)
            # Forked without the lock of the GPU, which the process would otherwise hold as long as it lives.
            one = staying.pop(number, None) or open_.enter_context(process(task, number, in_order(number)))
            with _noted(task):
                note(task.journal, Found(regime="rest", window=_window(one, task, "rest")))
                staying[number] = one
    return 0


def _import(task: DuelTask) -> None:
    import_arrays(task.backend)
    if task.backend != NumpyBackend.name:
        import_languages({side.load()[1].language for side in task.sides})


@contextlib.contextmanager
def _noted(task: DuelTask) -> Iterator[None]:
    """Locks the GPU; if a side fails in the block, ends that and notes why there is no verdict."""
    note(task.journal, Doing(what="waiting for the GPU", process=0))
    with hold(task.gpu_lock) if task.gpu_lock else contextlib.nullcontext():
        try:
            yield
        except LaunchFailed as failed:
            note(task.journal, Failed(status=failed.status, reason=failed.reason))
        except _Died as died:
            did = [one.what for one in notes(Path(task.journal)) if isinstance(one, Doing)]
            note(task.journal, Failed(status="crashed", reason=f"{did[-1]}: the process ended: {died}"))


def _measure(task: DuelTask) -> None:
    in_process = _apart if task.apart else _together
    for regime, rule in rules(task.apart, task.margin, task.looks).items():
        windows: list[Window] = []
        while not rule.is_over(windows):
            windows.append(in_process(task, len(windows) + 1, regime))
            note(task.journal, Found(regime=regime, window=windows[-1]))
        if not any(window.limited for window in windows):
            break


def _together(task: DuelTask, number: int, regime: Regime) -> Window:
    with process(task, number, in_order(number)) as both:
        return _window(both, task, regime)


def in_order(number: int) -> tuple[int, int]:
    """Returns the sides in the order in which a process loads them: every other process loads B first.

    Of equal libraries, the second one was seen to be slower by some 15 ns (docs/is-it-faster.md).
    """
    return (A, B) if number % 2 else (B, A)


def _window(both: "_Process", task: DuelTask, regime: Regime) -> Window:
    both.meet(task)
    window = both.ask(regime).window
    assert window is not None
    return window


def _apart(task: DuelTask, number: int, regime: Regime) -> Window:
    """Lets a process of A and one of B take turns; the ratio is that of the turns' means."""
    random = Random(f"{task.seed}/{number}")  # noqa: S311 - no secret
    with process(task, number, (A, A)) as a, process(task, number, (B, B)) as b:
        sides = a, b
        for side in sides:
            side.meet(task)
        addresses = tuple(where for side in sides for where in side.ask("addresses").addresses)
        begin, done = time.monotonic(), list[tuple[int, Turned]]()
        while not _is_enough(task, regime, len(done), time.monotonic() - begin):
            for which in orders([random.random() < _HALF]):
                turned = sides[which].ask(f"{regime} turn").turned
                assert turned is not None
                done.append((which, turned))
        seconds = time.monotonic() - begin
        limited = [side.ask("limited").limited for side in sides] if regime == "rest" else [True]
        for side in sides:
            side.ask("verify")
    turns = [Turn(which, one.us, one.sm_mhz, one.blocked) for which, one in done]
    return Window(
        process=number,
        seed=task.seed,
        addresses=addresses,
        seconds=seconds,
        discarded=sum(one.discarded for _, one in done),
        held=any(one.held for _, one in done),
        not_blocked=sum(not one.blocked for _, one in done),
        pause_us=max(one.pause_us for _, one in done),
        limited=None if None in limited else any(limited),
        **found_in(blocks_of(turns), max(one.step_us for _, one in done)),
    )


def _is_enough(task: DuelTask, regime: Regime, turns: int, seconds: float) -> bool:
    if regime == "sustained":
        return turns >= TURNS
    return turns >= LEAST_BLOCKS * TURNS and seconds >= task.window_s


class _Process:
    """A process that serves requests, as its parent sees it."""

    def __init__(self, pid: int, requests: IO[str], answers: IO[str]) -> None:
        self._pid, self._requests, self._answers = pid, requests, answers

    def ask(self, what: str) -> _Answer:
        """Returns the answer.

        Raises:
            LaunchFailed: A launcher or the device reports an error, or results are wrong.
            _Died: The process ended.
        """
        with contextlib.suppress(BrokenPipeError):
            print(what, file=self._requests, flush=True)
        line = self._answers.readline()
        if not line:
            code = self.end()
            if code == BROKEN:
                sys.exit(BROKEN)
            how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            raise _Died(how)
        answer = door.decode(json.loads(line), _Answer, "answer")
        if answer.failed:
            raise LaunchFailed(answer.failed.status, answer.failed.reason)
        return answer

    def meet(self, task: DuelTask) -> None:
        """Lets the process load and check the sides of a duel, as `ask`."""
        self.ask(f"meet {door.as_json(task)}")

    def end(self) -> int:
        """Ends the process if it still runs; returns its exit status, or the negative number of a signal."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        self._answers.close()
        if self._pid:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            self._pid = 0
        return self._code


@contextlib.contextmanager
def process(task: DuelTask, number: int, sides: tuple[int, int]) -> Iterator[_Process]:
    """Starts a process with both sides, or with twice the same, and ends it after the block."""
    requests, ask = os.pipe()
    answer, answers = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ask)
        os.close(answer)
        _serve(task, number, sides, os.fdopen(requests), os.fdopen(answers, "w"))
    os.close(requests)
    os.close(answers)
    child = _Process(pid, os.fdopen(ask, "w"), os.fdopen(answer))
    try:
        yield child
    finally:
        child.end()


def _serve(task: DuelTask, number: int, sides: tuple[int, int], requests: IO[str], answers: IO[str]) -> None:
    """Answers requests until there are no more, or one fails, and ends the process."""

    def say(answer: _Answer) -> None:
        print(door.as_json(answer), file=answers, flush=True)

    status = BROKEN
    open_ = ExitStack()  # never closed: the process ends, and after a device error closing fails as well
    try:
        die_with_parent(signal.SIGKILL)
        bout: Bout | None = None  # until the first request, when the GPU is locked
        for line in requests:
            bout = bout or Bout(task, number, sides, open_)
            say(_answer(bout, line.strip()))
        status = 0
    except LaunchFailed as failed:
        say(_Answer(failed=Failed(status=failed.status, reason=failed.reason)))
        status = 0
    except Exception as error:
        if type(error).__name__ in DEVICE_ERRORS:
            kind, reason = classify(error)
            say(_Answer(failed=Failed(status=kind, reason=reason)))
            status = 0
        else:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # the clean-up of the interpreter belongs to the parent


def _answer(bout: Bout, what: str) -> _Answer:
    match what:
        case _ if what.startswith("meet "):
            bout.meet(door.decode(json.loads(what.removeprefix("meet ")), DuelTask, "request"))
            return _Answer()
        case "rest" | "sustained":
            return _Answer(window=bout.window(what))
        case "rest turn":
            return _Answer(turned=bout.rest())
        case "sustained turn":
            return _Answer(turned=Turned(us=bout.sustained().us))
        case "addresses":
            return _Answer(addresses=bout.addresses)
        case "limited":
            return _Answer(limited=bout.is_limited())
        case "verify":
            bout.verify()
            return _Answer()
        case _:
            raise AssertionError(what)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1])) if sys.argv[1:] else stay())
    except Exception:
        traceback.print_exc()
        sys.exit(BROKEN)
