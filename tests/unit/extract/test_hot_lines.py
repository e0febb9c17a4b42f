"""Source lines of a launch: per-instruction counters added up by line, and the hot lines with their text."""

from pathlib import Path

import pandas as pd
import pytest

from warplog.extract import hot_lines
from warplog.parsers.ncu import report as ncu_rep
from warplog.parsers.ncu import source as ncu_source
from warplog.parsers.ncu.source import SourceLine

DATA = Path(__file__).parents[2] / "data" / "parsers"
REPORT = DATA / "transpose_h200.ncu-rep"
STATE = "smsp__pcsamp_warps_issue_stalled_"


@pytest.fixture(scope="module")
def launches():
    """Returns the profiled launch of each variant of transpose."""
    report = ncu_rep.read(REPORT, with_lines=True)
    return {launch.ranges[0].split(":")[1]: launch for launch in report.launches}


@pytest.mark.parametrize("variant", ["naive", "smem_conflict"])
def test_the_lines_of_a_launch_add_up_to_its_counters(variant, launches):
    launch = launches[variant]
    counters = pd.read_csv(DATA / "transpose_h200.csv", index_col="metric")[variant]
    assert sum(line.instructions for line in launch.lines) == counters["instructions_executed"]
    excess = sum(line.shared_wavefronts - line.shared_wavefronts_ideal for line in launch.lines)
    assert excess == counters["shared_wavefronts_excess"]
    assert {Path(line.file).name for line in launch.lines} >= {f"{variant}.cu"}


def test_the_bank_conflicts_of_smem_conflict_have_a_place(launches):
    rows = hottest(launches["smem_conflict"].lines, [])
    worst = max(rows, key=lambda row: row.shared_wavefronts_excess)
    assert worst.file == "smem_conflict.cu"
    assert worst.shared_wavefronts_excess > 0.9 * sum(row.shared_wavefronts_excess for row in rows)
    assert worst.instruction_share < 0.5, "conflicts single it out, not instructions"


def test_lines_are_read_only_on_request():
    assert all(launch.lines == () for launch in ncu_rep.read(REPORT).launches)


class Ids:
    ValueKind_UINT64 = 3

    def __init__(self, values, kind=3):
        self.values, self._kind = values, kind

    def kind(self):
        return self._kind

    def value(self, i):
        return self.values[i]


class Metric:
    def __init__(self, entries, kind=3):
        self.entries, self._kind = entries, kind

    def num_instances(self):
        return len(self.entries)

    def has_correlation_ids(self):
        return True

    def correlation_ids(self):
        return Ids(list(self.entries), self._kind)

    def value(self, i):
        return list(self.entries.values())[i]


class Place:
    def __init__(self, file, line):
        self._file, self._line = file, line

    def file_name(self):
        return self._file

    def line(self):
        return self._line


class Action:
    """A launch with counters per instruction; the instruction at address 99 has no source line."""

    def __init__(self, counters):
        self._counters = counters

    def metric_names(self):
        return list(self._counters)

    def metric_by_name(self, name):
        return self._counters[name]

    def sass_by_pc(self, address):
        return f"      BRA {address - 1:#x}"

    def source_info(self, address):
        return None if address == 99 else Place("/src/k.cu", address // 10)


def test_samples_of_all_instructions_of_a_line_are_added_by_state_under_the_names_of_the_counters():
    action = Action(
        {
            f"{STATE}wait": Metric({10: 3, 11: 4, 20: 1, 99: 7}),
            f"{STATE}no_instructions": Metric({20: 5}),
            f"{STATE}warpgroup_arrive": Metric({20: 6}),
            f"{STATE}wait_not_issued": Metric({10: 100}),
            "inst_executed": Metric({10: 8, 20: 2}),
            "sass__inst_executed_per_opcode": Metric({10: 50}, kind=1),
            "memory_l1_wavefronts_shared": Metric(
                {10: float("inf"), 11: float("nan"), 20: -1.0}
            ),  # no counts
        }
    )
    first, second = ncu_source.lines(ncu_source.instructions(action))
    assert first.shared_wavefronts == second.shared_wavefronts == 0
    assert (first.line, first.instructions, first.samples) == (1, 8.0, {"wait": 7.0})
    assert (second.line, second.samples) == (2, {"wait": 1.0, "no_instruction": 5.0, "gmma": 6.0})


def hottest(lines, sources):
    return hot_lines.hottest("64", "k", 0, lines, sources)


def line(number, samples=None, instructions=0.0, wavefronts=(0.0, 0.0)):
    return SourceLine("/src/k.cu", number, instructions, *wavefronts, samples=samples or {})


def test_hot_lines_come_by_samples_with_text_and_longest_wait(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text("one\n  two  \tthree\n")
    lines = [
        line(1, {"selected": 50.0, "wait": 1.0}, 1000.0),
        line(2, {"selected": 10.0, "barrier": 60.0, "wait": 79.0}, 5.0),
        line(3, {"wait": 0.5}, 1.0),
    ]
    first, second = hottest(lines, [source])
    assert (first.line, first.text, first.stall, first.stall_samples) == (
        2,
        "two three",
        "wait",
        79,
    )
    assert first.sample_share == pytest.approx(149 / 200.5)
    assert (second.text, second.stall) == ("one", "wait")


def test_without_samples_instructions_decide_and_shares_are_not_invented():
    rows = hottest([line(1, None, 10.0), line(2, None, 90.0)], [])
    assert [row.line for row in rows] == [2, 1]
    assert [row.sample_share for row in rows] == [None, None]
    assert [row.stall for row in rows] == ["", ""]


def test_a_line_that_only_conflicts_is_told():
    rows = hottest([line(1, None, 1e6), line(2, None, 1.0, (64.0, 32.0))], [])
    assert {row.line: row.shared_wavefronts_excess for row in rows} == {1: 0.0, 2: 32.0}


def test_their_number_is_bounded_and_a_file_that_is_no_source_has_no_text(tmp_path):
    lines = [line(i, {"wait": 1.0}) for i in range(1, 100)]
    assert len(hottest(lines, [tmp_path / "k.cu"])) == hot_lines.MOST_LINES
