"""Wavefronts of shared memory that requests of a warp take: 32 banks, each of which gives one word of 4 bytes a pass.

A request takes one pass over the warp if its lanes access up to 4 bytes, two over half a warp at 8 bytes and four over
a quarter at 16 bytes. Two neighbouring passes become one if in both together the lanes i and i ^ 1, or all lanes i and
i ^ 2, have equal addresses, and no bank has to give two words. Equal words of a pass are read once; atomics to the same
word take turns.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warplog.records.requested.accesses import WARP

BANKS, WORD = 32, 4
_WORDS = 1 << 22  # of the window of shared memory
# Metrics of a kernel: all wavefronts and those of conflicts, by addresses; what L1 had for shared memory, and in all.
WAVEFRONTS = ("shared_wavefronts", "shared_wavefronts_excess", "l1_shared_wavefronts", "l1_wavefronts")

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Wavefronts(NamedTuple):
    """Wavefronts of each request: as they are, without conflicts, and the most words of one bank in one pass."""

    taken: Ints
    ideal: Ints
    ways: Ints


def shared_wavefronts(values: Mapping[str, float]) -> tuple[float, float]:
    """Returns those without bank conflicts and those that conflicts add, together no more than L1 had; NaN if unknown.

    Addresses tell both, of which L1 has fewer where it serves lanes of a warp together.
    """
    whole, excess, *had = (values.get(name, math.nan) for name in WAVEFRONTS)
    of_l1 = next((count for count in had if count > 0), whole)
    ideal = min(whole - excess, of_l1)
    return ideal, min(excess, of_l1 - ideal)


def no_more_than_l1(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the metrics of shared memory that addresses tell, where L1 had fewer wavefronts; otherwise none."""
    ideal, conflicts = shared_wavefronts(values)
    taken = ideal + conflicts
    if not taken < values.get("shared_wavefronts", math.nan):
        return {}
    return {
        "shared_wavefronts": taken,
        "shared_wavefronts_ideal": ideal,
        "shared_wavefronts_excess": conflicts,
        "shared_conflict_ways": taken / ideal,
    }


def passes_of(size: int) -> int:
    """Returns the passes over a request of `size` bytes per lane; one of 3, 5, ... bytes takes as many as the next 2^n.

    An asynchronous copy of fewer bytes fills the rest with zeros.
    """
    return max((1 << (size - 1).bit_length()) // WORD, 1)


def wavefronts(
    addresses: Ints, active: Flags, size: int, *, matrices: bool = False, atomic: bool = False
) -> Wavefronts:
    """Returns the wavefronts of requests.

    Args:
        addresses: by request and lane, in bytes; those of inactive lanes have no meaning.
        active: whether a lane takes part, likewise.
        size: bytes per lane, at most 16.
        atomic: whether each lane has a turn of its own.
        matrices: whether 8 lanes address the rows of a matrix (ldmatrix, stmatrix): passes do not become one.
    """
    passes = passes_of(size)
    requests = len(addresses)
    shape = requests * passes, WARP // passes
    own, takes_part = addresses.reshape(shape), active.reshape(shape)
    fullest = _fullest(own, takes_part, passes, atomic).reshape(requests, passes)
    taken, ideal, ways = fullest.sum(1), np.count_nonzero(fullest, axis=1), fullest.max(1)
    if passes == 1 or matrices or atomic:
        return Wavefronts(taken, ideal, ways)
    shape = requests * passes // 2, WARP // passes * 2
    own, takes_part = addresses.reshape(shape), active.reshape(shape)
    pairs = np.flatnonzero(_in_pairs(own, takes_part) & (fullest.reshape(-1, 2) > 0).all(1))
    merged = _fullest(own[pairs], takes_part[pairs], passes, atomic)
    of = pairs[merged == 1] // (passes // 2)
    np.subtract.at(ideal, of, 1)
    np.subtract.at(taken, of, 1)
    return Wavefronts(taken, ideal, ways)


def _in_pairs(addresses: Ints, active: Flags) -> Flags:
    """Returns whether all lanes i have the address of lane i ^ 1, or all that of lane i ^ 2."""
    lanes = np.arange(addresses.shape[1])
    first, second = (
        ((addresses == addresses[:, lanes ^ step]) | ~active | ~active[:, lanes ^ step]).all(1)
        for step in (1, 2)
    )
    either: Flags = first | second
    return either


def _fullest(addresses: Ints, active: Flags, words: int, atomic: bool) -> Ints:
    """Returns the number of words of the fullest bank in each row, distinct ones unless atomic; 0 without a lane."""
    rows, lanes = addresses.shape
    first = (addresses // WORD % _WORDS).astype(np.int32)
    word = (first[:, :, None] + np.arange(words, dtype=np.int32)).reshape(rows, lanes * words)
    key = np.where(np.repeat(active, words, axis=1), word % BANKS * _WORDS + word // BANKS, -1)
    key.sort(axis=1)
    new = key >= 0
    if not atomic:
        new[:, 1:] &= key[:, 1:] != key[:, :-1]
    row, column = np.nonzero(new)
    counts = np.bincount(row * BANKS + key[row, column] // _WORDS, minlength=rows * BANKS)
    fullest: Ints = counts.reshape(rows, BANKS).max(1, initial=0)
    return fullest
