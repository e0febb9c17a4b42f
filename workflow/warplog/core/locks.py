"""One measurer a GPU, one run a results folder: locks that the kernel holds, so freed even after `kill -9`."""

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from warplog.core.errors import WarplogError

PATIENCE_S = 3600.0
_FOR_ALL_USERS = 0o666


@contextmanager
def hold(uuid: str, timeout_s: float = PATIENCE_S, folder: Path | None = None) -> Iterator[Path]:
    """Holds the lock of one GPU while the block runs; yields the lock file.

    Waits where another process has it, and says so on stderr. The file lies in `folder` (the machine's
    temporary folder), can be locked by every user, is never deleted, and is no link: a link planted under its
    name is refused. Not reentrant: a second hold in the same process waits for the first.

    Raises:
        WarplogError: not free within `timeout_s` seconds, or the file cannot be opened.
    """
    import filelock

    path = lock_path(uuid, folder)
    lock = filelock.FileLock(path, mode=_FOR_ALL_USERS, thread_local=False)
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            print(f"waiting for {uuid}: another process is measuring on it", file=sys.stderr, flush=True)
            lock.acquire(timeout=timeout_s)
    except filelock.Timeout:
        raise WarplogError(
            f"{path}: {uuid} was not free within {timeout_s:.0f} s; see `warplog doctor` for who uses it"
        ) from None
    except OSError as error:
        raise WarplogError(
            f"{path}: cannot be locked ({error.strerror or error}); a link, or another user's? remove it"
        ) from None
    try:
        yield path
    finally:
        lock.release()


def lock_path(uuid: str, folder: Path | None = None) -> Path:
    """The lock file of a GPU: its name is a hash, since a UUID from outside is no safe file name.

    It lies in /tmp where there is one, whatever TMPDIR says: processes with their own TMPDIR must meet there.
    """
    shared = Path("/tmp")  # noqa: S108 - the name is only opened without following links
    place = folder or (shared if shared.is_dir() else Path(tempfile.gettempdir()))
    return place / f"warplog-gpu-{hashlib.sha256(uuid.encode()).hexdigest()[:16]}.lock"


def hold_folder(folder: str) -> None:
    """Keeps the results folder for this process until it ends, so that two runs do not write into it.

    The lock is the kernel's: it is gone with the process, even after `kill -9`.

    Raises:
        WarplogError: another run holds it.
    """
    import filelock

    path = Path(folder) / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise WarplogError(f"{path}: another run is working in {folder}; wait for it or stop it") from None
    _HELD.append(lock)


_HELD: list[object] = []  # a lock is released when its object is collected
