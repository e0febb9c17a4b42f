"""Wavefronts of shared memory against what Nsight Compute counted of planted patterns on an H100."""

import numpy as np
import pytest

from warplog.metrics.banks import wavefronts

LANES = np.arange(32)
PAIRS, EVERY_OTHER = (
    LANES // 2,
    LANES // 4 * 2 + LANES % 2,
)  # lanes i and i ^ 1, or i and i ^ 2, share an element


def draw(seed, *calls):
    random = np.random.default_rng(seed)
    return [call(random) for call in calls]


# Which element each lane reads, and the wavefronts of elements of 4, 8 and 16 bytes.
PLANTED = [
    *zip(
        [
            LANES,
            2 * LANES,
            16 * LANES,
            LANES // 2,
            LANES % 8,
            LANES % 4 * 16 + LANES // 4,
            *draw(1, lambda random: random.permutation(32), lambda random: random.integers(0, 64, 32)),
        ],
        [(1, 2, 4), (2, 4, 8), (16, 32, 32), (1, 1, 2), (1, 2, 4), (2, 8, 16), (1, 4, 9), (2, 6, 11)],
        strict=True,
    ),
    *zip(
        [
            EVERY_OTHER,
            LANES // 8 * 4 + LANES % 4,
            np.where(LANES < 16, PAIRS, EVERY_OTHER),
            np.where(LANES < 16, PAIRS, 100 + LANES),
            *draw(
                1,
                lambda random: random.permutation(64)[PAIRS],
                lambda random: random.permutation(64)[EVERY_OTHER],
            ),
            LANES % 16,
            np.where(LANES // 8 % 2 == 0, PAIRS, 100 + LANES),
        ],
        [(1, 1, 2), (1, 2, 4), (1, 2, 2), (2, 2, 3), (2, 2, 7), (2, 4, 8), (1, 2, 4), (2, 3, 4)],
        strict=True,
    ),
]


def one(addresses, size, active=None, **kind):
    """Returns wavefronts, ideal and ways of a single request."""
    active = np.ones(32, bool) if active is None else active
    return tuple(int(value[0]) for value in wavefronts(np.array([addresses]), active[None], size, **kind))


@pytest.mark.parametrize("place", range(3), ids=["4 bytes", "8 bytes", "16 bytes"])
def test_planted_patterns_take_as_many_wavefronts_as_were_counted(place):
    size = (4, 8, 16)[place]
    elements = np.array([pattern for pattern, _ in PLANTED])
    found = wavefronts(elements * size, np.ones_like(elements, bool), size)
    assert found.taken.tolist() == [counted[place] for _, counted in PLANTED]
    assert (found.ideal <= found.taken).all()


def test_a_request_is_counted_alike_alone_and_among_others():
    elements = np.array([pattern for pattern, _ in PLANTED])
    active = np.ones_like(elements, bool)
    together = np.stack(wavefronts(elements * 16, active, 16), axis=1).tolist()
    assert together == [list(one(pattern * 16, 16)) for pattern in elements]


@pytest.mark.parametrize("size", [1, 2])
def test_lanes_that_read_parts_of_a_word_share_it(size):
    assert one(LANES * size, size) == (1, 1, 1)
    assert one(LANES * 128 + LANES % 4 // size * size, size) == (32, 1, 32), (
        "a column of 32 words in one bank"
    )


@pytest.mark.parametrize(("size", "most"), [(4, 1), (8, 2), (16, 4)])
def test_lanes_side_by_side_need_a_pass_for_every_128_bytes(size, most):
    assert one(LANES * size, size) == (most, most, 1)


def test_inactive_lanes_cost_nothing():
    conflicting = LANES * 128
    assert one(conflicting, 4, LANES < 3) == (3, 1, 3)
    assert one(LANES * 16, 16, LANES < 8) == (1, 1, 1)
    assert one(LANES * 16, 16, LANES == 31) == (1, 1, 1)


def test_a_matrix_of_eight_rows_takes_a_wavefront_unless_its_rows_share_banks():
    rows_apart = LANES % 8 * 16 + LANES // 8 * 128
    assert one(rows_apart, 16, matrices=True) == (4, 4, 1)
    assert one(rows_apart, 16, LANES < 16, matrices=True) == (2, 2, 1)
    assert one(LANES * 128, 16, matrices=True) == (32, 4, 8), "rows of 128 bytes: 8-way"
    assert one(LANES * 144, 16, matrices=True) == (4, 4, 1), "with 16 bytes of padding"


def test_passes_become_one_without_conflicts_only_if_they_do_with_them():
    """Four rows of 128 bytes, each for eight lanes: two passes together have a conflict; ideal 4 on an H100."""
    assert one(LANES // 8 * 128, 16) == (4, 4, 1)


def test_the_same_row_for_all_lanes_is_read_once_per_matrix():
    assert one(LANES * 0, 16, matrices=True) == (4, 4, 1)


def test_atomics_to_the_same_word_take_turns():
    """As many wavefronts as lanes, of which one would do without conflicts, as counted on an H100."""
    assert one(LANES * 0, 4) == (1, 1, 1)
    assert one(LANES * 0, 4, atomic=True) == (32, 1, 32)
    assert one(LANES % 8 * 4, 4, LANES < 16, atomic=True) == (2, 1, 2)
