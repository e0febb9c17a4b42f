"""Opcodes and source lines in the listing of nvdisasm."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warplog.parsers.line_table import Place, functions, parse

CUBIN = Path(__file__).parents[3] / "data" / "parsers" / "triton_scale.cubin"

LISTING = """\
	.target	sm_90

//--------------------- .text._Z1kPf --------------------------
	.section	.text._Z1kPf,"ax",@progbits
	.align	128
        .global         _Z1kPf
_Z1kPf:
.text._Z1kPf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/src/a folder/k.cu", line 3
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR6][R2.64] ;
        /*0020*/               @P1 STS [R11+0x20], R2 ;
	//## File "/src/wide.cuh", line 12
        /*0030*/                   UTMALDG.2D [UR8], [UR4], desc[UR6] ;
.L_x_0:
        /*0040*/                   BRA `(.L_x_0);
.L_x_1:

//--------------------- .text.other --------------------------
	.section	.text.other,"ax",@progbits
.text.other:
        /*0000*/                   EXIT ;
	.section	.nv.constant0.other,"a",@progbits
"""


def test_each_instruction_has_its_opcode_and_the_line_that_precedes_it():
    assert parse(LISTING) == {
        "_Z1kPf": {
            0: Place("LDC", "", 0),
            16: Place("LDG.E.128.CONSTANT", "/src/a folder/k.cu", 3),
            32: Place("STS", "/src/a folder/k.cu", 3),
            48: Place("UTMALDG.2D", "/src/wide.cuh", 12),
            64: Place("BRA", "/src/wide.cuh", 12),
        },
        "other": {0: Place("EXIT", "", 0)},
    }


def test_what_is_no_listing_has_no_kernels():
    assert parse("") == parse("nvdisasm fatal : Invalid file\n /*0010*/ EXIT ;") == {}


def test_functions_have_the_numbers_of_the_symbol_table():
    """`readelf -s` gives `scale`, a function, the number 10."""
    cubin = CUBIN.read_bytes()
    assert functions(cubin, ["scale", "other"]) == [10]
    assert functions(cubin, ["scal", "cale", ".text.scale"]) == []


def test_sections_beyond_the_end_are_refused():
    cubin = bytearray(CUBIN.read_bytes())
    cubin[40:48] = b"\xff" * 8
    with pytest.raises(ValueError, match="a table lies beyond its end"):
        functions(bytes(cubin), ["scale"])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_cubin_has_other_functions_or_is_refused(data):
    cubin = bytearray(CUBIN.read_bytes()[: data.draw(st.integers(0, 20_000))])
    start = int.from_bytes(CUBIN.read_bytes()[40:48], "little")
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.one_of(st.integers(0, 63), st.integers(start, start + 2000)))
        if place < len(cubin):
            cubin[place] = data.draw(st.integers(0, 255))
    try:
        found = functions(bytes(cubin), ["scale"])
    except ValueError:
        found = []
    assert all(index >= 0 for index in found)
