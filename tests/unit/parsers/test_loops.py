"""Loops in SASS: by control flow, not by the position of branches."""

from warplog.parsers import sass
from warplog.parsers.loops import regions


def code(text):
    """Addresses and texts of a listing, an instruction a line; the address is 0x10 times its number."""
    return [(16 * number, line.strip()) for number, line in enumerate(text.strip().splitlines())]


def found(text):
    """Each region as head, places, and whether it iterates."""
    return [(region.head, list(region.places), region.iterates) for region in regions(code(text))]


def test_a_loop_goes_from_the_target_of_a_branch_back_to_the_branch():
    assert found(
        """S2R R0, SR_TID.X
        LDG.E R1, [R2.64]
        FFMA R3, R1, R1, R3
        @P0 BRA 0x10
        STG.E [R2.64], R3
        EXIT
        BRA 0x60
        NOP"""
    ) == [(0, [0, 4, 5], False), (1, [1, 2, 3], True)]


def test_code_without_a_branch_back_is_one_region_that_does_not_iterate():
    assert found("MOV R0, R1\n@P0 BRA 0x30\nMOV R1, R2\nEXIT") == [(0, [0, 1, 2, 3], False)]


def test_an_instruction_belongs_to_the_innermost_loop_around_it():
    assert found(
        """MOV R0, RZ
        MOV R1, RZ
        FADD R2, R2, R1
        @P0 BRA 0x20
        IADD3 R0, R0, 0x1, RZ
        @P1 BRA 0x10
        EXIT"""
    ) == [(0, [0, 6], False), (1, [1, 4, 5], True), (2, [2, 3], True)]


def test_two_branches_back_to_one_instruction_are_one_loop():
    assert found(
        """MOV R0, RZ
        FADD R2, R2, R1
        @P0 BRA 0x10
        IADD3 R0, R0, 0x1, RZ
        @P1 BRA 0x10
        EXIT"""
    ) == [(0, [0, 5], False), (1, [1, 2, 3, 4], True)]


def test_a_poll_behind_the_end_belongs_to_the_loop_that_it_returns_to():
    """ptxas places it there; its branch back to the middle of the loop is no loop of its own."""
    assert found(
        """S2R R0, SR_TID.X
        SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2
        @!P0 BRA 0x60
        HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24, gsb0
        @P1 BRA 0x10
        EXIT
        SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2
        @!P0 BRA 0x60
        BRA 0x30"""
    ) == [(0, [0, 5], False), (1, [1, 2, 3, 4, 6, 7, 8], True)]


def test_a_loop_that_repeats_an_instruction_for_each_thread_is_none():
    assert found(
        """MOV R0, RZ
        @P0 ELECT P1, URZ, PT
        UTMALDG.2D [UR4], [UR12]
        @P0 BRA.U.ANY 0x10
        FFMA R1, R2, R3, R1
        @P1 BRA 0x10
        EXIT"""
    ) == [(0, [0, 6], False), (1, [1, 2, 3, 4, 5], True)]


def test_a_loop_that_waits_for_a_flag_is_none_and_one_that_adds_up_what_it_loads_is_one():
    waits = "LD.E.STRONG.GPU R0, [R4.64]\nCCTL.IVALL\nISETP.NE.AND P0, PT, R0, RZ, PT\n@!P0 BRA 0x0\nEXIT"
    assert found(waits) == [(0, [0, 1, 2, 3, 4], False)]
    adds = "LD.E.STRONG.GPU R0, [R4.64]\nFADD R1, R1, R0\nISETP.NE.AND P0, PT, R0, RZ, PT\n@!P0 BRA 0x0\nEXIT"
    assert found(adds) == [(0, [4], False), (0, [0, 1, 2, 3], True)]


def test_nothing_and_branches_to_nowhere_are_no_loops():
    assert regions([]) == []
    assert found("BRA 0x7770") == [(0, [0], False)]


def test_the_time_for_endless_branches_is_bounded():
    assert regions([(16 * place, f"@P0 BRA {16 * (place // 2):#x}") for place in range(100_000)]) == []


def test_both_kinds_of_listings_give_the_same_loops():
    """cuobjdump prints offsets as targets, as in the texts of a report once they are relative to the kernel."""
    listing = "\tcode for sm_90\n\t\tFunction : k\n" + "".join(
        f"        /*{address:04x}*/                   {text} ;\n"
        for address, text in code("MOV R0, R1\nFADD R1, R1, R0\n@P0 BRA 0x10\nEXIT")
    )
    lines = (line.split(None, 1) for line in sass.instructions(listing, "k"))
    assert [region.places for region in regions([(int(a, 16), text) for a, text in lines])] == [
        (0, 3),
        (1, 2),
    ]
