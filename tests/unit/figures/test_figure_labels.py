"""Text in figures: width, overlap, number of digits, remarks."""

import numpy as np
import pandas as pd
import pytest

from figure_tables import sgemm
from warplog.plotting import style
from warplog.plotting.labels import fit, number, spread, text_width_in, tick, wrap


def test_labels_are_spread_without_overlap_and_stay_near():
    placed = spread([0.5, 0.5, 0.52, 0.9], 0.1, 0.0, 1.0)
    assert np.all(np.diff(sorted(placed)) >= 0.1 - 1e-9)
    assert placed[3] == pytest.approx(0.9)
    assert sum(placed[:3]) / 3 == pytest.approx((0.5 + 0.5 + 0.52) / 3)
    assert min(spread([0.0, 0.0], 0.3, 0.0, 1.0)) == 0
    assert spread([0.4, 0.2], 0.1, 0.0, 1.0) == pytest.approx([0.4, 0.2])


@pytest.mark.parametrize(
    ("value", "text"),
    [(51200.0, "51\u2009200"), (99.97, "100"), (12.5, "12.5"), (0.0833, "0.0833"), (0, "0"), (np.nan, "n/a")],
)
def test_numbers_keep_three_digits(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(5.0, "5"), (12.5, "12.5"), (0.1, "0.1"), (20000, "20\u2009000")]
)
def test_ticks_have_no_more_digits_than_they_need(value, text):
    assert tick(value) == text


def test_long_text_is_wrapped_or_cut():
    lines = wrap("word " * 60, 3.0)
    assert len(lines) > 1
    assert max(map(text_width_in, lines)) <= 3.0
    assert fit("short", 3.0) == "short"
    assert text_width_in(fit("x" * 300, 2.0)) <= 2.0
    assert fit("x" * 300, 2.0).endswith("…")


def test_a_title_stays_within_the_figure_as_rendered():
    title = "Memory chart: register_reuse moves as much as tma_pipelined within 10 % · sgemm, case 4096"
    look = style.look(sgemm())
    with style.theme(look.settings):
        figure = style.new_figure(title, 2.0, "", look)
        figure.set_dpi(style.PNG_DPI)
        figure.draw_without_rendering()
        edge = figure.findobj(lambda one: getattr(one, "get_text", str)().startswith("Memory"))[
            0
        ].get_window_extent()
    assert edge.x1 <= figure.bbox.x1


def test_remarks_about_times_and_others_are_told_apart_and_merged():
    reasons = [
        "47 samples below 1485 MHz",
        "100 samples below 1485 MHz; tuned elsewhere",
        "",
        "tuned elsewhere",
    ]
    ladder = pd.DataFrame({"variant": list("abcd"), "status": ["ok", "ok", "ok", "wrong"], "reason": reasons})
    assert style.remarks(ladder, about_timing=True) == ["samples below 1485 MHz (b 100, a 47)"]
    assert style.remarks(ladder, about_timing=False) == ["b: tuned elsewhere"]


@pytest.mark.parametrize(
    ("reasons", "remark"),
    [
        (["1 samples below 1485 MHz"], "a: 1 sample below 1485 MHz"),
        (
            [
                "40 of 60 launches discarded: set SM clock below 1960 MHz",
                "3 of 80 launches discarded: set SM clock below 1960 MHz",
            ],
            "launches discarded: set SM clock below 1960 MHz (a 40 of 60, b 3 of 80)",
        ),
        (
            ["1 of 60 launches discarded: set SM clock below 1960 MHz"] * 2,
            "all variants: each 1 of 60 launches discarded: set SM clock below 1960 MHz",
        ),
        (
            ["1 sample below 1485 MHz", "3 samples below 1485 MHz"],
            "samples below 1485 MHz (b 3, a 1)",
        ),
    ],
)
def test_a_footer_gives_the_count_of_each_variant(reasons, remark):
    ladder = pd.DataFrame({"variant": list("ab")[: len(reasons)], "status": "ok", "reason": reasons})
    assert style.remarks(ladder, about_timing=True) == [remark]


def test_a_footer_names_the_variants_with_the_largest_shares():
    counts = ["1 of 60", "12 of 70", "12 of 60", "2 of 60", "3 of 60"]
    reasons = [f"{count} launches discarded: set SM clock below 1960 MHz" for count in counts]
    ladder = pd.DataFrame({"variant": list("abcde"), "status": "ok", "reason": reasons})
    assert style.remarks(ladder, about_timing=True) == [
        "launches discarded: set SM clock below 1960 MHz (c 12 of 60, b 12 of 70, e 3 of 60, fewer in 2 more)"
    ]


def test_a_remark_names_its_variants_and_counts_those_that_do_not_fit():
    ladder = pd.DataFrame({"variant": list("abcdefg"), "status": "ok", "reason": "tuned elsewhere"})
    ladder.loc[ladder["variant"] == "a", "reason"] = ""
    assert style.remarks(ladder, about_timing=False) == ["b, c, d and 3 more: tuned elsewhere"]
    assert style.remarks(ladder.head(5), about_timing=False) == ["b, c, d and e: tuned elsewhere"]
