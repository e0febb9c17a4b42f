"""Folders that all workers of these tests read and none changes, each made by the first who needs it."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from warplog.core.locks import locked

_VARIABLE = "WARPLOG_SHARED_BY_TESTS"


@cache
def folder() -> Path:
    """Returns the folder of the process that calls first, whose children inherit it; it goes when that process ends."""
    if _VARIABLE not in os.environ:
        os.environ[_VARIABLE] = tempfile.mkdtemp(prefix="warplog-tests-")
        atexit.register(shutil.rmtree, os.environ[_VARIABLE])
    return Path(os.environ[_VARIABLE])


def made(name: str, make: Callable[[Path], object]) -> Path:
    """Returns the folder of this name, which `make` fills unless another worker has."""
    place = folder() / name
    with locked(folder() / f"{name}.lock", ""):
        if not place.exists():
            try:
                make(place)
            except BaseException:
                shutil.rmtree(place, ignore_errors=True)
                raise
    return place
