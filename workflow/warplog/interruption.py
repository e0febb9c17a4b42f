"""Being interrupted: by Ctrl-C, by SIGTERM, by a terminal that closes; so that no program is left running."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Deferred:
    """A context in which signals wait until `release`, or its end: a program that is being started gets an owner."""

    def __init__(self) -> None:
        self._noted: list[int] = []
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Signals with a handler of Python's are noted from here on; only the main thread gets any."""
        if threading.current_thread() is threading.main_thread():
            held = {number: signal.getsignal(number) for number in _SIGNALS}
            self._handlers = {n: h for n, h in held.items() if callable(h)}
            for number in self._handlers:
                signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Releases."""
        self.release()

    def release(self) -> None:
        """Puts the handlers back and lets those that were noted happen."""
        handlers, self._handlers = self._handlers, {}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        noted, self._noted = self._noted, []
        for number in noted:
            os.kill(os.getpid(), number)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._noted.append(number)


@contextmanager
def termination_raises() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP unwind the stack, as Ctrl-C does, so that the program is not left running."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    mine = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in mine:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)
