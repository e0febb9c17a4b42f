"""Reading files that others wrote: whole, but only up to a limit."""

from pathlib import Path

from warplog.errors import WarplogError


def read_bytes(path: Path, most: int, remedy: str) -> bytes:
    """The bytes of a file.

    Raises:
        WarplogError: it cannot be read, or has more than `most` bytes; `remedy` then says what to do.
    """
    try:
        size = path.stat().st_size
        if size > most:
            raise WarplogError(f"{path}: {size} bytes, over the limit of {most}; {remedy}")
        return path.read_bytes()
    except OSError as error:
        raise WarplogError(f"{path}: cannot be read ({error.strerror})") from None
