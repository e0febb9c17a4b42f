"""Work shared by several processes: results in order, errors as they are, and nothing left when the parent ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warplog.core import parallel
from warplog.core.errors import WarplogError

_WAITS = """
import os, time
from warplog.core import parallel
def wait(number):
    os.write(1, b"%d\\n" % number)
    time.sleep(600)
with parallel.each(wait, (1, 2), 2) as done:
    list(done)
"""


def _square(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


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


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_its_processes_end_with_the_one_that_started_them(number: signal.Signals) -> None:
    env = os.environ | {"PYTHONPATH": str(Path(parallel.__file__).parents[2])}
    parent = subprocess.Popen(
        [sys.executable, "-c", _WAITS], stdout=subprocess.PIPE, env=env, start_new_session=True
    )
    assert parent.stdout is not None
    assert sorted((parent.stdout.readline(), parent.stdout.readline())) == [b"1\n", b"2\n"]
    # A terminal sends Ctrl-C to all of them.
    (os.killpg if number == signal.SIGINT else os.kill)(parent.pid, number)
    rest, _ = parent.communicate(timeout=60)
    assert rest == b"", "the output ends with the last process that has it open"
