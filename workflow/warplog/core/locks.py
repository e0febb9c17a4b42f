"""File locks per GPU, results folder and SQLite store, for one process at a time; the OS frees them on `kill -9`.

A holder writes its process id, host and start time into the file, so that messages can name it.
"""

import errno
import fcntl
import hashlib
import os
import re
import socket
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from warplog.core.errors import WarplogError, say
from warplog.core.files import read_bytes
from warplog.core.process import is_running, processes_with

PATIENCE_S = 3600.0
_POLL_S = 0.05
_LOOK_S = 0.5  # at several GPUs, which takes longer
_PATIENT_S = 60.0
_FOR_ALL_USERS = 0o666
# In /tmp, anyone may write anything into the file.
_NOTE = re.compile(rb"(\d{1,9}) ([\w.-]{1,64}) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)\n")


@contextmanager
def hold(uuid: str, timeout_s: float = PATIENCE_S, folder: Path | None = None) -> Iterator[Path]:
    """Holds the lock of one GPU while the block runs; yields the path of the lock file.

    If another process holds the lock, prints a message on stderr and waits. The file is in `folder` (see
    `lock_path` for the default), can be locked by every user and is never deleted; a symbolic link in its place
    is refused. Not reentrant: a second hold in the same process waits for the first.

    Raises:
        WarplogError: The lock was not free within `timeout_s` seconds, or the file cannot be opened.
    """
    path = lock_path(uuid, folder)
    try:
        handle = _lock(
            path, f"waiting for {uuid}: another process is measuring on it", timeout_s, shared=True
        )
    except TimeoutError:
        raise WarplogError(
            f"{path}: {uuid} was not free within {timeout_s:.0f} s{holder(path)}; `warplog doctor` lists the"
            " processes that use it"
        ) from None
    except OSError as error:
        raise WarplogError(_unusable(path, error)) from None
    try:
        yield path
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, busy: str, timeout_s: float = PATIENCE_S) -> Iterator[None]:
    """Holds the lock of a file while the block runs; if another process holds it, prints `busy` and who, and waits.

    Raises:
        TimeoutError: The lock was not free within `timeout_s` seconds.
        OSError: The file cannot be created or locked.
    """
    handle = _lock(path, busy, timeout_s)
    try:
        yield
    finally:
        os.close(handle)


def is_held(uuid: str) -> bool:
    """Returns whether a process holds the lock of this GPU; False if there is no lock file or it cannot be opened."""
    path = lock_path(uuid)
    try:
        handle = _open(path, shared=True) if path.is_file() else None
    except OSError:
        return False
    if handle is None:
        return False
    free = _take(handle)
    os.close(handle)
    return not free


def take_free(uuids: Sequence[str], timeout_s: float = PATIENCE_S, folder: Path | None = None) -> str:
    """Returns the first GPU that no process uses, and uses it; waits if there is none, after a minute with a message.

    Raises:
        WarplogError: No GPU was free within `timeout_s` seconds, or a lock file cannot be opened.
    """
    begin = time.monotonic()
    announced = False
    while True:
        for uuid in uuids:
            if use(uuid, folder, alone=True):
                return uuid
        waited_s = time.monotonic() - begin
        if waited_s >= timeout_s:
            raise WarplogError(
                f"config: gpu: none of {', '.join(uuids)} was free within {timeout_s:.0f} s; `warplog doctor` lists"
                " the processes that use them"
            )
        if waited_s > _PATIENT_S and not announced:
            say(f"  waiting for a free GPU: other jobs use {', '.join(uuids)}")
            announced = True
        time.sleep(_LOOK_S)


def use(uuid: str, folder: Path | None = None, *, alone: bool = False) -> bool:
    """Notes that this process uses a GPU, until it ends; returns False if `alone` and another process uses it.

    Processes that use a GPU take turns on it with `hold`.

    Raises:
        WarplogError: The file of the lock cannot be opened.
    """
    path = lock_path(f"{uuid} in use", folder)
    try:
        handle = _open(path, shared=True)
    except OSError as error:
        raise WarplogError(_unusable(path, error)) from None
    if alone and not _take(handle):
        os.close(handle)
        return False
    _take(handle, fcntl.LOCK_SH)
    _USED.append(handle)
    return True


_USED: list[int] = []


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
    path = Path(folder) / ".lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _HELD.append(_lock(path, "", 0))
    except TimeoutError:
        raise WarplogError(
            f"{path}: another run is working in {folder}{holder(path)}; wait for it or stop it"
        ) from None
    except OSError as error:
        raise WarplogError(
            f"{path}: cannot be locked ({error.strerror}); check free space and permissions of {folder}"
        ) from None


def holds_folder() -> bool:
    """Returns whether this process holds the lock of a results folder."""
    return bool(_HELD)


_HELD: list[int] = []


def holder(path: Path) -> str:
    """Returns who holds a lock, as " (process 1 on host since 2026-11-24 08:00:00 UTC)"; "" if that is not known."""
    try:
        note = _NOTE.fullmatch(read_bytes(path, 200, ""))
    except WarplogError:
        return ""
    if note is None:
        return ""
    pid, host, since = (part.decode() for part in note.groups())
    words = f"process {pid} on {host} since {since}"
    if host == socket.gethostname() and not is_running(int(pid)):
        left = ", ".join(map(str, processes_with(path)))
        words += f", which has ended and left behind process {left or 'another'}"
    return f" ({words})"


def _lock(path: Path, busy: str, timeout_s: float, *, shared: bool = False) -> int:
    """Locks a file, notes in it who did, and returns the descriptor that holds the lock; prints `busy` if it waits."""
    end = time.monotonic() + timeout_s
    handle = _open(path, shared=shared)
    try:
        if not _take(handle):
            if busy:
                say(busy + holder(path))
            while not _take(handle):
                if time.monotonic() >= end:
                    raise TimeoutError
                time.sleep(_POLL_S)
    except BaseException:
        os.close(handle)
        raise
    with suppress(OSError):  # the disk is full: nobody can be named, but the lock holds
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()} {socket.gethostname()} {datetime.now(UTC):%F %T UTC}\n".encode(), 0)
    return handle


def _open(path: Path, *, shared: bool) -> int:
    """Opens a lock file and creates it if need be, for all users if `shared`; follows no link and waits for nothing."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, _FOR_ALL_USERS)
        if shared:
            os.fchmod(handle, _FOR_ALL_USERS)
    except FileExistsError:
        handle = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return handle


def _unusable(path: Path, error: OSError) -> str:
    return f"{path}: cannot be locked ({error.strerror}); remove it if it is a link or another user's file"


def _take(handle: int, how: int = fcntl.LOCK_EX) -> bool:
    """Returns whether this process has the lock now."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
