"""Instructions and source lines of a profiled launch, from a stand-in for an action of NVIDIA's reader."""

import math
from types import SimpleNamespace

from warplog.parsers.ncu import source

FIRST = 0x7F00_0000_0000
TEXTS = ("LDS R1,  [R2]", "FFMA R3, R1, R1, 0x3f800000", f"@P0 BRA {FIRST:#x}", "EXIT")
LINES = (5, 6, 5, None)  # the last instruction has no entry in the line table
SAMPLES = "smsp__pcsamp_warps_issue_stalled_"
COUNTERS = {
    "inst_executed": {0: 64.0, 1: 64.0, 2: 64.0, 3: 32.0},
    "memory_l1_wavefronts_shared": {0: 128.0, 1: -1.0, 2: 8.0},
    "memory_l1_wavefronts_shared_ideal": {0: 64.0, 1: math.nan, 2: 8.0},
    f"{SAMPLES}long_scoreboard": {0: 3.0, 1: 0.0, 2: 4.0},
    f"{SAMPLES}long_scoreboard_not_issued": {0: 2.0},
    f"{SAMPLES}selected": {1: 5.0},
    f"{SAMPLES}warpgroup_arrive": {2: 1.0},
    f"{SAMPLES}no_instructions": {3: 2.0},
    "smsp__inst_executed.sum": {0: 1.0},
}


def metric(counts):
    """Returns a counter with an instance for each instruction, whose correlation id is the address."""
    places, values = list(counts), list(counts.values())
    ids = SimpleNamespace(kind=lambda: 3, ValueKind_UINT64=3, value=lambda i: FIRST + 16 * places[i])
    return SimpleNamespace(
        num_instances=lambda: len(places),
        has_correlation_ids=lambda: True,
        correlation_ids=lambda: ids,
        value=values.__getitem__,
    )


def info(address):
    line = LINES[(address - FIRST) // 16]
    return line and SimpleNamespace(file_name=lambda: "/src/a.cu", line=lambda: line)


ACTION = SimpleNamespace(
    metric_names=lambda: list(COUNTERS),
    metric_by_name=lambda name: metric(COUNTERS[name]),
    source_info=info,
    sass_by_pc=lambda address: TEXTS[(address - FIRST) // 16],
)


def test_instructions_have_their_place_in_the_kernel_and_what_was_counted_at_them():
    load, multiply, branch, end = source.instructions(ACTION)
    assert [one.offset for one in (load, multiply, branch, end)] == [0, 16, 32, 48]
    assert (load.text, branch.text) == ("LDS R1, [R2]", "@P0 BRA 0x0")
    assert multiply.text.endswith("0x3f800000"), "a constant is no address"
    assert (load.file, load.line, end.file, end.line) == ("/src/a.cu", 5, "", 0)
    assert load.counts == {"instructions": 64, "shared_wavefronts": 128, "shared_wavefronts_ideal": 64}
    assert multiply.counts == {"instructions": 64}
    assert (load.samples, multiply.samples) == ({"long_scoreboard": 3}, {"selected": 5})
    assert (branch.samples, end.samples) == ({"long_scoreboard": 4, "gmma": 1}, {"no_instruction": 2})


def test_a_line_has_the_sums_over_its_instructions():
    first, second = source.lines(source.instructions(ACTION))
    assert first == source.SourceLine("/src/a.cu", 5, 128, 136, 72, {"long_scoreboard": 7, "gmma": 1})
    assert second == source.SourceLine("/src/a.cu", 6, 64, 0, 0, {"selected": 5})
