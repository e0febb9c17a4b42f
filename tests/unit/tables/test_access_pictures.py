"""Rows of the tables that figures of traced accesses read."""

from msgspec.structs import replace

from traced_tables import ldmatrix, owners, record
from warplog.records.measured import Absent
from warplog.tables.traced import pictures


def rows(made, table):
    return [row for name, row in pictures.rows(made) if name == table]


def test_of_the_instructions_of_a_line_the_one_with_most_conflicts_has_a_row_per_active_lane():
    plain, free = ldmatrix(lambda lane: 64 * lane), ldmatrix(lambda lane: 16 * lane)
    idle = replace(plain.example, addresses=(-1, *plain.example.addresses[1:]))
    found = rows(record([replace(free, offset=0), replace(plain, offset=16, example=idle)]), "access_lanes")
    assert {row["offset"] for row in found} == {16}
    assert [(row["lane"], row["address"]) for row in found] == [(lane, 64 * lane) for lane in range(1, 32)]
    assert {(row["wavefronts"], row["wavefronts_ideal"], row["ways"]) for row in found} == {
        (64 * 16, 64 * 4, 4)
    }


def test_equal_instructions_of_a_line_are_summed_over_launches_too():
    conflict, free = ldmatrix(lambda lane: 64 * lane), ldmatrix(lambda lane: 16 * lane)
    unrolled = [replace(conflict, offset=16 * n) for n in range(2)]
    again = replace(conflict, launch=1)
    found = rows(record([*unrolled, again, replace(free, offset=160)]), "access_lanes")
    assert {(row["requests"], row["wavefronts"], row["wavefronts_ideal"]) for row in found} == {
        (192, 3072, 768)
    }
    assert {row["sectors"] for row in found} == {None}


def test_runs_of_a_thread_end_with_the_row_of_the_tile():
    two = owners((4, 4), (2, 4), lambda row, column: row * 4 + column)
    one = replace(two, threads=((7, 6), (-1, 2)))
    found = rows(record(owners=one), "access_owners")
    assert [(row["thread"], row["row"], row["column"], row["elements"]) for row in found] == [
        (7, 0, 0, 4), (7, 1, 0, 2),
    ]  # fmt: skip
    assert [row["first_row"] for row in rows(record(owners=one), "access_tiles")] == [0, 2]


def test_numbers_that_no_trace_can_have_become_no_rows():
    made = owners((4, 4), (2, 4), lambda row, column: 0)
    first, second = made.tiles
    for tile in (replace(first, rows=(0, 10**12)), replace(first, rows=(2, 0), columns=(4, 0))):
        assert rows(record(owners=replace(made, tiles=(tile, second))), "access_owners") == []
    wide = ldmatrix(lambda lane: 16 * lane)
    assert (
        rows(record([replace(wide, example=replace(wide.example, size_bytes=10**15))]), "access_lanes") == []
    )


def test_a_variant_without_a_record_has_no_rows():
    assert list(pictures.rows(Absent(status="missing", reason="not traced"))) == []
