"""What a page says of a variant on other chips: blocks per SM, or why there are none."""

from dataclasses import replace

import pytest
from worklog_pages import Page, uncharted

from warplog import worklog
from warplog.tables.conclusions import Chip, cells, columns
from warplog.tables.files import as_frame

NUMBERS = [name for name, column in columns(Chip).items() if column.kind == "int"]
BUILT = Chip(
    *("sgemm", "warptile", "sm_120", "RTX 5090", "ok", ""), target="sm_120", kernel="k", nvcc="13.0.88",
    registers_per_thread=128, spill_store_bytes=0, spill_load_bytes=0, static_shared_bytes=16384,
    dynamic_shared_bytes=0, block_threads=256, blocks_per_sm=2, occupancy_pct=100 / 3,
    limiters="registers,shared_memory", shared_limit_bytes=101376,
)  # fmt: skip
NOT_BUILT = Chip("sgemm", "warptile", "sm_80", "A100", "unsupported", "", nvcc="13.0.88")


def section(tables, chip, source=None):
    """The text of warptile's part of a page with this row."""
    own = tables.variants.set_index("variant").loc["warptile", "source_sha256"] if source is None else source
    table = as_frame([cells(replace(chip, source_sha256=own))], columns(Chip), "chips")
    table = table.astype(dict.fromkeys(NUMBERS, "float64"))
    html = worklog.html(uncharted(replace(tables, chips=table)), "")
    return Page(html.partition('id="rung-warptile"')[2].partition('id="rung-')[0]).text


def test_a_row_has_its_resources_and_how_many_blocks_fit(recorded):
    text = section(recorded, BUILT)
    assert "On other chips" in text
    resources = "RTX 5090 sm_120 128 0 B 0 B 16.4 kB 0 B"
    assert f"{resources} 2, 33.3 % of the warps, limited by registers and shared memory" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"reason": "needs_arch", "reason_of": "sm_90a", "features": "wgmma,tma"},
            "needs sm_90a: wgmma, TMA",
        ),
        (
            {"reason": "shared_memory", "shared_limit_bytes": 101376},
            "cannot be launched: a block has at most 101 kB of shared memory",
        ),
        ({"reason": "compiled_later", "reason_of": "triton"}, "compiled when it runs there"),
        ({"status": "ok", "reason": "no_launch"}, "compiles; unknown, since its launch was not captured"),
        ({"status": "compile_error"}, "compile error"),
    ],
)
def test_a_row_without_blocks_says_why(recorded, change, said):
    assert f"A100 sm_80 {said} Compiled by nvcc 13.0.88" in section(recorded, replace(NOT_BUILT, **change))


def test_builds_of_another_source_are_not_shown(recorded):
    assert "On other chips" not in section(recorded, BUILT, "0" * 64)
