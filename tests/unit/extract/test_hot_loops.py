"""Hot loops of a launch: which are kept, and what is known of their instructions."""

from pathlib import Path

import pandas as pd
import pytest

from warplog.extract import hot_loops
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.ncu.source import SourceInstruction
from warplog.records.extract import MOST_INSTRUCTIONS, HotLoop, LoopInstruction

DATA = Path(__file__).parents[2] / "data" / "parsers"
# The hottest loop of smem_conflict, by hand from the report's source page: it writes a tile, a row per LDS.
EXPECTED = pd.read_csv(DATA / "transpose_h200_smem_conflict_loop.csv", keep_default_na=False)


@pytest.fixture(scope="module")
def loops():
    """The hot loops of each variant of transpose, from the report of a campaign."""
    report = ncu_rep.read(DATA / "transpose_h200.ncu-rep", with_lines=True)
    return {
        launch.ranges[0].split(":")[1]: hot_loops.hottest("8192", launch.kernel, 0, launch.code)
        for launch in report.launches
    }


def test_the_hottest_loop_of_a_real_report_has_the_instructions_of_its_source_page(loops):
    hottest, second = loops["smem_conflict"]
    assert (hottest.iterates, hottest.iterations, hottest.kernel_samples) == (True, 524288, 39276)
    shown = [
        (
            f"{instr.offset:x}",
            instr.text,
            instr.executed,
            instr.samples,
            instr.stall,
            instr.stall_samples,
            instr.line,
        )
        for instr in hottest.instructions
    ]
    assert shown == list(EXPECTED.itertuples(index=False, name=None))
    assert {instr.file for instr in hottest.instructions} == {"smem_conflict.cu"}
    assert (second.instructions[0].offset, len(second.instructions)) == (0x440, 68)


def test_a_kernel_without_loops_has_its_whole_code_and_a_library_none(loops):
    (naive,) = loops["naive"]
    assert not naive.iterates
    assert (len(naive.instructions), naive.instructions[0].text) == (72, "LDC R1, c[0x0][0x28]")
    assert naive.instructions[-1].text == "EXIT"
    assert loops["cublas"] == []


def instruction(place, text, executed=100.0, line=1, **samples):
    return SourceInstruction(
        16 * place,
        text,
        "/src/k.cu",
        line,
        {"instructions": executed},
        {k: float(v) for k, v in samples.items()},
    )


def kernel(first, second, rest):
    """Two loops of two instructions and the code around them, with so many samples each."""
    return [
        instruction(0, "MOV R0, RZ", wait=rest),
        instruction(1, "FADD R1, R1, R2", wait=first),
        instruction(2, "@P0 BRA 0x10"),
        instruction(3, "FMUL R1, R1, R2", wait=second),
        instruction(4, "@P0 BRA 0x30"),
        instruction(5, "EXIT"),
    ]


@pytest.mark.parametrize(
    ("samples", "heads"),
    [
        ((5, 9, 2), [0x30, 0x10]),
        ((5, 0, 2), [0x10]),
        ((5, 9, 7), [0x30, 0x10]),
        ((5, 9, 10), [0x0, 0x30]),
    ],
)
def test_the_two_hottest_loops_are_kept_and_the_code_around_them_if_it_is_hotter(samples, heads):
    kept = hot_loops.hottest("64", "k", 0, kernel(*samples))
    assert [loop.instructions[0].offset for loop in kept] == heads
    assert {loop.kernel_samples for loop in kept} == {sum(samples)}
    assert [loop.iterates for loop in kept] == [head > 0 for head in heads]


def test_without_samples_executed_instructions_decide():
    code = [
        instruction(plain.offset // 16, plain.text, 900.0 if plain.offset in (0x30, 0x40) else 5.0)
        for plain in kernel(0, 0, 0)
    ]
    first, second = hot_loops.hottest("64", "k", 0, code)
    assert (first.instructions[0].offset, first.iterations, first.kernel_samples) == (0x30, 900, 0)
    assert (second.instructions[0].offset, second.iterations) == (0x10, 5)
    assert first.instructions[0].stall == ""


def test_an_instruction_has_its_most_frequent_stall_which_is_never_that_it_issued():
    code = [
        instruction(0, "FFMA R1, R2, R3, R1", selected=50, wait=20, not_selected=30),
        instruction(1, "EXIT"),
    ]
    (loop,) = hot_loops.hottest("64", "k", 2, code)
    assert loop == HotLoop(
        case="64",
        kernel="k",
        launch=2,
        iterates=False,
        iterations=100,
        kernel_samples=100,
        instructions=(
            LoopInstruction(0, "FFMA R1, R2, R3, R1", 100, 100, "not_selected", 30, "k.cu", 1),
            LoopInstruction(16, "EXIT", 100, 0, "", 0, "k.cu", 1),
        ),
    )


def test_a_loop_that_is_too_long_is_left_out():
    long = [instruction(place, "FFMA R1, R2, R3, R1", wait=1) for place in range(MOST_INSTRUCTIONS)]
    code = [*long, instruction(MOST_INSTRUCTIONS, "@P0 BRA 0x0"), instruction(MOST_INSTRUCTIONS + 1, "EXIT")]
    assert hot_loops.hottest("64", "k", 0, code) == []


def test_code_without_a_line_table_is_left_out():
    assert hot_loops.hottest("64", "k", 0, [instruction(0, "EXIT", line=0, wait=1)]) == []
