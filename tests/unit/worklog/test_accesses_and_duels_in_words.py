"""What pages and `explain` say of traced accesses, and of a step that a duel decides."""

from dataclasses import replace

import pytest
from worklog_pages import uncharted

from warplog import worklog
from warplog.tables.conclusions import NAN, AccessLine, Duel, Traced, cells, columns
from warplog.tables.files import as_frame
from warplog.worklog import explain
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
    assert str(finding(Cells(AccessLine.TABLE, replace(SHARED, line=0, ways=1)))).endswith(" instead of 1")


DUEL = Duel(
    *("sgemm", "warptile", "vectorized", "4096", "ok", "", "", "FASTER", ""),
    us=99.6, against_us=100.0, gain_pct=0.371, low_pct=0.31, high_pct=0.43, floor_pct=0.06, processes=4,
)  # fmt: skip


def with_duel(tables, duel, **sources):
    """The tables with a duel of the sources that the campaign measured."""
    own = tables.variants.set_index("variant")["source_sha256"]
    duel = replace(duel, **{"source_sha256": own["warptile"], "against_sha256": own[duel.against], **sources})
    return replace(tables, duels=as_frame([cells(duel)], columns(Duel), "duels"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "Faster by a duel at 4096: 0.37 % in speed (0.31 % to 0.43 %)."),
        (
            {"word": "SLOWER", "gain_pct": -0.37, "low_pct": -0.43, "high_pct": -0.31},
            "Slower by a duel at 4096: \u22120.37 % in speed (\u22120.43 % to \u22120.31 %).",
        ),
        ({"word": "SAME"}, "As fast by a duel at 4096: "),
        ({"word": "AMBIGUOUS"}, "Not decided by a duel at 4096: "),
    ],
)
def test_the_step_says_what_a_duel_found(recorded, change, said):
    assert said in explain.markdown(with_duel(recorded, replace(DUEL, **change)))


def test_its_numbers_on_pages_are_cells_of_the_table(recorded):
    html = worklog.html(uncharted(with_duel(recorded, DUEL)), "")
    assert '<data value="0.371" data-cell="duels/sgemm/warptile/gain_pct">0.37 %</data>' in html


@pytest.mark.parametrize("side", ["source_sha256", "against_sha256"])
def test_a_duel_of_another_source_or_without_a_verdict_is_not_shown(recorded, side):
    assert "by a duel" not in explain.markdown(with_duel(recorded, DUEL, **{side: "0" * 64}))
    unknown = replace(DUEL, status="crashed", word="")
    assert "by a duel" not in explain.markdown(with_duel(recorded, unknown))
