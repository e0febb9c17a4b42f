"""Temporary folders, which the next one removes if the process that made them was killed."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warplog.core.errors import TEMPORARY, WarplogError, fullest

_PREFIX = "warplog-temporary-"
_OLD_S = 60.0  # between the making of a folder and its lock pass microseconds


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yields a new folder in TMPDIR, and removes it afterwards; first removes those that killed processes left there.

    The folder is locked as long as its process lives, so that no other process takes it for one that was left.

    Raises:
        WarplogError: No folder for temporary files can be written.
        OSError: The folder cannot be made.
    """
    try:
        place = Path(tempfile.gettempdir())
    except FileNotFoundError as error:
        raise WarplogError(f"{error.strerror}; free space on their disk ({fullest(TEMPORARY)})") from None
    for left in place.glob(f"{_PREFIX}*"):
        with suppress(OSError), _opened(left) as handle:
            if time.time() - os.fstat(handle).st_mtime > _OLD_S and os.fstat(handle).st_uid == os.getuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name, _opened(Path(name)) as handle:
        with suppress(OSError):  # a file system without locks, where none is removed
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield Path(name)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)
