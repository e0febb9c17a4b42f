"""The figure `swim_lanes`, from made-up launches whose regions are known."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from drawn_figures import texts
from matplotlib.colors import to_hex
from matplotlib.legend import Legend
from matplotlib.text import Text
from plotted import plot

import made_up_records
from figure_tables import sgemm
from made_up_launch import MHZ, STORED, case_of, lookback, pipelined
from made_up_tables import write
from shipped_families import FAMILIES
from warplog import figures
from warplog.figures.shared import style
from warplog.figures.shared.settings import settings_of
from warplog.records.config import FigureSettings
from warplog.records.requested.timeline import TimelineCase
from warplog.tables import timelines, view

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")
FIGURE = figures.module("swim_lanes")
FAMILY = FAMILIES["sgemm"]


def with_launches(tables, **captured):
    """The tables with a launch per variant: a made-up buffer, or the reason why there is none."""
    rows = {"launches": [], "tracks": []}
    for name, capture in captured.items():
        variant = FAMILY.variant(name)
        failed = {"status": "crashed", "reason": capture} if isinstance(capture, str) else {}
        case = TimelineCase(case="4096", **failed) if failed else case_of(capture, "4096")
        record = made_up_records.timeline(case, **failed)
        origin = tables.variants.reindex(columns=["gpu", "gpu_name", "origin", "campaign"]).iloc[0].to_dict()
        for table, row in timelines.rows(record, variant, "live"):
            rows[table].append({"family": "sgemm", "variant": name, **origin, **row})
    frames = {
        table: pd.DataFrame(own, columns=None if own else view.NEEDED[table]) for table, own in rows.items()
    }
    return replace(tables, **frames)


@pytest.fixture(scope="module")
def tables():
    return with_launches(sgemm(), tma_pipelined=pipelined(), warptile="illegal address")


@pytest.fixture(scope="module")
def drawn(tables):
    return FIGURE.draw(FIGURE.data(tables), style.look(tables))


def below(figure):
    """Returns the text below a figure in one line."""
    return figure.get_supxlabel().replace("\n", " ")


def test_the_window_shows_the_end_of_a_tile(tables):
    rows = FIGURE.data(tables)
    own = rows[rows["variant"] == "tma_pipelined"]
    stores = own[own["region"] == "store"]
    assert stores["duration_us"].tolist() == pytest.approx([STORED / MHZ] * 2, rel=0.01)
    begin, end = own["start_us"].min(), (own["start_us"] + own["duration_us"]).max()
    assert begin < stores["start_us"].min()
    assert end > (stores["start_us"] + stores["duration_us"]).max()
    assert end - begin == pytest.approx(14 * 1000 / MHZ, rel=0.01)  # fourteen steps


def test_each_warp_has_a_lane_with_its_role_and_each_region_its_colour(drawn):
    panel = next(axes for axes in drawn.axes if axes.get_xlabel().endswith("(µs)"))
    assert [label.get_text() for label in panel.get_yticklabels()] == [
        "producer 0",
        "consumer 4",
        "consumer 5",
    ]
    lanes = {0: set(), 1: set(), 2: set()}
    for bar in panel.patches:
        lanes[round(bar.get_y() + bar.get_height() / 2)].add(to_hex(bar.get_facecolor()))
    colour = {name: to_hex(look[0]) for name, look in FIGURE.LOOKS.items()}
    assert lanes[0] == {colour["load"], colour["wait"]}
    assert lanes[1] == lanes[2] == {colour["compute"], colour["store"]}


def test_the_numbers_stand_below_the_lanes_and_both_times_on_the_axes(drawn):
    drawn.draw_without_rendering()  # places the upper axis
    assert [axes.get_title(loc="left").strip() for axes in drawn.axes] == ["warptile", "tma_pipelined"]
    note = below(drawn)
    assert "tma_pipelined (case 4096, SM 0, 3 warps): producer 3 steps ahead" in note
    assert "pipeline bubble at a tile end 1.71 µs (median of 2, the one shown: 1.71 µs)" in note
    assert "overhead 0.40 % (0.20 %)" in note
    panel = next(axes for axes in drawn.axes if axes.get_xlabel().endswith("(µs)"))
    (above,) = panel.child_axes
    assert above.get_xlabel() == "thousand clocks of the SM"
    low, high = panel.get_xlim()
    first, last = above.get_xlim()
    assert (last - first) * 1e3 == pytest.approx((high - low) * MHZ, rel=0.01)


def test_the_title_states_how_long_consumers_wait_and_the_note_the_regime(drawn):
    title, note = (text.replace("\n", " ") for text in (drawn.get_suptitle(), drawn.get_supxlabel()))
    assert re.match(r"Warps of one SM over time: consumers wait [\d.]+ % of their time · sgemm", title)
    assert "one launch after a warm-up (hot: warm L2)" in note


def test_a_build_that_is_faster_with_marks_has_a_negative_overhead():
    tables = with_launches(sgemm(), tma_pipelined=lookback())
    rows = FIGURE.data(tables).assign(overhead_pct=-0.61)
    assert "−0.61 %" in below(FIGURE.draw(rows, style.look(tables)))


def test_one_step_is_singular(tables):
    assert "producer 1 step ahead" in below(
        FIGURE.draw(FIGURE.data(tables).assign(lead_steps=1.0), style.look(tables))
    )


def test_a_variant_that_failed_is_a_labelled_gap(drawn):
    assert "crashed: illegal address" in texts(drawn)


def test_look_back_waits_are_drawn_by_slot():
    tables = with_launches(sgemm(), tma_pipelined=lookback())
    rows = FIGURE.data(tables)
    assert set(rows["region"]) == {"load", "sync", "lookback", "store"}
    figure = FIGURE.draw(rows, style.look(tables))
    panel = next(axes for axes in figure.axes if axes.get_xlabel().endswith("(µs)"))
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == ["slot 0, worker 0", "slot 0, worker 1", "slot 1, worker 0", "slot 1, worker 1"]
    assert "look-back 1.14 µs" in below(figure)
    assert figure.get_suptitle().startswith("Warps of one SM over time: a look-back takes 1.14 µs ·")


def test_of_many_warps_one_of_each_kind_is_drawn_per_slot_and_the_note_says_so():
    made = pipelined(starts={0: 2**32 - 5_000})
    step = [(1_000 * i, "compute" if i % 2 else "wait") for i in range(40)]
    for warp in range(6, 22):
        made.warp(20 + warp, 0, 0, warp, 0, 41_000, [(clock + 100, region) for clock, region in step])
    tables = with_launches(sgemm(), tma_pipelined=made)
    rows = FIGURE.data(tables)
    assert (rows["lane"].nunique(), rows["lanes"].iloc[0]) == (3, 19)
    assert "3 of 19 warps" in below(FIGURE.draw(rows, style.look(tables)))


def test_without_regions_there_is_nothing_to_show():
    assert FIGURE.data(sgemm()).empty
    assert FIGURE.data(with_launches(sgemm(), warptile="illegal address")).empty


def test_no_text_is_too_small_or_beyond_the_edge(drawn):
    drawn.draw_without_rendering()
    box = drawn.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < drawn.get_figwidth() + 0.05
    assert box.y1 < drawn.get_figheight() + 0.05
    assert min(t.get_fontsize() for t in drawn.findobj(Text) if t.get_text()) >= 8


def test_in_one_column_the_lanes_have_most_of_the_width_and_no_text_is_beyond_the_edge(tables):
    settings = settings_of(FigureSettings(style="paper", width_in=3.3))
    figure = FIGURE.draw(FIGURE.data(tables), style.look(tables, settings))
    with style.theme(settings):
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
    assert figure.get_figwidth() == 3.3
    assert (box.x0, box.x1) == pytest.approx((0, 3.3), abs=0.12)
    lanes = [axes for axes in figure.axes if axes.patches]
    assert lanes
    assert min(axes.get_position().width for axes in lanes) > 0.6
    (legend,) = figure.findobj(Legend)
    assert legend.get_window_extent().x1 < figure.bbox.x1


def test_the_script_draws_it_from_tables_on_disk(tables, tmp_path):
    write(tables, tmp_path / "tables", "csv")
    plot(["swim_lanes"], tmp_path / "tables", tmp_path / "sgemm")
    rows = pd.read_csv(tmp_path / "sgemm" / "swim_lanes.csv")
    assert {"producer", "consumer"} <= set(rows["role"].dropna())
    assert (tmp_path / "sgemm" / "swim_lanes.png").read_bytes().startswith(b"\x89PNG")


def test_of_several_bubbles_the_one_closest_to_the_median_is_shown():
    made = pipelined(starts={0: 1000})
    steps, clock = [], 0
    for stored in (9000, 200, 3000):  # the first and the second are far from the median
        steps += [(clock, "compute"), (clock + 1000, "store")]
        clock += 1000 + stored
    steps += [(clock, "compute")]
    for warp in (4, 5):
        made.warp(warp, 0, 0, warp, 0, clock + 1000, steps)
    rows = FIGURE.data(with_launches(sgemm(), tma_pipelined=made))
    assert rows["shown_us"].iloc[0] == pytest.approx(3000 / MHZ, rel=0.01)
    assert rows["bubble_us"].iloc[0] == pytest.approx(3000 / MHZ, rel=0.01)


def test_warps_are_called_consumers_only_where_their_rows_are():
    tables = with_launches(sgemm(), tma_pipelined=pipelined())
    rows = FIGURE.data(tables).assign(role="worker")
    figure = FIGURE.draw(rows, style.look(tables))
    assert figure.get_suptitle().startswith("Warps of one SM over time: warps wait ")
    assert "consumer" not in below(figure)


def test_a_hand_over_between_blocks_is_not_called_a_bubble():
    tables = with_launches(sgemm(), tma_pipelined=pipelined())
    rows = FIGURE.data(tables)
    handed = rows.assign(region=rows["region"].replace("store", "handover"))
    note = below(FIGURE.draw(handed, style.look(tables)))
    assert "gap in computing at a tile end or a hand-over 1.71 µs (median of 2," in note
    assert "bubble" not in note
