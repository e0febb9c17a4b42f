"""The one exception that a user may see: a sentence naming the file, the value and the remedy."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class WarplogError(Exception):
    """Something outside the kernels is wrong (configuration, tool, file); its text is one readable line."""


@contextmanager
def as_one_line() -> Iterator[None]:
    """A WarplogError within becomes one line on standard error, and exit status 1."""
    try:
        yield
    except WarplogError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        raise SystemExit(1) from None
