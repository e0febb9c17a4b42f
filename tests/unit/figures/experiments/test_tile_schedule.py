"""The order of tiles: the bytes of all waves, and that both widths of a figure show them."""

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.text import Text

from figure_tables import sgemm
from warplog.figures import tile_schedule
from warplog.figures.captions import caption
from warplog.figures.shared import style
from warplog.figures.shared.settings import WEB

CAPTION = Path(__file__).parents[4] / "workflow" / "report" / "tile_schedule.rst"
EXPECTED = {  # MB by order, for 66 clusters and for the 64 that need no more waves
    "row by row": {66: 2345, 64: 2282},
    "in groups of 8 rows": {66: 1225, 64: 1074},
    "on a Hilbert curve": {66: 1313, 64: 1074},
}


def with_sms(sms):
    tables = sgemm(names=("warptile",))
    return replace(tables, gpus=tables.gpus.assign(sms=sms))


def test_a_wave_reads_each_row_of_the_operands_once_that_its_tiles_need():
    rows = tile_schedule.data(with_sms(132))
    totals = rows.groupby(["order", "clusters"])["mbytes"].agg(["min", "max"]).round()
    assert (totals["min"] == totals["max"]).all()
    assert {order: totals.loc[order, "min"].to_dict() for order in EXPECTED} == EXPECTED
    first = rows[(rows["order"] == "in groups of 8 rows") & (rows["clusters"] == 64) & (rows["wave"] == 0)]
    assert len(first) == 64
    assert first["wave_mbytes"].iloc[0] == pytest.approx((8 + 8) * 256 * 8192 * 2 / 1e6)


def test_a_gpu_whose_clusters_divide_the_tiles_has_one_bar_per_order_and_an_unknown_one_no_figure():
    assert set(tile_schedule.data(with_sms(128))["clusters"]) == {64}
    assert "second number" in caption(CAPTION, with_sms(132))
    assert "second number" not in caption(CAPTION, with_sms(128))
    assert tile_schedule.data(with_sms(float("nan"))).empty


@pytest.mark.parametrize("width_in", [3.3, 7.2])
def test_text_is_inside_of_the_figure_and_names_every_order_with_its_bytes(width_in):
    tables = with_sms(132)
    look = style.look(tables, replace(WEB, width_in=width_in))
    figure = tile_schedule.draw(tile_schedule.data(tables), look)
    figure.get_layout_engine().execute(figure)
    words = [text.get_text() for text in figure.findobj(Text)]
    title = figure.get_suptitle().replace("\n", " ")
    assert all(order in title for order in EXPECTED)
    for megabytes in EXPECTED.values():
        assert all(f"{value:,}".replace(",", "\u2009") in words for value in megabytes.values())
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < figure.get_figwidth() + 0.05
    assert box.y1 < figure.get_figheight() + 0.05
