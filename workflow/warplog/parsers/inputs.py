"""Opens the inputs of `warplog extract`: files, and pipes, which can be read only once, within a size and a time."""

import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warplog.core.errors import WarplogError, cannot_write, naming
from warplog.core.files import temporary_folder

STDIN = "-"
_STDIN_PATHS = frozenset({STDIN, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
MOST_PIPED_BYTES = 512 * 1024**2
_PIECE = 1 << 20
_WAIT_S = 30.0
_TEXTS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@dataclass(frozen=True)
class Input:
    """A regular file to read, and the name under which the user gave it; they differ for a pipe."""

    name: str
    path: Path


@contextmanager
def opened(name: str) -> Iterator[Input]:
    """Opens an input: a file, `-` (standard input) or a pipe, whose content is first copied to a temporary file.

    Errors raised in the context name the input as the user gave it.

    Raises:
        WarplogError: if the input is missing, a folder, a terminal or another device; if a pipe has more than
            MOST_PIPED_BYTES; or if nothing is written to a named pipe for 30 s.
    """
    if not _is_pipe(name):
        yield Input(name, Path(name))
        return
    with temporary_folder() as folder:
        path = folder / "piped"
        _copy(name, path)
        try:
            yield Input(name, path)
        except WarplogError as error:
            raise WarplogError(str(error).replace(str(path), name)) from None


def is_pipe(name: str) -> bool:
    """Returns whether the input is standard input or a pipe; False if it cannot be read at all."""
    try:
        return _is_pipe(name)
    except WarplogError:
        return False


def decoded(data: bytes) -> str:
    """Returns text in UTF-8 or, if it starts with a byte order mark, UTF-16; bytes that are neither are replaced."""
    encoding = next((name for mark, name in _TEXTS.items() if data.startswith(mark)), "utf-8")
    return data.decode(encoding, errors="replace")


def valid_unicode(text: str) -> str:
    r"""Returns the text in valid Unicode: a byte that is not UTF-8, as in a file name, becomes `\xe9`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape" if _is_escaped(text) else "backslashreplace").decode(
            "utf-8", "backslashreplace"
        )
    return text


def _is_escaped(text: str) -> bool:
    return all(not "\ud800" <= letter <= "\udfff" or "\udc80" <= letter <= "\udcff" for letter in text)


def _is_pipe(name: str) -> bool:
    """Returns whether the input is a pipe or socket, not a regular file."""
    try:
        mode = (os.fstat(0) if name in _STDIN_PATHS else Path(name).stat()).st_mode
    except OSError as error:
        raise WarplogError(f"{name}: cannot be read ({error.strerror})") from None
    if stat.S_ISREG(mode):
        return name == STDIN
    if stat.S_ISFIFO(mode) or (stat.S_ISSOCK(mode) and name in _STDIN_PATHS):
        return True
    kind = "a folder" if stat.S_ISDIR(mode) else "a terminal or another device"
    raise WarplogError(f"{name}: cannot be read (it is {kind}, not a report)")


def _copy(name: str, path: Path) -> None:
    """Copies the content of a pipe to a file; waits for the writer of standard input, but only 30 s for others."""
    handle, seconds = _handle(name)
    left = MOST_PIPED_BYTES
    try:
        with path.open("wb") as file:
            while piece := _read(name, handle, seconds):
                left -= len(piece)
                if left < 0:
                    raise WarplogError(
                        f"{name}: over the limit of {MOST_PIPED_BYTES} bytes; profile fewer launches"
                    )
                with naming(path):
                    file.write(piece)
    except OSError as error:
        if error.filename:
            raise WarplogError(cannot_write(error, path)) from None
        raise WarplogError(f"{name}: cannot be read ({error.strerror})") from None
    finally:
        os.close(handle)


def _handle(name: str) -> tuple[int, float | None]:
    try:
        if name in _STDIN_PATHS:
            return os.dup(0), None
        return os.open(name, os.O_RDONLY | os.O_NONBLOCK), _WAIT_S
    except OSError as error:
        raise WarplogError(f"{name}: cannot be read ({error.strerror})") from None


def _read(name: str, handle: int, seconds: float | None) -> bytes:
    """Returns the next piece; b"" at the end."""
    if not select.select([handle], [], [], seconds)[0]:
        raise WarplogError(
            f"{name}: nothing was written to this pipe for {seconds:.0f} s; use - to wait for a program"
        )
    return os.read(handle, _PIECE)
