"""Atomic operations on one address, of kernels whose answer is their index arithmetic."""

import numpy as np
import pytest

from made_up_accesses import A, C, Trace, traced
from warplog.metrics import contention
from warplog.metrics.accesses import Does, What
from warplog.metrics.contention import Contention, ContentionCounter
from warplog.parsers import access_trace
from warplog.tables.traced.accesses import traced_share

READ, ATOMIC = Does.READ, Does.READ | Does.WRITE | Does.ATOMIC
BINS, BLOCK, BLOCKS = 8, 64, 4
KEYS = (
    np.random.default_rng(7).integers(0, BINS, BLOCKS * BLOCK) ** 2 // BINS
)  # small keys are the most frequent


def keys(bx, by, x, y):
    return KEYS[bx * BLOCK + x]


def histogram(name, blocks=None):
    return Trace(name, (BLOCKS, 1), (BLOCK, 1), blocks)


def naive(**how):
    made = histogram("naive", **how)
    made.access("LDG.E", 3, What.GLOBAL, READ, 4, lambda bx, by, x, y: A + 4 * (bx * BLOCK + x))
    made.access("RED.E.ADD", 4, What.GLOBAL, ATOMIC, 4, lambda *at: C + 4 * keys(*at))
    return made


def privatized():
    made = histogram("privatized")
    made.access("ATOMS.ADD", 6, What.SHARED, ATOMIC, 4, lambda *at: 0x400 + 4 * keys(*at))
    made.access(
        "RED.E.ADD", 9, What.GLOBAL, ATOMIC, 4, lambda bx, by, x, y: np.where(x < BINS, C + 4 * x, -1)
    )
    return made


def atomics(folder, kernel):
    """Returns the kernel's record, and operations and lanes on one address of each of its atomics."""
    found = traced(folder, [kernel], [])
    assert all((one.same_address is None) == (one.kind != "atomic") for one in found.instructions)
    own = [one for one in found.instructions if one.kind == "atomic"]
    return found.kernels[0], {one.opcode: (one.same_address, one.same_address_lanes) for one in own}


def most(values):
    return int(np.unique(values, return_counts=True)[1].max())


def test_a_histogram_adds_as_often_to_a_bin_as_a_key_occurs(tmp_path):
    kernel, found = atomics(tmp_path, naive())
    assert found == {"RED.E.ADD": (most(KEYS), max(map(most, KEYS.reshape(-1, 32))))}
    assert kernel.same_address == most(KEYS)


def test_a_histogram_per_block_adds_once_per_block_to_a_bin_of_global_memory(tmp_path):
    kernel, found = atomics(tmp_path, privatized())
    assert found["RED.E.ADD"] == (BLOCKS, 1)
    assert found["ATOMS.ADD"][0] == max(map(most, KEYS.reshape(BLOCKS, BLOCK))), (
        "each block has bins of its own"
    )
    assert kernel.same_address == BLOCKS


@pytest.mark.parametrize(("words_apart", "operations"), [(0, 3 * BLOCKS * 2), (32, 3 * 2)])
def test_one_lane_per_warp_adds_to_a_word_of_all_blocks_or_of_its_own(words_apart, operations, tmp_path):
    made = histogram("global_add")
    word = lambda bx, by, x, y: np.where(x % 32 == 0, C + 4 * words_apart * bx, -1)  # noqa: E731
    for _ in range(3):  # the same instruction
        made.access("RED.E.ADD", 5, What.GLOBAL, ATOMIC, 4, word, offset=16)
    assert atomics(tmp_path, made)[1] == {"RED.E.ADD": (operations, 1)}


def test_instructions_of_an_unrolled_loop_are_counted_apart_and_in_the_kernel_together(tmp_path):
    made = naive()
    made.access("RED.E.ADD.1", 4, What.GLOBAL, ATOMIC, 4, lambda *at: C + 4 * keys(*at))
    kernel, found = atomics(tmp_path, made)
    assert {operations for operations, _ in found.values()} == {most(KEYS)}
    assert kernel.same_address == 2 * most(KEYS)


def test_of_some_blocks_the_share_that_is_counted_is_known(tmp_path):
    kernel, found = atomics(tmp_path, naive(blocks=(1, 2)))
    assert found["RED.E.ADD"][0] == kernel.same_address == most(KEYS[BLOCK : 3 * BLOCK])
    assert traced_share(kernel) == 0.5


@pytest.mark.parametrize(
    ("what", "space", "of_kernel"), [(What.REMOTE, "shared", BLOCKS), (What.BULK_GLOBAL, "global", None)]
)
def test_addresses_that_the_trace_does_not_tell_are_not_counted(what, space, of_kernel, tmp_path):
    """Shared memory of another block, and reductions of whole regions."""
    made = privatized()
    made.request(0, 0, 32, what, ATOMIC, 16, [C])
    found = traced(tmp_path, [made], [])
    (unknown,) = (one for one in found.instructions if one.offset == 32)
    assert (unknown.space, unknown.same_address, unknown.same_address_lanes) == (space, None, None)
    assert found.kernels[0].same_address == of_kernel


@pytest.fixture
def scattered(tmp_path):
    """Returns the requests of two atomics: one to two addresses, one to as many addresses as lanes."""
    made = histogram("scattered")
    made.access("RED", 0, What.GLOBAL, ATOMIC, 4, lambda bx, by, x, y: A + 4 * (x % 2))
    made.access("RED", 0, What.GLOBAL, ATOMIC, 4, lambda bx, by, x, y: C + 4 * (bx * BLOCK + x))
    (tmp_path / "trace").write_bytes(made.content())
    (kernel,) = access_trace.read(tmp_path / "trace")
    (requests,) = kernel.requests()
    return requests


def in_parts(requests):
    counter = ContentionCounter()
    for index in range(len(requests)):
        counter.add(requests.where(np.arange(len(requests)) == index))
    return counter


def test_counts_do_not_depend_on_the_parts_in_which_a_trace_is_read(scattered, monkeypatch):
    whole = ContentionCounter()
    whole.add(scattered)
    expected = {(0, "global"): Contention(BLOCKS * BLOCK // 2, 16), (16, "global"): Contention(1, 1)}
    assert whole.by_instruction() == expected
    monkeypatch.setattr(contention, "MOST_ADDRESSES", BLOCKS * BLOCK + 2)
    counter = in_parts(scattered)
    assert counter.by_instruction() == expected
    assert counter.of_kernel() == whole.of_kernel() == BLOCKS * BLOCK // 2


def test_an_atomic_with_more_addresses_than_fit_is_given_up_and_others_are_not(scattered, monkeypatch):
    monkeypatch.setattr(contention, "MOST_ADDRESSES", 100)
    counter = in_parts(scattered)
    assert list(counter.by_instruction()) == [(0, "global")]
    assert counter.of_kernel() is None
