"""One instruction of SASS: what it does, how wide it accesses memory, where it goes, what it reads."""

import pytest

from warplog.parsers.instruction import parse


def test_an_instruction_has_predicate_opcode_and_operands():
    one = parse("@!P0  LDG.E.128.CONSTANT R4, desc[UR4][R2.64+0x10] ;")
    assert (one.predicate, one.opcode, one.base) == ("@!P0", "LDG.E.128.CONSTANT", "LDG")
    assert one.operands == ("R4", "desc[UR4][R2.64+0x10]")


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("LDG.E R4, [R2.64]", 32),
        ("LDG.E.128.CONSTANT R4, desc[UR4][R2.64]", 128),
        ("LDG.E.U16.CONSTANT R4, desc[UR4][R2.64]", 16),
        ("LDG.E.64.STRONG.SYS R4, desc[UR4][R2.64]", 64),
        ("LDGSTS.E.BYPASS.LTC128B.128 [R3], desc[UR4][R2.64]", 128),
        ("LDS R4, [R2+0x64]", 32),
        ("STS.64 [R2], R4", 64),
        ("LDSM.16.M88.4 R4, [R2]", 128),
        ("LDSM.16.MT88.2 R4, [R2]", 64),
        ("LDSM.16.M88 R4, [R2]", 32),
        ("LDC.64 R4, c[0x0][0x210]", 0),
        ("FFMA R1, R2, R3, R4", 0),
    ],
)
def test_the_width_of_an_access_follows_from_its_modifiers(text, bits):
    assert parse(text).bits == bits


@pytest.mark.parametrize(
    ("kind", "texts"),
    {
        "ffma": ["FFMA R1, R2, R3, R4", "FFMA.FTZ R1, R2, R3, R4"],
        "hmma": ["HMMA.16816.F32.BF16 R4, R8, R12, R4"],
        "hgmma": ["HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24, gsb0"],
        "ldg": ["LDG.E R4, [R2.64]"],
        "ldgsts": ["LDGSTS.E [R3], [R2.64]"],
        "tma": ["UTMALDG.2D [UR8], [UR4]", "UBLKCP [UR8], [UR4], UR6"],
        "half": ["HFMA2.BF16_V2 R1, R2, R3, R4", "HADD2.F32 R1, -RZ, R2.H0_H0"],
        "integer": [
            *("IMAD.WIDE R2, R3, 0x4, R4", "UIADD3 UR4, UR4, 0x1, URZ", "MOV R1, R2", "LDC R1, c[0x0][0x28]"),
            *("S2UR UR4, SR_CTAID.X", "LEA.HI.X R5, R2, R7, R3, 0x2, P0", "R2UR UR4, R2"),
            "HFMA2.MMA R1, -RZ, RZ, 0, 0",  # a constant
        ],
        "sync": [
            "BAR.SYNC.DEFER_BLOCKING 0x0",
            "@P0 BRA 0x80",
            "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2",
        ],
        "other": ["TLD.LZ R1, R2, UR4"],
    }.items(),
)
def test_instructions_are_told_apart_by_what_they_do(kind, texts):
    assert {parse(text).kind for text in texts} == {kind}


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("FFMA R1, R2, R3.reuse, R4", "FFMA R9, R8.reuse, R7, R6"),
        ("@P0 LDG.E R4, desc[UR4][R2.64+0x10]", "LDG.E R6, desc[UR8][R2.64+-0x20]"),
        ("LEA R12, P3, R10, UR8, 0x2", "LEA R13, P1, R11, UR9, 0x3"),
        ("BRA 0x80", "BRA 0x1230"),
    ],
)
def test_the_shape_leaves_out_registers_addresses_and_constants(text, other):
    assert parse(text).shape == parse(other).shape


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("LDS R4, [R2]", "LDS.128 R4, [R2]"),
        ("FFMA R1, R2, R3, R4", "FFMA R1, R2, c[0x0][0x210], R4"),
        ("FFMA R1, R2, R3, R4", "FFMA R1, R2, R3, RZ"),
    ],
)
def test_the_shape_keeps_modifiers_and_kinds_of_operands(text, other):
    assert parse(text).shape != parse(other).shape


@pytest.mark.parametrize(
    ("text", "target", "goes_on"),
    [
        ("BRA 0x80", 0x80, False),
        ("@!P1 BRA 0x80", 0x80, True),
        ("BRA.DIV UR4, 0x80", 0x80, True),
        ("BRA `(.L_x_0) 0x480", 0x480, False),
        ("@P0 BRA.U.ANY 0x80", 0x80, True),
        ("BRX R2 -0x80", None, False),
        ("EXIT", None, False),
        ("@P0 EXIT", None, True),
        ("BSSY B0, 0x80", None, True),
        ("CALL.REL.NOINC 0x80", None, True),
    ],
)
def test_control_goes_to_the_target_of_a_branch_or_on(text, target, goes_on):
    one = parse(text)
    assert (one.target, one.goes_on) == (target, goes_on)


def test_source_registers_are_numbered_and_counted_as_reused():
    one = parse("FFMA R9, -R8.reuse, |R7|, R10.reuse")
    assert (one.sources, one.reused) == ((8, 7, 10), 2)
    assert parse("FFMA R9, R8, c[0x0][0x160], RZ").sources == (8, None, None)
    assert parse("FFMA R9, UR8, 3, R7").sources == (None, None, 7)


@pytest.mark.parametrize(
    ("text", "written", "read"),
    [
        ("FFMA R9, -R8.reuse, |R7|, R9", "R9", "R7 R8 R9"),
        ("@!P1 LDG.E.128 R4, desc[UR4][R2.64+0x10]", "R4 R5 R6 R7", "P1 UR4 R2 R3"),
        ("STG.E.64 desc[UR4][R2.64], R6", "", "UR4 R2 R3 R6 R7"),
        ("ISETP.GE.AND P0, PT, R3, UR10, PT", "P0", "R3 UR10"),
        ("SHFL.BFLY PT, R9, R6, 0x1, 0x1f", "R9", "R6"),
        ("ATOMG.E.ADD.STRONG.GPU PT, R4, desc[UR4][R2.64], R5", "R4", "UR4 R2 R3 R5"),
        ("RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", "", "UR4 R2 R3 R5"),
        ("IMAD.WIDE.U32 R10, R4, 0x4, R6", "R10 R11", "R4 R6"),
        ("LDC.64 R12, c[0x0][0x210]", "R12 R13", ""),
        ("CS2R R12, SRZ", "R12 R13", ""),
        ("DADD R12, R2, R4", "R12 R13", "R2 R4"),
        ("SHF.L.U64.HI R12, R2, 0x2, R3", "R12", "R2 R3"),
        ("IADD3 R10, P3, P4, R4, R5, RZ", "R10 P3 P4", "R4 R5"),
        ("LEA R14, P4, R10, UR8, 0x2", "R14 P4", "R10 UR8"),
        ("UIADD3 UR10, UP0, UR10, 0x100, URZ", "UR10 UP0", "UR10"),
        ("IADD3.X R11, R5, R7, RZ, P3, P4", "R11", "R5 R7 P3 P4"),
        ("LOP3.LUT P0, R4, R5, 0x3, RZ, 0xc0, !PT", "P0 R4", "R5"),
        ("PLOP3.LUT P0, PT, P1, P2, PT, 0x8, 0x0", "P0", "P1 P2"),
        ("VOTE.ANY R4, PT, P2", "R4", "P2"),
        ("@P0 BRA 0x10", "", "P0"),
        ("LDC R1, c[0x0][0x28]", "R1", ""),
        ("BAR.SYNC.DEFER_BLOCKING 0x0", "", ""),
    ],
)
def test_an_instruction_writes_its_target_and_reads_the_rest(text, written, read):
    one = parse(text)
    assert (one.written, one.read) == (frozenset(written.split()), frozenset(read.split()))


@pytest.mark.parametrize("text", ["", " ; ", "@P0", "\0", "BRA", "FFMA ,,, "])
def test_any_text_is_read(text):
    one = parse(text)
    assert isinstance(one.shape + one.kind + one.base, str)
    assert (one.bits, one.target) == (0, None)
    assert isinstance(one.written | one.read, frozenset)
