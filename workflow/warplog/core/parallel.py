"""Computes with several processes."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TypeVar

from warplog.core.process import die_with_parent

_One = TypeVar("_One")
_Done = TypeVar("_Done")


@contextmanager
def each(do: Callable[[_One], _Done], of: Sequence[_One], most: int) -> Iterator[Iterable[_Done]]:
    """Yields what `do` returns of each, in order, as it is computed by up to `most` processes at a time.

    One process is this one, which computes a result when it is asked for. Several are its children and start at once;
    they end with the block, and with this process.
    """
    count = min(most, len(of))
    if count <= 1:
        yield map(do, of)
        return
    # Other ways to start a process import the main module anew, which in a job is its script.
    processes = ProcessPoolExecutor(count, get_context("fork"), _end_with_parent)
    try:
        yield processes.map(do, of)
    finally:
        processes.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all of them; the parent says so
    die_with_parent(signal.SIGKILL)
