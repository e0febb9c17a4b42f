"""Figures of what each level of memory and the FP32 units deliver, from times that follow from simple formulas."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Annotation

from levels_tables import MHZ, ilp, memory
from warplog import figures
from warplog.figures.shared import style
from warplog.figures.shared.latencies import latencies
from warplog.figures.shared.settings import WEB

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")


def with_sizes(tables):
    return replace(tables, gpus=tables.gpus.assign(l2_mib=50.0, memory_gib=80.0))


@pytest.fixture(scope="module")
def levels():
    return with_sizes(memory())


@pytest.fixture(scope="module")
def broken():
    return with_sizes(memory({"chase_shared": "wrong", "stream_4": "compile_error"}))


def drawn(name, tables, settings=WEB):
    made = figures.module(name)
    figure = made.draw(made.data(tables), style.look(tables, settings))
    with style.theme(settings):
        figure.draw_without_rendering()
    return figure


def words(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_the_latency_of_a_load_is_the_slope_of_two_cases(levels):
    rows = latencies(levels).set_index(["variant", "size"])
    assert rows.loc[("chase", 16384), "hop_cycles"] == pytest.approx(38)
    assert rows.loc[("chase", 16384), "hop_ns"] == pytest.approx(38e3 / MHZ)
    assert rows.loc[("chase_max_shared", 192 * 1024), "hop_cycles"] == pytest.approx(275)
    assert rows.loc[("chase_host", 64 * 2**20), "hop_cycles"] == pytest.approx(1600)
    assert not any(name.startswith("stream") for name, _ in rows.index), "they support no chase"
    assert ("chase_shared", 2**20) not in rows.index, "a ring that a block does not hold"


def test_the_levels_have_latency_bandwidth_and_capacity(levels):
    rows = figures.data("hierarchy", levels).set_index("short")
    assert list(rows.index) == ["shared", "L1", "DSMEM", "L2", "DRAM", "host"]
    assert list(rows["hop_cycles"]) == pytest.approx([29, 33, 190, 270, 645, 1600])
    rates = rows.loc[["shared", "L1", "L2", "DRAM"], "gbytes_per_s"]
    assert list(rates) == pytest.approx([33000, 33000, 7000, 3000], rel=0.03)
    assert rows.loc[["DSMEM", "host"], "gbytes_per_s"].isna().all()
    assert list(rows.loc[["shared", "L1", "L2", "DRAM"], "capacity_bytes"] / 2**10) == pytest.approx(
        [228, 256, 50 * 2**10, 80 * 2**20]
    )
    figure = drawn("hierarchy", levels)
    assert "22.2 times as long" in figure.get_suptitle()
    assert {"29.0", "1\u2009600", "228 KiB", "50 MiB", "80 GiB"} <= set(words(figure))


def test_a_level_whose_kernel_failed_has_no_number(broken):
    rows = figures.data("hierarchy", broken).set_index("short")
    assert rows.loc["shared", "gap"] == "wrong"
    assert np.isnan(rows.loc["shared", "hop_ns"])
    assert rows.loc[["L1", "L2", "DRAM"], "gbytes_per_s"].isna().all()
    figure = drawn("hierarchy", broken)
    assert "wrong" in words(figure)
    assert figure.get_suptitle().startswith("Levels of memory ·")


def test_latency_is_drawn_over_the_size_with_the_capacity_of_the_caches(levels, broken):
    figure = drawn("latency_vs_footprint", levels)
    (axes,) = figure.axes
    marked = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"]
    assert {256 * 2**10, 50 * 2**20} <= set(marked)
    assert {"L1 256Ki", "L2 50Mi", "chase_host"} <= set(words(figure))
    assert "38.0 cycles in 16Ki, 645 in 256Mi" in figure.get_suptitle()
    led = [text.xy[0] for text in axes.texts if isinstance(text, Annotation) and text.arrow_patch]
    assert 256 * 2**20 in led, "from the end of a line at the right"
    assert min(led) > 2**20, "not across the figure, from lines that end in caches"
    assert "chase_shared: wrong" in words(drawn("latency_vs_footprint", broken))


def test_without_chases_there_is_nothing_to_show(levels):
    streams = levels.measurements[~levels.measurements["case"].str.contains("x")]
    tables = replace(levels, measurements=streams)
    assert figures.data("latency_vs_footprint", tables).empty
    assert figures.data("hierarchy", tables).empty


def test_chains_and_warps_together_reach_the_peak():
    rows = figures.data("chains_x_warps", ilp())
    shares = rows.pivot(index="variant", columns="size", values="peak_pct")
    assert list(shares.loc["chains_1"]) == pytest.approx([6.25, 25, 50, 100, 100, 100], rel=2e-3)
    assert list(shares.loc["chains_4"]) == pytest.approx([25, 100, 100, 100, 100, 100], rel=2e-3)
    figure = drawn("chains_x_warps", ilp())
    assert "chains_4 reaches 100 % with 4 warps per SM" in figure.get_suptitle()
    assert words(figure)[:6] == ["6", "25", "50", "100", "100", "100"]
    assert words(drawn("chains_x_warps", ilp({"chains_2": "wrong"}))).count("wrong") == 6


@pytest.mark.parametrize("width_in", [7.2, 3.3])
@pytest.mark.parametrize("name", ["hierarchy", "latency_vs_footprint", "chains_x_warps"])
def test_the_text_is_inside_of_the_figure(levels, name, width_in):
    settings = replace(WEB, width_in=width_in)
    figure = drawn(name, ilp() if name == "chains_x_warps" else levels, settings)
    with style.theme(settings):
        box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < width_in + 0.05
    assert box.y1 < figure.get_figheight() + 0.05


def test_a_family_that_latency_limits_is_shown_by_its_time(levels):
    assert levels.quantity().column == "median_us"
    bound = replace(levels, variants=levels.variants.assign(limit="dram"))
    assert bound.quantity().column == "gbytes_per_s"
