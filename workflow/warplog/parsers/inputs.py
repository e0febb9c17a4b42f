"""Opens the inputs of `warplog extract`: files, compressed or not, and pipes, which can be read only once."""

import os
import select
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from warplog.core.errors import WarplogError, cannot_write, naming
from warplog.core.files import open_regular, temporary_folder

STDIN = "-"
_STDIN_PATHS = frozenset({STDIN, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
MOST_COPIED_BYTES = 512 * 1024**2
_PIECE = 1 << 20
_WAIT_S = 30.0
_ZSTD = b"\x28\xb5\x2f\xfd"
_TEXTS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


@dataclass(frozen=True)
class Input:
    """A regular file to read, and the name under which the user gave it; they differ for pipes and compressed files."""

    name: str
    path: Path


@contextmanager
def opened(name: str) -> Iterator[Input]:
    """Opens an input: a file, `-` (standard input) or a pipe, whose content is first copied to a temporary file.

    What is compressed with zstd, such as a .ncu-repz, is unpacked to one. Errors raised in the context name the input
    as the user gave it.

    Raises:
        WarplogError: if the input is missing, a folder, a terminal or another device; if a pipe or an unpacked file
            has more than MOST_COPIED_BYTES; if a compressed file is truncated or damaged; or if nothing is written to
            a named pipe for 30 s.
    """
    path, piped = Path(name), _is_pipe(name)
    if not piped and not _is_packed(path):
        yield Input(name, path)
        return
    with temporary_folder() as folder:
        if piped:
            path = folder / "piped"
            _copy(_piped(name), path, name)
        if _is_packed(path):
            packed, path = path, folder / "unpacked.ncu-rep"
            _copy(_unpacked(packed, name), path, name)
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


def _is_packed(path: Path) -> bool:
    with open_regular(path) as file:
        return file.read(len(_ZSTD)) == _ZSTD


def _copy(pieces: Generator[bytes], path: Path, name: str) -> None:
    """Writes the content of an input to a file."""
    left = MOST_COPIED_BYTES
    try:
        with closing(pieces), path.open("wb") as file:
            for piece in pieces:
                left -= len(piece)
                if left < 0:
                    raise WarplogError(
                        f"{name}: its content is over the limit of {MOST_COPIED_BYTES} bytes; profile fewer launches"
                    )
                with naming(path):
                    file.write(piece)
    except OSError as error:
        if error.filename:
            raise WarplogError(cannot_write(error, path)) from None
        raise WarplogError(f"{name}: cannot be read ({error.strerror})") from None


def _unpacked(path: Path, name: str) -> Generator[bytes]:
    import pyarrow

    try:
        with open_regular(path) as file, pyarrow.CompressedInputStream(file, "zstd") as stream:
            while piece := stream.read(_PIECE):
                yield piece
    except (OSError, MemoryError) as error:
        raise WarplogError(f"{name}: is truncated or damaged ({error}); compress it again") from None


def _piped(name: str) -> Generator[bytes]:
    """Yields the content of a pipe; waits for the writer of standard input, but only 30 s for others."""
    handle, seconds = _handle(name)
    try:
        while piece := _read(name, handle, seconds):
            yield piece
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
