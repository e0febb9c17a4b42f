"""File locks per GPU, results folder and SQLite store, for one process at a time; the OS frees them on `kill -9`."""

import hashlib
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core.errors import WarplogError

if TYPE_CHECKING:
    from filelock import FileLock

PATIENCE_S = 3600.0
_FOR_ALL_USERS = 0o666


@contextmanager
def hold(uuid: str, timeout_s: float = PATIENCE_S, folder: Path | None = None) -> Iterator[Path]:
    """Holds the lock of one GPU while the block runs; yields the path of the lock file.

    If another process holds the lock, prints a message on stderr and waits. The file is in `folder` (see
    `lock_path` for the default), can be locked by every user and is never deleted; a symbolic link in its place
    is refused. Not reentrant: a second hold in the same process waits for the first.

    Raises:
        WarplogError: The lock was not free within `timeout_s` seconds, or the file cannot be opened.
    """
    import filelock

    path = lock_path(uuid, folder)
    try:
        lock = acquire(path, f"waiting for {uuid}: another process is measuring on it", timeout_s)
    except filelock.Timeout:
        raise WarplogError(
            f"{path}: {uuid} was not free within {timeout_s:.0f} s; `warplog doctor` lists the processes that use it"
        ) from None
    except OSError as error:
        raise WarplogError(
            f"{path}: cannot be locked ({error.strerror or error}); remove it if it is a link or another user's file"
        ) from None
    try:
        yield path
    finally:
        lock.release()


def acquire(path: Path, busy: str, timeout_s: float) -> "FileLock":
    """Locks a file that every user can lock; if another process holds it, prints `busy` and waits. Returns the lock.

    Raises:
        filelock.Timeout: The lock was not free within `timeout_s` seconds.
        OSError: The file cannot be opened.
    """
    import filelock

    lock = filelock.FileLock(path, mode=_FOR_ALL_USERS, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        print(busy, file=sys.stderr, flush=True)
        lock.acquire(timeout=timeout_s)
    return lock


def is_held(uuid: str, folder: Path | None = None) -> bool:
    """Returns whether a process holds the lock of this GPU; False if there is no lock file or it cannot be opened."""
    import filelock

    path = lock_path(uuid, folder)
    if not path.is_file():
        return False
    lock = filelock.FileLock(path, mode=_FOR_ALL_USERS, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    except OSError:
        return False
    lock.release()
    return False


def lock_path(uuid: str, folder: Path | None = None) -> Path:
    """Returns the lock file of a GPU, named by a hash: a UUID from the environment is not a safe file name.

    By default it is in /tmp if that exists, regardless of TMPDIR: processes with different TMPDIRs share the lock.
    """
    shared = Path("/tmp")  # noqa: S108 - opened without following links
    place = folder or (shared if shared.is_dir() else Path(tempfile.gettempdir()))
    return place / f"warplog-gpu-{hashlib.sha256(uuid.encode()).hexdigest()[:16]}.lock"


def hold_folder(folder: str) -> None:
    """Locks the results folder until this process ends, so that no other run writes into it.

    The operating system releases the lock with the process, even after `kill -9`.

    Raises:
        WarplogError: Another run holds the lock, or the folder cannot be written.
    """
    import filelock

    path = Path(folder) / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path, thread_local=False)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise WarplogError(f"{path}: another run is working in {folder}; wait for it or stop it") from None
    except OSError as error:
        raise WarplogError(
            f"{path}: cannot be locked ({error.strerror or error}); check free space and permissions of {folder}"
        ) from None
    _HELD.append(lock)


def holds_folder() -> bool:
    """Returns whether this process holds the lock of a results folder."""
    return bool(_HELD)


_HELD: list[object] = []  # garbage collection of a lock would release it
