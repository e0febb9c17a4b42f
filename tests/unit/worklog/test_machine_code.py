"""The machine code of a step on its page: two loops side by side, cold stretches folded, every text escaped."""

import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd

import warplog.worklog.html  # noqa: F401 - the package has a function of this name
from warplog.analysis import sass_steps
from warplog.analysis.sass_steps import HotInstruction, Loop
from warplog.parsers.instruction import parse
from warplog.tables import conclusions
from warplog.tables.conclusions import SassStep
from warplog.worklog.cells import Cells
from warplog.worklog.code import machine_code
from warplog.worklog.code.machine_code import by_variant

BEFORE = "LDG.E R4, desc[UR4][R2.64]\nLDS R5, [R6]\nFFMA R8, R4, R6, R8\n@P0 BRA 0x10"
AFTER = "LDG.E.128 R4, desc[UR4][R2.64]\nBAR.SYNC 0x0\nFFMA R8, R5.reuse, R7, R9\nFFMA R8, R10, R12, R8\n@P0 BRA 0x10"


def loop(text, samples=(), stall="wait"):
    """A loop of a kernel with 1000 samples; the last instructions have none."""
    lines = text.splitlines()
    counted = [*samples, *[0] * (len(lines) - len(samples))]
    pairs = zip(lines, counted, strict=True)
    instructions = tuple(
        HotInstruction(parse(line), 8, count, stall, count, "k.cu", number)
        for number, (line, count) in enumerate(pairs, 1)
    )
    return Loop(instructions, iterations=8, kernel_samples=1000)


def rows_of(before, after):
    return [
        SassStep("sgemm", "tiled", "naive", "64", 0, *change, "%" if change[1] == "kernel" else "")
        for change in sass_steps.summary(before, after)
    ]


def shown(before, after):
    return machine_code.machine_code(rows_of(before, after), before, after)


def texts(line):
    """What a line shows of both sides, without marks of conflicts."""
    return tuple(
        "".join(text for name, text in side.pieces if name != "bank") if side else ""
        for side in (line.before, line.after)
    )


def html(*codes):
    environment = sys.modules["warplog.worklog.html"]._environment()
    return str(environment.get_template("sass.html.j2").module.step(codes))


def test_what_is_gone_stands_beside_what_is_new_in_its_place():
    code = shown(loop(BEFORE), loop(AFTER))
    assert [(line.kind, *texts(line)) for line in code.lines] == [
        ("changed", "LDG.E R4, desc[UR4][R2.64]", "LDG.E.128 R4, desc[UR4][R2.64]"),
        ("other", "LDS R5, [R6]", "BAR.SYNC 0x0"),
        ("same", "FFMA R8, R4, R6, R8", "FFMA R8, R5.reuse, R7, R9"),
        ("other", "", "FFMA R8, R10, R12, R8"),
        ("same", "@P0 BRA 0x10", "@P0 BRA 0x10"),
    ]


def test_widths_reuse_and_bank_conflicts_are_marked():
    code = shown(loop(BEFORE), loop(AFTER))
    marked = [
        [(name, text) for name, text in side.pieces if name]
        for line in code.lines
        for side in (line.before, line.after)
        if side
    ]
    # In one bank are R4, R6, R8 of the parent; R5, R7, R9 and R10, R12, R8 of the variant.
    assert [mark for marks in marked for mark in marks] == [
        ("wide", ".128"),
        ("bank", "bank conflict"),
        ("reuse", ".reuse"),
        ("bank", "bank conflict"),
        ("bank", "bank conflict"),
    ]


def test_an_instruction_has_its_share_of_the_kernel_its_stall_and_its_line():
    code = shown(loop(BEFORE, [250, 5]), loop(AFTER, [10], "barrier"))
    first = code.lines[0]
    assert (first.before.share, first.before.stall, first.before.place) == (0.25, "wait", "k.cu:1")
    assert (first.after.share, first.after.stall) == (0.01, "barrier")
    assert code.largest == 0.25


def test_runs_are_folded_unless_they_are_hot_or_conflict():
    many = "\n".join(["FFMA R8, R4, R5, R8"] * 6)
    (folded, end) = shown(loop(f"{many}\n@P0 BRA 0x0", [2, 3]), loop(f"{many}\n@P0 BRA 0x0")).lines
    assert texts(folded) == ("6 × FFMA", "6 × FFMA")
    assert (folded.before.share, folded.after.share) == (0.005, 0)
    assert texts(end)[0] == "@P0 BRA 0x0"
    hot = shown(loop(many, [0, 0, 0, 10]), loop(many)).lines
    assert [texts(line)[0] for line in hot] == [
        "3 × FFMA",
        "FFMA R8, R4, R5, R8",
        *["FFMA R8, R4, R5, R8"] * 2,
    ]


def test_long_loops_fold_other_cold_instructions_too_and_name_the_most_frequent():
    kinds = [
        "LDS R4, [R2]",
        "FFMA R8, R4, R5, R8",
        "MOV R1, R2",
        "IADD3 R1, R1, 0x1, RZ",
        "FADD R8, R8, R9",
        "FMUL R1, R1, R2",
    ]
    long = "\n".join(kinds * 40)
    code = shown(loop(long, [0] * 100 + [20]), loop(long))
    assert [texts(line)[0] for line in code.lines] == [
        "17 × LDS, 17 × FFMA, 17 × MOV, 17 × IADD3, 32 others",
        "FADD R8, R8, R9",
        "24 × FMUL, 23 × LDS, 23 × FFMA, 23 × MOV, 46 others",
    ]


def test_the_number_of_lines_is_bounded():
    texts_before = "\n".join(f"LDS.{'128' if i % 2 else '64'} R4, [R2]" for i in range(1000))
    code = shown(loop(texts_before, [10] * 1000), loop("EXIT"))
    assert (len(code.lines), code.left_out) == (400, 1001 - 1 - 400)


def test_numbers_are_cells_and_those_per_unit_of_work_come_first():
    code = shown(loop(BEFORE, [100]), loop(AFTER, [100]))
    assert {row.raw("per") for row in code.quantities} == {"ffma"}
    page = html(code)
    assert (
        '<data value="4.0" data-cell="sass_steps/sgemm/tiled/64/0/instructions/ffma/before">4</data>' in page
    )
    assert "instructions per FFMA" in page
    copies = shown(loop("MOV R1, R2"), loop("MOV R1, R2\nMOV R3, R2"))
    assert {row.raw("per") for row in copies.quantities} == {"iteration"}
    assert isinstance(copies.quantities[0], Cells)


def test_every_text_is_escaped():
    hostile = loop("<script>alert(1)</script> R1, <b>", [100], stall='"><i>')
    hostile = replace(
        hostile,
        instructions=tuple(replace(instruction, file='"><img>') for instruction in hostile.instructions),
    )
    page = html(shown(hostile, loop("EXIT")))
    assert "<script" not in page
    assert "<img" not in page
    assert "<i>" not in page.replace("<i></i>", "")
    assert "&lt;script&gt;" in page


def test_elements_are_closed_in_order_and_two_pairs_of_loops_are_both_shown():
    page = html(shown(loop(BEFORE), loop(AFTER)), shown(loop("EXIT"), loop("EXIT")))
    assert page.count('<pre class="code sides">') == 2
    open_ = []
    for closing, tag in re.findall(r"<(/?)(\w+)", page):
        if closing:
            assert open_.pop() == tag
        else:
            open_.append(tag)
    assert open_ == []


def test_a_family_has_the_machine_code_of_each_step_at_the_profiled_case():
    def rows(variant, text, case="64"):
        key = {
            "family": "sgemm",
            "variant": variant,
            "case": case,
            "loop": 0,
            "iterates": True,
            "iterations": 8,
        }
        counters = {
            "executed": 8,
            "samples": 1,
            "sample_share": 0.1,
            "stall": "",
            "stall_samples": 0,
            "file": "",
            "line": 0,
        }
        return [{**key, **counters, "place": i, "text": line} for i, line in enumerate(text.splitlines())]

    instructions = [
        *rows("naive", BEFORE),
        *rows("tiled", AFTER),
        *rows("naive", AFTER, "128"),
        *rows("tiled", AFTER, "128"),
    ]
    variants = [
        {"family": "sgemm", "variant": "naive", "parent": ""},
        {"family": "sgemm", "variant": "tiled", "parent": "naive"},
    ]
    steps = pd.DataFrame([conclusions.cells(row) for row in sass_steps.rows(instructions, variants)])
    tables = SimpleNamespace(
        family="sgemm", profiled_case="64", instructions=pd.DataFrame(instructions), sass_steps=steps
    )
    by_name = by_variant(tables)
    assert list(by_name) == ["tiled"]
    (code,) = by_name["tiled"]
    assert (code.parent, code.variant, len(code.lines)) == ("naive", "tiled", 5)
    assert 'data-cell="sass_steps/sgemm/tiled/64/0/lds/ffma/before"' in html(code)
    tables.sass_steps = steps[:0]
    assert by_variant(tables) == {}
