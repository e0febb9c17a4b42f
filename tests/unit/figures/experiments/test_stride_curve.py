"""The figure stride_curve: which variants have a stride, what memory moves for them, and its narrow form."""

import itertools
import json
from dataclasses import replace

import pytest

from made_up_tables import MadeUpTables
from warplog import figures
from warplog.figures.shared import style
from warplog.figures.shared.settings import WEB

FIGURE = figures.module("stride_curve")
STRIDES = (1, 2, 4, 8, 16, 32, 128, 256, 512, 4096, 32768)
SIZES = {"1Mi": 2**20, "64Mi": 2**26, "256Mi": 2**28}


def copies(failed: str = "") -> MadeUpTables:
    """A copy, its strides, and one more variant; DRAM moves up to 8 times the bytes, L2 up to 16 times."""
    made = MadeUpTables()
    names = ["plain", *(f"stride_{s}" for s in STRIDES[1:]), "offset_1"]
    for order, name in enumerate(names):
        stride = int(name.partition("stride_")[2] or 1)
        parameters = json.dumps({"BLOCK": 256} | ({"STRIDE": stride} if stride > 1 else {}))
        about = {"parent": "plain" if order else "", "is_baseline": not order, "parameters": parameters}
        made.variant("copy", name, order, len(names), "64Mi", **about)
        for case, size in SIZES.items():
            status = {"status": "wrong", "reason": "max error 1"} if name == failed else {}
            us = 8 * size / 2.4e6 * min(stride, 32) ** (0.5 if case == "1Mi" else 0.9)
            made.measured("copy", name, case, size, us, 0.0, 8.0 * size, **status)
        moved = 8 * SIZES["64Mi"]
        dram, l2 = (moved * min(stride, most) for most in (8, 16))
        made.counted("copy", name, "64Mi", "copy", 0, {"duration_us": us, "dram_bytes": dram, "l2_bytes": l2})
    return made


@pytest.fixture(scope="module")
def tables():
    return copies().tables(copy="plain")


def test_strides_are_parameters_and_their_parent_has_stride_one(tables):
    rows = FIGURE.data(tables)
    assert [*rows.loc[rows["case"] == "1Mi", "stride"]] == [*STRIDES]
    assert "offset_1" not in set(rows["variant"])
    own = rows[rows["case"] == "64Mi"].set_index("stride")
    assert own["dram_per_byte"].to_dict() == pytest.approx({s: min(s, 8) for s in STRIDES})
    assert own["l2_per_byte"].to_dict() == pytest.approx({s: min(s, 16) for s in STRIDES})
    assert rows.loc[rows["case"] != "64Mi", "dram_per_byte"].isna().all(), "counted at another size"


def test_the_title_names_the_slowest_stride(tables):
    figure = FIGURE.draw(FIGURE.data(tables), style.look(tables))
    assert "up to 22.6 times slower, with stride 32 at 64Mi · copy" in figure.get_suptitle().replace(
        "\n", " "
    )
    assert len(figure.axes) == 2


def test_a_stride_that_failed_has_no_numbers_and_is_named(tables):
    failed = copies("stride_8").tables(copy="plain")
    rows = FIGURE.data(failed)
    assert rows.loc[rows["stride"] == 8, ["median_us", "gbytes_per_s", "dram_per_byte"]].isna().all(axis=None)
    note = FIGURE.draw(rows, style.look(failed)).get_supxlabel().replace("\n", " ")
    assert note.count("stride_8: wrong") == 1


def test_without_counters_only_the_bandwidth_is_drawn(tables):
    uncounted = replace(tables, metrics=tables.metrics.iloc[:0])
    rows = FIGURE.data(uncounted)
    assert rows["dram_per_byte"].isna().all()
    figure = FIGURE.draw(rows, style.look(uncounted))
    assert len(figure.axes) == 1
    assert "stride" in figure.axes[0].get_xlabel()


def test_two_strides_are_no_curve(tables):
    few = tables.measurements["variant"].isin(["plain", "stride_2"])
    assert FIGURE.data(replace(tables, measurements=tables.measurements[few])).empty


@pytest.mark.parametrize("width_in", [7.2, 3.3])
def test_text_is_inside_of_the_figure_and_ticks_are_apart(tables, width_in):
    settings = replace(WEB, width_in=width_in)
    figure = FIGURE.draw(FIGURE.data(tables), style.look(tables, settings))
    with style.theme(settings):
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
        ticks = [label.get_window_extent() for label in figure.axes[-1].get_xticklabels()]
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < width_in + 0.05
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(ticks))
