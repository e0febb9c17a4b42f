"""The hot loops of parent and child: aligned, and what is counted in them; every number is computed by hand."""

import math

import pytest

from warplog.analysis import sass_steps
from warplog.analysis.sass_steps import HotInstruction, Loop, align, bank_conflicts, hot_loops, summary
from warplog.parsers.instruction import parse

NAIVE = """LDG.E R4, desc[UR4][R2.64]
LDG.E R5, desc[UR4][R6.64]
IADD3 R0, R0, 0x1, RZ
FFMA R8, R4, R5, R8
@P0 BRA 0x10"""
TILED = """LDG.E.128 R4, desc[UR4][R2.64]
STS.128 [R20], R4
BAR.SYNC.DEFER_BLOCKING 0x0
LDS.64 R12, [R21]
LDS R14, [R22]
FFMA R8, R12.reuse, R14, R8
FFMA R9, R12, R13, R9
IADD3 R0, R0, 0x1, RZ
@P1 BRA 0x40"""


def loop(text, **facts):
    return Loop(tuple(HotInstruction(parse(line)) for line in text.splitlines()), **facts)


def pairs(before, after):
    return [(pair.kind, pair.before, pair.after) for pair in align(loop(before), loop(after))]


def changes(before, after):
    """Each quantity before and after, by what it is counted for."""
    counted = {}
    for quantity, per, *values in summary(before, after):
        counted.setdefault(per, {})[quantity] = tuple(values)
    return counted


def test_equal_loops_match_whatever_registers_and_addresses_they_have():
    moved = NAIVE.replace("R4", "R40").replace("UR4", "UR8").replace("0x10", "0x20").replace("P0", "P3")
    assert pairs(NAIVE, moved) == [("same", place, place) for place in range(5)]


def test_what_was_widened_is_changed_and_what_was_put_in_is_new():
    before = "LDS R4, [R2]\nFFMA R8, R4, R5, R8\nMOV R1, R2\n@P0 BRA 0x0"
    after = "LDS.128 R4, [R2]\nFFMA R8, R4, R5, R8\nFFMA R9, R6, R7, R9\n@P0 BRA 0x0"
    assert pairs(before, after) == [
        ("changed", 0, 0),
        ("same", 1, 1),
        ("gone", 2, None),
        ("new", None, 2),
        ("same", 3, 3),
    ]


def test_another_modifier_makes_an_integer_instruction_another_one():
    assert pairs("IMAD.WIDE R2, R3, 0x4, R4", "IMAD.MOV.U32 R2, RZ, RZ, R4") == [
        ("gone", 0, None),
        ("new", None, 0),
    ]


def test_rare_instructions_decide_which_of_many_equal_ones_belong_together():
    """The two FFMA before the barrier are paired although one behind it would give as many pairs."""
    many = "\n".join(["FFMA R8, R4, R5, R8"] * 30)
    before, after = f"{many}\nBAR.SYNC 0x0\nLDS R4, [R2]", f"BAR.SYNC 0x0\nLDS R4, [R2]\n{many}"
    kinds = [pair.kind for pair in align(loop(before), loop(after))]
    assert (kinds.count("same"), kinds.count("gone"), kinds.count("new")) == (30, 2, 2)
    before, after = f"BAR.SYNC 0x0\n{many}", f"{many}\nBAR.SYNC 0x0\n{many}"
    assert ("same", 0, 30) in pairs(before, after)


def test_every_instruction_is_in_the_alignment_once_and_in_order():
    for before, after in ((NAIVE, TILED), (TILED, NAIVE), (NAIVE, "EXIT"), ("EXIT", TILED)):
        aligned = align(loop(before), loop(after))
        assert [pair.before for pair in aligned if pair.before is not None] == list(
            range(len(before.splitlines()))
        )
        assert [pair.after for pair in aligned if pair.after is not None] == list(
            range(len(after.splitlines()))
        )


def test_swapped_loops_are_aligned_alike():
    there, back = pairs(NAIVE, TILED), pairs(TILED, NAIVE)
    assert [(kind, b, a) for kind, a, b in back if kind in ("same", "changed")] == [
        pair for pair in there if pair[0] in ("same", "changed")
    ]


def test_loops_of_thousands_of_instructions_are_aligned():
    tile = "\n".join(["LDS.128 R4, [R2]", *["FFMA R8, R4, R5, R8"] * 31])
    aligned = align(loop("\n".join([tile] * 128)), loop("\n".join([tile] * 130)))
    assert sum(pair.kind == "same" for pair in aligned) == 128 * 32
    assert sum(pair.kind == "new" for pair in aligned) == 2 * 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FFMA R1, R2, R4, R6", [True]),  # three even registers
        ("FFMA R1, R3, R5, R7", [True]),  # three odd ones
        ("FFMA R1, R2, R4, R7", [False]),
        ("FFMA R1, R2, R2, R6", [False]),  # two registers to read
        ("FFMA R1, R2, c[0x0][0x160], R6", [False]),
        ("FFMA R1, R2, UR4, R6", [False]),
        ("FFMA R1, R2, R4, RZ", [False]),
        ("FFMA R1, R2.reuse, R5, R6\nFFMA R3, R2, R4, R8", [False, False]),  # R2 is in the reuse cache
        ("FFMA R1, R2.reuse, R5, R6\nFFMA R3, R4, R2, R8", [False, True]),  # but in another position
        ("FFMA R1, R2.reuse, R5, R6\nFFMA R3, R10, R4, R8", [False, True]),  # but another register
        ("FFMA R1, R2.reuse, R5, R6\nMOV R0, R9\nFFMA R3, R2, R4, R8", [False, False, True]),  # but too late
        ("FFMA R1, R2.reuse, R4, R6", [True]),  # its own operand is read
        ("IMAD R1, R2, R4, R6", [False]),  # counted for FFMA only
    ],
)
def test_an_ffma_conflicts_if_it_reads_three_registers_of_one_bank(text, expected):
    assert list(bank_conflicts(loop(text))) == expected


def test_counts_are_per_iteration_and_per_ffma():
    counts = changes(loop(NAIVE), loop(TILED))
    assert counts["iteration"] == {
        "instructions": (5, 9),
        "ffma": (1, 2),
        "integer": (1, 1),
        "sync": (1, 2),
        "ldg": (2, 1),
        "ldg_32": (2, 0),
        "ldg_128": (0, 1),
        "sts": (0, 1),
        "sts_128": (0, 1),
        "lds": (0, 2),
        "lds_32": (0, 1),
        "lds_64": (0, 1),
        "reuse_flags": (0, 1),
        "bank_conflicts": (0, 1),  # R12, R14, R8; in naive R4, R5, R8
    }
    assert counts["ffma"]["instructions"] == (5, 4.5)
    assert counts["ffma"]["lds"] == (0, 1)
    assert counts["ffma"]["reuse_flags"] == (0, 0.5)
    assert "ffma" not in counts["ffma"]
    assert all(math.isnan(share) for share in counts["kernel"]["sample_share"])


def test_rarely_executed_instructions_count_as_often_as_they_run():
    code = [
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R2", 80.0),
        ("FFMA R1, R2, R3, R1", 80.0),
        ("NANOSLEEP 0x10", 20.0),
    ]
    instructions = tuple(HotInstruction(parse(text), executed) for text, executed in code)
    polling = Loop(instructions, iterations=80.0)
    assert changes(polling, polling)["iteration"]["instructions"] == (2.25, 2.25)
    assert changes(polling, polling)["iteration"]["sync"] == (1.25, 1.25)


@pytest.mark.parametrize(
    ("before", "after", "unit"),
    [
        ("HMMA.16816.F32 R4, R8, R12, R4", "HMMA.16816.F32 R4, R8, R12, R4\nFFMA R1, R2, R3, R1", "hmma"),
        ("HMMA.16816.F32 R4, R8, R12, R4", "HMMA.1688.F32 R4, R8, R12, R4", ""),
        ("FFMA R1, R2, R3, R1", "HMMA.16816.F32 R4, R8, R12, R4\nFFMA R1, R2, R3, R1", ""),
        ("DFMA R2, R4, R6, R2", "DADD R2, R4, R6\nDFMA R2, R4, R6, R2", "double"),
        ("LDG.E R4, [R2.64]\nSTG.E [R6.64], R4", "LDG.E.128 R4, [R2.64]\nSTG.E.128 [R6.64], R4", "word"),
        (
            "LDG.E R4, [R2.64]\nFFMA R1, R2, R3, R1" + "\nMOV R1, R2" * 7,
            "LDG.E R4, [R2.64]\nFFMA R1, R2, R3, R1",
            "word",
        ),
        ("MOV R1, R2", "MOV R1, R2", ""),
    ],
)
def test_the_unit_of_work_is_one_that_both_loops_have(before, after, unit):
    assert {*changes(loop(before), loop(after))} == {"kernel", "iteration", *([unit] if unit else [])}


def test_a_wider_load_takes_fewer_instructions_for_a_word():
    counts = changes(
        loop("LDG.E R4, [R2.64]\nSTG.E [R6.64], R4"), loop("LDG.E.128 R4, [R2.64]\nSTG.E.128 [R6.64], R4")
    )
    assert counts["word"]["instructions"] == (2, 0.5)
    assert counts["word"]["stg"] == (1, 0.25)


def test_a_loop_and_code_outside_of_loops_are_compared_per_unit_of_work_only():
    straight = loop(NAIVE, iterates=False)
    assert {*changes(loop(NAIVE), straight)} == {"kernel", "ffma"}
    assert {*changes(straight, straight)} == {"kernel", "warp", "ffma"}


def rows(variant, text, number=0, **changed):
    """Rows of the table `instructions`: each instruction has 10 samples of the kernel's 200."""
    key = {
        "family": "sgemm",
        "variant": variant,
        "case": "64",
        "loop": number,
        "iterates": True,
        "iterations": 8,
    }
    facts = {
        "executed": 8,
        "samples": 10,
        "sample_share": 0.05,
        "stall": "wait",
        "stall_samples": 4,
        "file": "k.cu",
    }
    return [
        {**key, **facts, "place": place, "text": line, "line": 7, **changed}
        for place, line in enumerate(text.splitlines())
    ]


def test_loops_are_read_from_the_table_whatever_the_order_of_its_rows():
    table = [*rows("naive", TILED, 1), *rows("naive", NAIVE)]
    hottest, second = hot_loops(reversed(table))["sgemm", "naive", "64"]
    assert [instruction.code.opcode for instruction in hottest.instructions] == [
        parse(line).opcode for line in NAIVE.splitlines()
    ]
    assert (hottest.iterations, hottest.kernel_samples, hottest.sample_share) == (8, 200, 0.25)
    assert len(second.instructions) == 9
    assert (hottest.instructions[0].stall, hottest.instructions[0].stall_samples) == ("wait", 4)


LOADS, STORES = "LDG.E R4, [R2.64]\nSTS [R5], R4", "LDS R4, [R5]\nSTG.E [R2.64], R4\nMOV R1, R2"


def test_loops_that_do_the_same_are_compared_even_if_another_one_became_the_hottest():
    def sampled(text, samples):
        return Loop(tuple(HotInstruction(parse(line), samples=samples) for line in text.splitlines()))

    loads, stores, slow_loads, slow_stores = (
        sampled(LOADS, 5),
        sampled(STORES, 4),
        sampled(LOADS, 7),
        sampled(STORES, 9),
    )
    assert sass_steps.loop_pairs([slow_stores, slow_loads], [loads, stores]) == [
        (slow_loads, loads),
        (slow_stores, stores),
    ]
    assert sass_steps.loop_pairs([slow_loads, stores], [loads, stores]) == [(slow_loads, loads)]
    assert sass_steps.loop_pairs([slow_stores], [loads, stores]) == [(slow_stores, loads)]
    rare = sampled(LOADS, 1)
    assert sass_steps.loop_pairs([slow_stores, rare], [loads]) == [(slow_stores, loads)], "it is not as hot"


def test_a_step_has_rows_where_both_variants_have_a_loop_at_the_case():
    variants = [
        {"family": "sgemm", "variant": variant, "parent": parent}
        for variant, parent in (("naive", ""), ("tiled", "naive"), ("other", "missing"))
    ]
    table = [*rows("naive", NAIVE), *rows("naive", "EXIT", 1), *rows("tiled", TILED), *rows("other", NAIVE)]
    steps = sass_steps.rows([*table, *rows("tiled", TILED, case="128")], variants)
    assert {(row.variant, row.parent, row.case) for row in steps} == {("tiled", "naive", "64")}
    (share,) = (row for row in steps if row.quantity == "sample_share")
    assert (share.before, share.after, share.unit) == (25, pytest.approx(45), "%")
    (loads,) = (row for row in steps if (row.quantity, row.per) == ("lds", "ffma"))
    assert (loads.before, loads.after, loads.unit) == (0, 1, "")
    keys = [tuple(getattr(row, name) for name in row.KEYS) for row in steps]
    assert len(set(keys)) == len(keys)
    assert sass_steps.rows([], variants) == []
