from pathlib import Path

import pytest

from warplog.core.errors import WarplogError
from warplog.parsers import sass

DATA = Path(__file__).parents[2] / "data" / "parsers"
ONE, TWO = (DATA / "sass_sm90.txt").read_text(), (DATA / "sass_two_archs.txt").read_text()


def test_opcodes_are_counted_with_their_modifiers_and_without_predicates():
    wide = sass.parse(ONE)["wide"]
    assert wide["LDG.E.128.CONSTANT"] == wide["STS.128"] == wide["LDS.128"] == wide["STG.E.128"] == 1
    assert wide["EXIT"] == 2  # one of them is predicated
    assert wide["BRA"] == 1  # the predicated one, not the one behind the last EXIT
    assert not any("P0" in opcode for opcode in wide)


def test_padding_is_no_instruction():
    assert sass.parse(ONE)["empty"] == {"LDC": 1, "EXIT": 1}
    assert sum(sass.parse(ONE)["wide"].values()) == 31


def test_a_nop_within_the_code_counts():
    text = (
        "\tcode for sm_90\n\t\tFunction : k\n"
        "        /*0000*/                   NOP;   /* 0x1 */\n"
        "        /*0010*/             @!UP1 BRA 0x0 ;   /* 0x1 */\n"
        "        /*0020*/          HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24, gsb0 ;   /* 0x1 */\n"
        "        /*0030*/                   EXIT ;   /* 0x1 */\n"
        "        /*0040*/                   BRA 0x40;   /* 0x1 */\n"
        "        /*0050*/                   NOP;   /* 0x1 */\n"
    )
    assert sass.parse(text) == {"k": {"NOP": 1, "BRA": 1, "HGMMA.64x256x16.F32.BF16": 1, "EXIT": 1}}


def test_one_architecture_is_chosen_where_a_library_holds_several():
    assert sass.targets(TWO) == ("sm_80", "sm_90")
    assert sass.parse(TWO, "sm_90")["wide"] == sass.parse(ONE)["wide"]
    assert sass.parse(TWO, "sm_80")["wide"] != sass.parse(ONE)["wide"]
    with pytest.raises(WarplogError, match="sm_80, sm_90"):
        sass.parse(TWO)
    with pytest.raises(WarplogError, match="sm_120"):
        sass.parse(TWO, "sm_120")


def test_a_prefix_matches_whole_words():
    counts = {"LDG.E": 2, "LDG": 1, "LDGSTS.E": 4, "LD": 8}
    assert sass.matching(counts, "LDG") == 3
    assert sass.matching(counts, "LDGSTS") == 4


def test_text_without_code_has_no_kernels():
    assert sass.parse("") == {}
    assert sass.parse("cuobjdump info    : File has no device code") == {}


def test_the_instructions_of_a_kernel_are_those_of_the_longest_function_with_its_name():
    dump = """\
\tcode for sm_90
\t\tFunction : _Z4copyILb1EEvPf
        /*0000*/                   LDC R1, c[0x0][0x28] ;        /* 0x00000a00ff017b82 */
                                                                 /* 0x000fe20000000800 */
        /*0010*/              @!P0 LDG.E R2,   [R2.64] ;         /* 0x0000000402028981 */
\t\t..........
\t\tFunction : _Z4copyILb0EEvPf
        /*0000*/                   EXIT ;                        /* 0x000000000000794d */
\t\t..........
\t\tFunction : _Z5other
        /*0000*/                   EXIT ;                        /* 0x000000000000794d */
"""
    assert sass.instructions(dump, "copy") == ("0000  LDC R1, c[0x0][0x28]", "0010  @!P0 LDG.E R2, [R2.64]")
    assert sass.instructions(dump, "absent") == ()


def test_a_dump_without_one_of_its_instructions_is_refused():
    lines = ONE.splitlines(keepends=True)
    place = next(i for i, line in enumerate(lines) if "/*0040*/" in line)
    with pytest.raises(WarplogError, match="the instruction at 0050 is not in its place"):
        sass.check_whole("".join(lines[:place] + lines[place + 1 :]))
    sass.check_whole(ONE)
    sass.check_whole(TWO)
