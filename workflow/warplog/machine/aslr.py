"""Disables address-space randomisation, since the code that ptxas 13 generates can depend on addresses.

Observed with CUDA 13.0: compiling one source eight times in one folder gave three different loops, and a single one
with fixed addresses; builds of the same source would differ in speed for no visible reason. It does not help with every
kernel: sgemm/tma_pipelined, compiled eight times from the same preprocessed text, gave two different versions of PTX.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_QUERY, _NO_RANDOMISATION = 0xFFFFFFFF, 0x0040000  # personality(2)


@contextmanager
def fixed() -> Iterator[bool]:
    """Disables address randomisation for programs that this thread starts in the block.

    Yields False if it cannot be disabled, as in some containers; the programs then run with randomisation.
    """
    libc = ctypes.CDLL(None)
    before = libc.personality(_QUERY)
    done = before >= 0 and libc.personality(before | _NO_RANDOMISATION) >= 0
    try:
        yield done
    finally:
        if done:
            libc.personality(before)
