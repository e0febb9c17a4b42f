"""What machine code tells: loads in flight, overlap, and instructions that wait for each other."""

import math

import pytest

from warplog.analysis.mechanisms.code import chases, dependent, loads_in_flight, overlapped, store_waits
from warplog.parsers.instruction import parse

LOAD = "LDG.E R{}, desc[UR4][R2.64]"
COPY = "LDGSTS.E.BYPASS.128 [R9], desc[UR4][R2.64]"
ADD = "FADD R1, R1, R{}"


def code(*texts):
    return [parse(text) for text in texts]


@pytest.mark.parametrize(
    ("most", "texts"),
    [
        (0, ["FADD R1, R2, R3"]),
        (1, [LOAD.format(4), ADD.format(4), LOAD.format(5), ADD.format(5)]),
        (2, [LOAD.format(4), LOAD.format(5), ADD.format(4), ADD.format(5)]),
        (3, [LOAD.format(4), LOAD.format(5), ADD.format(4), LOAD.format(6), LOAD.format(7), ADD.format(5)]),
        (1, [LOAD.format(4), "MOV R4, RZ", LOAD.format(5)]),  # an overwritten register is waited for, too
        (1, [LOAD.format(4), "EXIT", LOAD.format(5)]),
        (1, ["LDG.E.128 R4, desc[UR4][R2.64]", "FADD R1, R1, R7", LOAD.format(8)]),
        (1, ["LDG.E.64 R4, desc[UR4][R2.64]", "STG.E.64 desc[UR4][R8.64], R4", LOAD.format(6)]),
        (1, ["LDG.E.64 R4, desc[UR4][R2.64]", "LDG.E R8, desc[UR4][R4.64]"]),  # a pointer that was loaded
        (0, [COPY, COPY, "LDS R4, [R9]"]),
    ],
)
def test_loads_are_in_flight_until_one_of_their_registers_is_needed(most, texts):
    assert loads_in_flight(code(*texts), repeats=False) == most


@pytest.mark.parametrize(
    ("follows", "repeats", "texts"),
    [
        (True, True, ["LDG.E.64 R2, desc[UR4][R2.64]"]),  # in the next iteration
        (False, False, ["LDG.E.64 R2, desc[UR4][R2.64]"]),  # there is none
        (True, False, ["LDG.E R6, desc[UR4][R2.64]", "IMAD.WIDE R8, R6, 0x4, R4", "LDG.E R9, [R8.64]"]),
        (False, True, [LOAD.format(4), ADD.format(4), "IADD3 R2, R2, 0x20, RZ"]),
        (False, True, [LOAD.format(2), "MOV R2, R9"]),  # overwritten by what is not loaded
        (
            False,
            True,
            ["IMAD.WIDE R2, R9, 0x4, R6", LOAD.format(3)],
        ),  # both halves of an address are overwritten
        (False, True, ["LDC.64 R2, c[0x0][0x210]", LOAD.format(3)]),
        (
            False,
            True,
            [
                "IADD3 R2, P0, R9, 0x4, RZ",
                "@P0 LDG.E R4, desc[UR4][R2.64]",
                "ISETP.EQ.AND P0, PT, R4, RZ, PT",
            ],
        ),
    ],
)
def test_loads_follow_each_other_if_one_has_the_address_of_the_next(follows, repeats, texts):
    assert chases(code(*texts), repeats) == follows


def test_a_loop_that_loads_for_its_next_iteration_computes_meanwhile():
    ahead = code("FADD R1, R1, R4", LOAD.format(4), *["FFMA R6, R6, R7, R8"] * 6)
    waiting = code(LOAD.format(4), "FADD R1, R1, R4", *["FFMA R6, R6, R7, R8"] * 6)
    assert loads_in_flight(ahead, repeats=True) == loads_in_flight(waiting, repeats=True) == 1
    assert overlapped(ahead, [1] * 8) == 6 / 8
    assert overlapped(waiting, [1] * 8) == 0
    assert math.isnan(overlapped(waiting, [0] * 8))


@pytest.mark.parametrize(("left", "share"), [(1, 103 / 103), (0, 2 / 103)])
def test_copies_are_in_flight_until_their_group_is_waited_for(left, share):
    """The inner loop runs a hundred times for each copy."""
    loops = code(COPY, "LDGDEPBAR", f"DEPBAR.LE SB0, {left:#x}", "FFMA R6, R6, R7, R8")
    assert overlapped(loops, [1, 1, 1, 100]) == pytest.approx(share)


STORES = (
    "UBLKCP.G.S [UR8], [UR15], UR20",
    "UTMACMDFLUSH",
    "DEPBAR.LE SB0, 0x2",
    "CCTL.IVALL",
    "DEPBAR.LE SB0, 0x0",
)


def test_a_wait_for_bulk_stores_tells_how_many_stay_in_flight_and_stops_what_follows_it():
    left, share = store_waits(code(*STORES, "EXIT"), [9, 9, 3, 3, 1, 1], [4, 4, 1, 5, 2, 4])
    assert left == 6 / 4
    assert share == (1 + 5 + 2 + 4) / 20


@pytest.mark.parametrize("texts", [("EXIT",), STORES[2:], (*STORES, COPY, "LDGDEPBAR")])
def test_waits_are_for_bulk_stores_if_nothing_else_is_waited_for_in_groups(texts):
    ones = [1] * len(texts)
    assert all(map(math.isnan, store_waits(code(*texts), ones, ones)))


def test_waits_for_bulk_stores_that_were_not_sampled_are_unknown():
    left, share = store_waits(code(*STORES), [1] * 5, [0] * 5)
    assert left == 1
    assert math.isnan(share)


def test_the_overlap_of_bulk_copies_is_unknown():
    loop = code(LOAD.format(4), "UTMALDG.2D [UR8], [UR4]", "FFMA R6, R6, R7, R8")
    assert math.isnan(overlapped(loop, [1, 1, 1]))


@pytest.mark.parametrize(
    ("steps", "texts", "repeats"),
    [
        (1, ["FFMA R6, R6, R7, R8"], True),
        (2, ["FFMA R6, R6, R7, R8"] * 2, True),
        (1, ["FFMA R6, R6, R7, R8", "FFMA R9, R9, R7, R8"], True),  # two chains
        (1, ["FADD R6, R6, R9", "SHFL.BFLY PT, R9, R6, 0x1, 0x1f"], True),  # a shuffle is no arithmetic
        (0, ["FFMA R6, R7, R8, R10"], True),
        (3, ["IADD3 R1, R1, 0x1, RZ", "ISETP.NE.AND P0, PT, R1, R2, PT", "@P0 BRA 0x10"], True),
        (2, ["FFMA R6, R7, R8, R10", "FFMA R7, R6, R8, R10"], False),
    ],
)
def test_instructions_depend_on_each_other_by_registers_predicates_and_branches(steps, texts, repeats):
    assert dependent(code(*texts), repeats) == steps
