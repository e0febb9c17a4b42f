"""Counts of traced accesses against a plain count lane by lane, and who reads and writes what."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warplog.metrics.accesses import Counter, Does, Requests, What
from warplog.metrics.owners import Matrix, OwnerFinder
from warplog.metrics.reuse import ReuseCounter
from warplog.records.requested.accesses import Reuse

READ, WRITE = Does.READ, Does.WRITE
NONE = (0, 0)
WGMMA = ((What.WGMMA_A, 2048), (What.WGMMA_B, 8192))


def requests(*rows):
    """Returns requests, given as (block, warp, offset, what, does, [(address, size) of each lane])."""
    block, warp, offset, what, does, lanes = zip(*rows, strict=True)
    pairs = np.array([[*of, *[NONE] * (32 - len(of))] for of in lanes], np.int64)
    heads = (np.array(values, np.int64) for values in (block, warp, offset, what, does))
    return Requests(*heads, addresses=pairs[..., 0], sizes=pairs[..., 1])


def count(*rows, arrays=()):
    counter = Counter(arrays)
    for row in rows:
        counter.add(requests(row))
    return list(counter.tallies())


def plain(lanes):
    """Returns lanes, bytes, distinct bytes, sectors and ideal sectors of a request."""
    touched = {byte for address, size in lanes for byte in range(address, address + size)}
    sectors = {byte // 32 for byte in touched}
    bytes_ = sum(size for _, size in lanes)
    return (
        sum(size > 0 for _, size in lanes),
        bytes_,
        len(touched),
        len(sectors),
        math.ceil(len(touched) / 32),
    )


LANES = st.lists(
    st.tuples(st.integers(0, 300), st.sampled_from([0, 1, 2, 4, 8, 16])), min_size=1, max_size=32
).filter(lambda lanes: any(size for _, size in lanes))


@settings(max_examples=60, deadline=None)
@given(st.lists(LANES, min_size=1, max_size=8))
def test_sums_are_those_of_a_count_lane_by_lane(given_lanes):
    (found,) = count(*((0, 0, 16, What.GLOBAL, READ, lanes) for lanes in given_lanes))
    expected = np.array([plain(lanes) for lanes in given_lanes]).sum(0).tolist()
    assert found.requests == len(given_lanes)
    assert [found.lanes, found.bytes, found.distinct_bytes, found.sectors, found.sectors_ideal] == expected


@settings(max_examples=30, deadline=None)
@given(st.lists(LANES, min_size=1, max_size=9))
def test_the_example_is_a_request_of_the_median_cost(given_lanes):
    (found,) = count(*((n, 0, 16, What.GLOBAL, READ, lanes) for n, lanes in enumerate(given_lanes)))
    costs = [plain(lanes)[3] for lanes in given_lanes]
    assert costs[found.example.block] == sorted(costs)[(len(costs) - 1) // 2]


def test_the_example_has_no_address_where_a_lane_takes_no_part():
    (found,) = count((3, 2, 16, What.GLOBAL, READ, [(64, 4), (0, 0), (72, 8)]))
    assert (found.example.block, found.example.warp, found.example.size_bytes) == (3, 2, 8)
    assert found.example.addresses == (64, -1, 72, *[-1] * 29)


def test_instructions_are_told_apart_by_place_and_memory():
    both = [(0, 0, 32, What.ASYNC_FROM, READ, [(0, 16)]), (0, 0, 32, What.ASYNC_TO, WRITE, [(0, 16)])]
    found = count((0, 0, 48, What.SHARED, WRITE, [(0, 4)]), *both, (0, 0, 16, What.GLOBAL, 7, [(0, 4)]))
    assert [(one.offset, one.kind, one.what.space) for one in found] == [
        (16, "atomic", "global"),
        (32, "async_copy", "global"),
        (32, "async_copy", "shared"),
        (48, "store", "shared"),
    ]


def test_requests_that_touch_nothing_and_prefetches_are_left_out():
    assert count((0, 0, 16, What.ASYNC_FROM, READ, [NONE] * 32)) == []
    assert count((0, 0, 16, What.GLOBAL, Does.PREFETCH, [(0, 4)])) == []


def test_the_same_word_of_local_memory_is_side_by_side_for_all_lanes():
    spilled = [(40, 4)] * 32
    (word,) = count((0, 0, 16, What.LOCAL, WRITE, spilled))
    (four,) = count((0, 0, 16, What.LOCAL, WRITE, [(40, 16)] * 32))
    (apart,) = count((0, 0, 16, What.LOCAL, WRITE, [(4 * lane, 4) for lane in range(32)]))
    assert [(one.sectors, one.sectors_ideal) for one in (word, four, apart)] == [(4, 4), (16, 16), (32, 4)]


def test_a_warpgroup_reads_both_operands_once():
    """64 x 16 and 256 x 16 elements of 2 bytes: an H100 counts 20 wavefronts for each of the four warps."""
    a, b = ([(0, warp, 16, what, READ, [(1024, size)]) for warp in range(8)] for what, size in WGMMA)
    (found,) = count(*a, *b)
    assert (found.kind, found.requests, found.lanes) == ("wgmma", 8, 8)
    assert found.bytes == found.distinct_bytes == 2 * (2048 + 8192)
    assert (found.wavefronts, found.wavefronts_ideal, found.ways) == (8 * 20, 8 * 20, 1)
    assert count(*a) == [], "no wgmma is without its second operand"


def test_a_bulk_copy_is_one_region():
    (bulk,) = count((0, 0, 16, What.BULK_GLOBAL, READ, [(16, 4096)]))
    assert (bulk.kind, bulk.sectors, bulk.sectors_ideal) == ("bulk_copy", 129, 128)


def test_wavefronts_in_the_memory_of_another_block_are_left_out():
    rows = [
        (0, 0, 16, what, READ, [(4 * lane, 4) for lane in range(32)]) for what in (What.SHARED, What.REMOTE)
    ]
    (found,) = count(*rows)
    assert (found.what, found.requests, found.lanes, found.wavefronts) == (What.SHARED, 2, 64, 1)


def test_cache_lines_are_those_of_global_memory():
    lanes = [(256 * lane, 4) for lane in range(32)]
    found = count((0, 0, 16, What.GLOBAL, READ, lanes), (0, 0, 32, What.SHARED, READ, lanes))
    assert [one.lines for one in found] == [32, 0]
    assert [one.lines for one in count((0, 0, 16, What.GLOBAL, READ, [(120, 8), (128, 8)]))] == [2]


def copy(sources, targets, size=16):
    """Returns the tallies of source and target of an asynchronous copy; a negative source only fills with zeros."""
    read = [(max(address, 0), size if address >= 0 else 0) for address in sources]
    rows = (
        (0, 0, 16, What.ASYNC_FROM, READ, read),
        (0, 0, 16, What.ASYNC_TO, WRITE, [(address, size) for address in targets]),
    )
    return count(*rows)


ROWS = [4096 * (lane // 4) + 16 * (lane % 4) for lane in range(32)]  # eight rows of 64 bytes


def test_pieces_of_a_copy_are_those_of_sectors_on_both_sides():
    """Rows of 64 bytes, of 80 in shared memory, which is every other time off by 16: an H100 counts 24 and 15."""
    source, target = copy(ROWS, [80 * (lane // 4) + 16 * (lane % 4) for lane in range(32)])
    assert (source.sectors, source.lines, target.wavefronts) == (24, 8, 15)
    source, target = copy(ROWS, [16 * lane for lane in range(32)])
    assert (source.sectors, target.wavefronts, target.wavefronts_ideal) == (16, 8, 4)


def test_a_wavefront_of_a_copy_is_of_one_cache_line():
    """Sixteen rows of 32 bytes that become 512 bytes in a row: an H100 counts 16."""
    source, target = copy([512 * (lane // 2) + 16 * (lane % 2) for lane in range(32)], range(0, 512, 16))
    assert (source.sectors, target.wavefronts) == (16, 16)
    source, target = copy(range(0, 512, 16), range(0, 512, 16))
    assert (source.sectors, target.wavefronts) == (16, 4)


def test_a_wavefront_of_a_copy_has_one_piece_to_each_sector():
    source, target = copy([32 * lane for lane in range(4)], [4 * lane for lane in range(4)], size=4)
    assert (source.sectors, target.wavefronts, target.wavefronts_ideal) == (4, 4, 1)


def test_a_copy_that_only_fills_with_zeros_is_a_store():
    (target,) = copy([-1] * 32, range(0, 512, 16))
    assert (target.kind, target.wavefronts) == ("async_copy", 4)


def test_copies_of_different_warps_are_told_apart():
    """Their requests are mixed in the trace, and the last target is among the next requests."""
    lanes = [(512 * (lane // 2) + 16 * (lane % 2), 16) for lane in range(32)]
    flat = [(16 * lane, 16) for lane in range(32)]
    sources = [(0, warp, 16, What.ASYNC_FROM, READ, lanes if warp else flat) for warp in (0, 1)]
    targets = [(0, warp, 16, What.ASYNC_TO, WRITE, flat) for warp in (1, 0)]
    counter = Counter(())
    for some in ([sources[0]], [sources[1], targets[0]], [targets[1]]):
        counter.add(requests(*some))
    source, target = counter.tallies()
    assert (source.requests, source.sectors, target.wavefronts) == (2, 32, 16 + 4)


def test_a_source_without_a_target_is_counted_by_itself():
    (source,) = count((0, 0, 16, What.ASYNC_FROM, READ, [(16, 16), (32, 16)]))
    assert (source.requests, source.sectors) == (1, 2)


def test_atomics_that_add_up_equal_addresses_take_no_turns():
    counter = Counter((), merging=[32])
    counter.add(requests(*[(0, 0, at, What.SHARED, 7, [(64, 4)] * 32) for at in (16, 32)]))
    assert [one.wavefronts for one in counter.tallies()] == [32, 1]


def test_an_array_is_named_only_if_all_addresses_are_in_it():
    arrays = [range(2000, 3000), range(0, 1000)]
    inside = (0, 0, 16, What.GLOBAL, READ, [(996, 4), (0, 4)])
    beyond = (0, 0, 32, What.GLOBAL, READ, [(996, 8)])
    other = (0, 0, 48, What.GLOBAL, READ, [(2000, 4)])
    both = [(0, 0, 64, What.GLOBAL, READ, [(0, 4)]), (0, 0, 64, What.GLOBAL, READ, [(2000, 4)])]
    assert [one.array for one in count(inside, beyond, other, *both, arrays=arrays)] == [1, None, 0, None]
    assert [one.array for one in count(inside)] == [None], "without arrays"


def reuse(wave, *rows, first=0, blocks=4):
    counter = ReuseCounter(first, blocks)
    for row in rows:
        counter.add(requests(row))
    return counter.reuse(wave)


def test_reuse_tells_what_blocks_read_apart_from_what_they_read_together():
    rows = [
        (block, 0, 16, What.GLOBAL, READ, [(32 * sector, 4)])
        for block in range(4)
        for sector in (0, block, block)
    ]
    assert reuse(3, *rows) == Reuse(block_bytes=64, wave_blocks=3, wave_bytes=96, wave_bytes_of_blocks=160)
    assert reuse(9, *rows).wave_blocks == 4, "no more blocks than there are"
    moved = [(10 + block, *rest) for block, *rest in rows]
    assert reuse(3, *moved, first=10) == reuse(3, *rows)


def test_writes_are_no_reuse():
    assert reuse(2, (0, 0, 16, What.GLOBAL, WRITE, [(0, 4)])) is None
    assert reuse(0, (0, 0, 16, What.GLOBAL, READ, [(0, 4)])) is None, "unless it is known how many fit"


def test_owners_are_the_threads_of_the_first_block_and_the_boxes_of_all():
    finder = OwnerFinder(Matrix(address=1000, rows=4, columns=8, itemsize=4))
    place = lambda row, column: 1000 + 4 * (8 * row + column)  # noqa: E731
    finder.add(requests((5, 0, 16, What.GLOBAL, WRITE, [(place(2, 4), 16), (place(3, 4), 16)])))
    finder.add(requests((1, 1, 16, What.GLOBAL, WRITE, [(place(0, 0), 8), (place(1, 1), 4)])))
    finder.add(requests((1, 0, 16, What.GLOBAL, READ, [(place(0, 7), 4)])))
    found = finder.owners()
    assert list(found.blocks) == [1, 5]
    assert [list(box) for box in found.boxes] == [[0, 2, 0, 2], [2, 4, 4, 8]]
    assert found.threads.tolist() == [[32, 32], [-1, 33]]


def test_nobody_owns_what_is_not_written():
    finder = OwnerFinder(Matrix(address=1000, rows=4, columns=8, itemsize=4))
    finder.add(requests((0, 0, 16, What.GLOBAL, WRITE, [(996, 4), (1124, 8)])))
    assert finder.owners() is None
