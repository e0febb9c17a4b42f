"""Work shared by several processes: results in order, errors as they are, and nothing left when the parent ends."""

import errno
import os
import signal
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import pytest

from warplog.core import parallel
from warplog.core.errors import WarplogError

# Of three processes, two are at work and one has nothing to do.
_WAITS = """
import os, time
from multiprocessing import get_context
from warplog.core import parallel
from warplog.core.errors import as_one_line
started = get_context("fork").Barrier(3)
def wait(number):
    started.wait()
    if number:
        os.write(1, b"%d\\n" % number)
        time.sleep(600)
    return number
with as_one_line(), parallel.each(wait, range(3), 3) as done:
    for number in done:
        os.write(1, b"%d\\n" % number)
"""


def _square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def _end(number: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _refuse(number: int) -> int:
    if number == 1:
        raise WarplogError(f"{number}: refused")
    return number


@pytest.mark.parametrize("most", [1, 3])
def test_results_have_the_order_of_the_arguments(most: int) -> None:
    with parallel.each(_square, range(20), most) as done:
        results = list(done)
    assert [square for square, _ in results] == [n * n for n in range(20)]
    assert (os.getpid() in {process for _, process in results}) == (most == 1)


@pytest.mark.parametrize("most", [1, 2])
def test_an_error_is_raised_where_its_result_would_be(most: int) -> None:
    with parallel.each(_refuse, (0, 1, 2), most) as done:
        results = iter(done)
        assert next(results) == 0
        with pytest.raises(WarplogError, match=r"^1: refused$"):
            next(results)


def test_of_a_killed_process_one_line_tells_the_remedy() -> None:
    with (
        pytest.raises(
            WarplogError, match=r"^one of 2 processes was killed.*; free memory or give fewer cores"
        ),
        parallel.each(_end, range(4), 2) as done,
    ):
        list(done)


def test_processes_that_cannot_be_started_leave_none(monkeypatch: pytest.MonkeyPatch) -> None:
    forks = iter((os.fork, None))

    def fork() -> int:
        if do := next(forks):
            return do()
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", fork)
    refused = pytest.raises(WarplogError, match=r"^2 processes cannot be started \(Resource temporarily")
    with refused, parallel.each(_square, range(4), 2):
        pass
    for process in active_children():
        process.join(60)
    assert not active_children()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_its_processes_end_with_the_one_that_started_them(number: signal.Signals) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(parallel.__file__).parents[2])}
    parent = subprocess.Popen(
        [sys.executable, "-c", _WAITS],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=env,
        start_new_session=True,
    )
    assert parent.stdout is not None
    assert sorted(parent.stdout.readline() for _ in range(3)) == [b"0\n", b"1\n", b"2\n"]
    # A terminal sends Ctrl-C to all of them.
    (os.killpg if number == signal.SIGINT else os.kill)(parent.pid, number)
    rest, _ = parent.communicate(timeout=60)
    # The output ends with the last process that has it open.
    assert rest == (b"interrupted\n" if number == signal.SIGINT else b"")
