"""Captions of figures on a page: only sentences that apply to the family."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from made_up_ceilings import ceilings
from warplog.figures.captions import CONDITIONS, caption

REPORT = Path(__file__).parents[3] / "workflow" / "report"


@pytest.mark.parametrize("name", sorted(CONDITIONS))
def test_every_condition_is_about_a_sentence_of_the_caption(name):
    text = " ".join((REPORT / f"{name}.rst").read_text(encoding="utf-8").replace("*", "").split())
    for start in CONDITIONS[name]:
        assert f". {start}" in text


def test_a_sentence_about_what_the_family_does_not_have_is_left_out(recorded):
    source = REPORT / "bank_conflicts.rst"
    assert "wgmma" not in caption(source, recorded)
    assert caption(source, recorded).startswith("Shared-memory wavefronts of each variant of sgemm:")
    row = recorded.metrics.head(1).assign(metric="inst_hgmma", value=1.0)
    tensor = replace(recorded, metrics=pd.concat([recorded.metrics, row]))
    assert "No counter covers reads by wgmma" in caption(source, tensor)


def test_captions_of_throughput_follow_how_the_cases_are_drawn(recorded):
    source = REPORT / "throughput_vs_size.rst"
    lines = caption(source, recorded)
    assert "whose line still rises" in lines
    assert "side by side" not in lines
    dots = caption(source, replace(recorded, measurements=recorded.measurements.assign(size=4096.0)))
    assert "side by side" in dots
    assert "A line" not in dots


def test_a_caption_speaks_of_no_mark_that_the_figure_does_not_have(recorded):
    ladder, roofline, chart = (REPORT / f"{name}.rst" for name in ("ladder", "roofline", "memory_chart"))
    assert "dashed outline" not in caption(ladder, recorded)
    assert "Percentages refer to the baseline" in caption(ladder, recorded)
    assert "Without a baseline" not in caption(ladder, recorded)
    rows = recorded.measurements.assign(processes=3.0, sustained_us=1.5 * recorded.measurements["median_us"])
    assert "spread between processes" in caption(ladder, replace(recorded, measurements=rows))
    assert "dashed outline" not in caption(ladder, replace(recorded, measurements=rows.assign(limited_by="")))
    assert "dashed outline" in caption(
        ladder, replace(recorded, measurements=rows.assign(limited_by="power"))
    )
    none = recorded.measurements.assign(ratio_to_baseline=float("nan"))
    assert "Without a baseline" in caption(ladder, replace(recorded, measurements=none))
    assert "copies memory" not in caption(roofline, recorded)
    unmeasured, measured = (
        caption(roofline, replace(recorded, ceilings=rows)) for rows in (ceilings()[:0], ceilings())
    )
    assert ("L2 has no roof" in unmeasured, "L2 has no roof" in measured) == (True, False)
    assert ("roof called measured" in unmeasured, "roof called measured" in measured) == (False, True)
    assert "Generic loads" not in caption(chart, recorded)
