"""Computes with several processes."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

from warplog.core.errors import WarplogError
from warplog.core.process import die_with_parent

_One = TypeVar("_One")
_Done = TypeVar("_Done")
_REMEDY = "free memory or give fewer cores, and run again"


@contextmanager
def each(do: Callable[[_One], _Done], of: Sequence[_One], most: int) -> Iterator[Iterable[_Done]]:
    """Yields what `do` returns of each, in order, as it is computed by up to `most` processes at a time.

    One process is this one, which computes a result when it is asked for. Several are its children and start at once;
    they end with the block, and with this process.

    Raises:
        WarplogError: A process cannot be started, or is killed.
    """
    count = min(most, len(of))
    if count <= 1:
        yield map(do, of)
        return
    try:
        # Other ways to start a process import the main module anew, which in a job is its script.
        processes = ProcessPoolExecutor(count, get_context("fork"), _end_with_parent)
        done = processes.map(do, of)
    except OSError as error:
        for started in active_children():  # they wait for work, and Python would wait for them
            started.kill()
        raise WarplogError(f"{count} processes cannot be started ({error.strerror}); {_REMEDY}") from None
    try:
        yield done
    except BrokenProcessPool as error:
        if error.__cause__:  # what a process returned cannot be read, which is a mistake in the program
            raise
        raise WarplogError(f"one of {count} processes was killed, as if memory is short; {_REMEDY}") from None
    finally:
        processes.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends all of them; the parent says so
    die_with_parent(signal.SIGKILL)
