"""Reading files up to a size limit, and writing files atomically."""

import os
import tempfile
from pathlib import Path

from warplog.core.errors import WarplogError


def write_text(path: Path, text: str) -> None:
    """Writes a UTF-8 text file; atomic and with the errors of `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file atomically and creates its folder.

    Raises:
        WarplogError: The disk is full or the folder is not writable.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise WarplogError(
            f"{path}: cannot be written ({error.strerror or error}); check free space and permissions"
        ) from None


def read_bytes(path: Path, most: int, remedy: str) -> bytes:
    """Returns the content of a file; reads at most `most` bytes, also where the file system reports a wrong size.

    Raises:
        WarplogError: The file cannot be read, or is larger than `most` bytes; that message ends with `remedy`.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            data = b"" if size > most else file.read(most + 1)
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None
    if max(size, len(data)) > most:
        raise WarplogError(f"{path}: {max(size, len(data))} bytes, over the limit of {most}; {remedy}")
    return data


def state_of(path: Path) -> tuple[int, int]:
    """Returns time of last change and size of a file, as a key for caches of its content; (0, 0) if it is missing."""
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)
