"""Reading regular files up to a size limit, and writing files atomically."""

import os
import stat
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from secrets import token_hex

from warplog.core.errors import WarplogError, cannot_write


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
