"""Reading regular files up to a size limit, writing files atomically, and temporary folders."""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from secrets import token_hex

from warplog.core.errors import TEMPORARY, WarplogError, cannot_write, fullest

_TEMPORARY = "warplog-temporary-"
_OLD_S = 60.0  # between the making of a folder and its lock pass microseconds


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 text file; atomic and with the errors of `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file atomically and creates its folder.

    Raises:
        WarplogError: The disk is full or the folder is not writable.
    """
    temporary = path.with_name(f".{path.name}.{token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:  # with the permissions that the umask leaves
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise WarplogError(cannot_write(error, path)) from None


def put_between(document: Path, command: str, text: str) -> None:
    """Replaces the part of a document between the lines `<!-- warplog COMMAND -->` and `<!-- end -->`.

    Raises:
        WarplogError: The document cannot be read or written, or lacks one of these lines.
    """
    begin, end = f"<!-- warplog {command} -->", "<!-- end -->"
    try:
        before, _, rest = document.read_text(encoding="utf-8").partition(f"{begin}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise WarplogError(f"{document}: cannot be read ({error}); name a text file") from error
    _, ended, after = rest.partition(end)
    if not ended:
        raise WarplogError(f"{document}: has no lines {begin} and {end}; put them where the text goes")
    write_text(document, f"{before}{begin}\n\n{text}\n{end}{after}")


def open_regular(path: Path) -> BufferedReader:
    """Opens a regular file for reading; never waits, as opening a FIFO or a terminal would.

    Raises:
        WarplogError: The file cannot be read, or is a folder, a FIFO, a socket or a device.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise WarplogError(f"{path}: is not a regular file; put a file in its place")
    return os.fdopen(handle, "rb")


def read_bytes(path: Path, most: int, remedy: str) -> bytes:
    """Returns the content of a regular file; reads at most `most` bytes, even if the file system reports a wrong size.

    Raises:
        WarplogError: The file cannot be read, is not a regular file, or is larger than `most` bytes; that message ends
            with `remedy`.
    """
    with open_regular(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > most else file.read(most + 1)
        except OSError as error:
            raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None
    if max(size, len(data)) > most:
        raise WarplogError(f"{path}: {max(size, len(data))} bytes, over the limit of {most}; {remedy}")
    return data


def state_of(path: Path) -> tuple[int, int]:
    """Returns time of last change and size of a file, as a key for caches of its content; (0, 0) if it is missing."""
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)


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
    for left in place.glob(f"{_TEMPORARY}*"):
        with suppress(OSError), _opened(left) as handle:
            if time.time() - os.fstat(handle).st_mtime > _OLD_S and os.fstat(handle).st_uid == os.getuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_TEMPORARY) as name, _opened(Path(name)) as handle:
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
