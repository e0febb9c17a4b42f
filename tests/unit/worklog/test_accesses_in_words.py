"""What pages say of traced accesses: where the numbers come from, what is missing, and a finding as a sentence."""

from dataclasses import replace

import pytest

from warplog.tables.conclusions import NAN, AccessLine, Traced
from warplog.worklog.cells import Cells
from warplog.worklog.texts import words

TRACED = Traced("f", "a", "64", "ok", blocks=64, traced_blocks=64, counted=0, differing=0)
LINE = AccessLine(
    "f", "a", "64", "a.cu", 7, "x = in[i];", "global", "load", "in", 128, 32.0, 4.0, "sector/request", 4.0, -1,
    "scattered", "",
)  # fmt: skip
SHARED = replace(
    LINE, space="shared", kind="async_copy", array="", per_request=8.0, ideal=1.0, used_bytes=NAN, ways=8,
    unit="wavefront/request",
)  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "From the addresses of one launch, not from hardware counters."),
        ({"counted": 9}, "From the addresses of one launch; Nsight Compute counted the same at all 9 instructions."),
        ({"counted": 9, "differing": 2}, "Nsight Compute counted other numbers at 2 of 9 instructions."),
        ({"traced_blocks": 8}, "8 of 64 blocks were traced."),
        ({"same_address": 4096}, "No address of global memory receives more than 4096 atomic operations."),
        (
            {"same_address": 1, "traced_blocks": 8},
            "No address of global memory receives more than 1 atomic operation of these blocks.",
        ),
        ({"untraced": "UTMALDG.2D 4"}, "The trace does not see UTMALDG.2D 4."),
        (
            {"block_bytes": 4096.0, "wave_blocks": 8, "wave_bytes": 8192.0, "wave_bytes_of_blocks": 32768.0,
             "wave_reuse": 4.0},
            "A block reads 4096 B of global memory; the 8 blocks of the first wave read 8192 B together, and 32.8 kB if"
            " each is counted by itself (4.00x).",
        ),
    ],
)  # fmt: skip
def test_where_the_numbers_come_from_and_what_they_lack(facts, said):
    assert said in str(words(str).traced(Cells(Traced.TABLE, replace(TRACED, **facts))))


def test_a_finding_is_a_sentence():
    finding = words(str).finding
    assert str(finding(Cells(AccessLine.TABLE, LINE))) == (
        "load from in at a.cu:7: 32 sectors per request instead of 4 (4 B used of each)"
    )
    assert str(finding(Cells(AccessLine.TABLE, replace(SHARED, line=0)))) == (
        "asynchronous copy to shared memory: 8 wavefronts per request instead of 1 (up to 8-way conflicts)"
    )
