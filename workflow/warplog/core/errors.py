"""What users see of an error: one line with the file, the value and the remedy; of Ctrl-C, the word "interrupted"."""

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from warplog.core.text import printable

# What these say is at the end of the run, if at all: neither a result nor a failure of the kernel.
_QUIET = frozenset(("ok", "skipped", "unsupported", "denied", "missing"))


class WarplogError(Exception):
    """Error outside the kernels, in the configuration, a tool or a file; its text is one line."""


# What the user can remedy; any other OSError is a mistake in the program, whose traceback is needed.
_REMEDIES = {
    errno.ENOSPC: "free space on the disk ({})",
    errno.EDQUOT: "free space within your quota ({})",
    errno.EROFS: "the file system is read-only; work in another folder",
    errno.EACCES: "correct the permissions",
    errno.EPERM: "correct the permissions",
}
TEMPORARY = Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108 - only its free space is read
_INTERRUPTED = 130  # as a shell reports SIGINT


def say(line: str) -> None:
    """Prints a line to standard error, without characters that move the cursor or cannot be seen."""
    print(printable(line), file=sys.stderr, flush=True)


def note(line: str) -> None:
    """Prints a line to the log of the job, and to standard error if there is none."""
    print(printable(line), file=getattr(sys.stderr, "log", sys.stderr), flush=True)


def progress(line: str, status: str) -> None:
    """Prints a line on a finished part of a job to its log, and to standard error if it failed."""
    (note if status in _QUIET else say)(line)


def cannot_write(error: OSError, file: str | Path | None) -> str:
    """Returns which file cannot be written (None: unknown), why, and the remedy; of a full disk, its folder too."""
    places = [Path(file)] if file else [Path(), TEMPORARY]
    remedy = _REMEDIES.get(error.errno or 0, "check free space and permissions").format(fullest(*places))
    return f"{file or 'a file'}: cannot be written ({error.strerror or error}); {remedy} and run again"


def fullest(*places: Path) -> str:
    """Returns the folder with the least free space on its disk, as "/tmp: 3 MiB free", of files that may not exist."""
    above = [(place, *place.parents) for place in (place.absolute() for place in places)]
    folders = [next(folder for folder in folders if folder.is_dir()) for folders in above]
    free, folder = min((shutil.disk_usage(folder).free, folder) for folder in folders)
    return f"{folder}: {free >> 20} MiB free"


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Adds the name of the file to an OSError of the block, such as a full disk, that has none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(file)
        raise


@contextmanager
def as_one_line() -> Iterator[None]:
    """Prints an error of the block that users can remedy as one line on stderr, and exits with status 1.

    These are a WarplogError, and an OSError for want of space or permission. Ctrl-C exits with status 130.
    """
    try:
        yield
    except WarplogError as error:
        _exit(f"error: {error}", 1)
    except OSError as error:
        if error.errno not in _REMEDIES:
            raise
        _exit(f"error: {cannot_write(error, error.filename)}", 1)
    except KeyboardInterrupt:
        _exit("interrupted", _INTERRUPTED)


def quiet_interrupts() -> None:
    """Makes Python print "interrupted" in place of a traceback if Ctrl-C ends the process outside of `as_one_line`."""
    shown = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            print("interrupted", file=sys.stderr, flush=True)
        else:
            shown(kind, error, trace)

    sys.excepthook = show


def _exit(line: str, status: int) -> NoReturn:
    with suppress(OSError):
        say(line)
    raise SystemExit(status) from None


# A script that Snakemake runs has this name; it imports for a second before its first statement can catch Ctrl-C.
if hasattr(sys.modules["__main__"], "snakemake"):
    quiet_interrupts()
