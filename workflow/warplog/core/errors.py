"""The only exception that users see: one line with the file, the value and the remedy."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from warplog.core.text import printable


class WarplogError(Exception):
    """Error outside the kernels, in the configuration, a tool or a file; its text is one line."""


def say(line: str) -> None:
    """Prints a line to standard error, without characters that move the cursor or cannot be seen."""
    print(printable(line), file=sys.stderr, flush=True)


@contextmanager
def as_one_line() -> Iterator[None]:
    """Prints a WarplogError raised in the block as one line on stderr and exits with status 1."""
    try:
        yield
    except WarplogError as error:
        say(f"error: {error}")
        raise SystemExit(1) from None
