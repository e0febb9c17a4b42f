"""Programs that run at the same addresses each time: ptxas 13 orders some kernels by addresses.

Seen with CUDA 13.0: one source, compiled eight times in one folder, gave three different loops, and one with fixed
addresses. Two builds of one source would differ in speed for no reason that its author could see. In another folder
the code may still differ: names of internal symbols hold a hash of the path, and ptxas orders by names, too.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_ASK, _NO_RANDOMISATION = 0xFFFFFFFF, 0x0040000  # personality(2)


@contextmanager
def fixed() -> Iterator[bool]:
    """Programs that this thread starts inside have no address randomisation; False where that is forbidden.

    Some containers forbid it; the programs run as ever then.
    """
    libc = ctypes.CDLL(None)
    before = libc.personality(_ASK)
    done = before >= 0 and libc.personality(before | _NO_RANDOMISATION) >= 0
    try:
        yield done
    finally:
        if done:
            libc.personality(before)
