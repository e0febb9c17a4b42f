"""Text in figures: width, overlap, number of digits, remarks."""

import numpy as np
import pandas as pd
import pytest

from figure_tables import sgemm
from warplog.figures.shared import style
from warplog.figures.shared.labels import fit, number, spread, text_width_in, tick, wrap
from warplog.records import remarks as coded


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
        edge = figure.findobj(lambda artist: getattr(artist, "get_text", str)().startswith("Memory"))[
            0
        ].get_window_extent()
    assert edge.x1 <= figure.bbox.x1


ELSEWHERE = coded.NotTuned(gpu="h200")


def discarded(dropped, taken):
    return coded.Discarded(dropped=dropped, taken=taken, below_mhz=1960.2)


def ladder_with(*remarks, status="ok"):
    cells = [coded.cell(remark) for remark in remarks]
    return pd.DataFrame({"variant": list("abcdefg")[: len(cells)], "status": status, "remarks": cells})


def test_remarks_about_times_and_others_are_told_apart_and_merged():
    few = coded.FewSamples(samples=4)
    ladder = ladder_with(
        [discarded(47, 60)], [few, ELSEWHERE], [], [ELSEWHERE], status=["ok"] * 3 + ["wrong"]
    )
    assert style.remarks(ladder, about_timing=True) == [
        "a: 47 of 60 launches discarded: set SM clock below 1960 MHz",
        "b: only 4 samples",
    ]
    assert style.remarks(ladder, about_timing=False) == ["b: default parameters: not tuned on h200"]


@pytest.mark.parametrize(
    ("remarks", "remark"),
    [
        (
            [coded.NotBlocked(samples=1)],
            "a: 1 sample not blocked: the launcher synchronises",
        ),
        (
            [discarded(40, 60), discarded(3, 80)],
            "launches discarded: set SM clock below 1960 MHz (a 40 of 60, b 3 of 80)",
        ),
        (
            [discarded(1, 60)] * 2,
            "all variants: each 1 of 60 launches discarded: set SM clock below 1960 MHz",
        ),
        (
            [coded.NotBlocked(samples=1), coded.NotBlocked(samples=3)],
            "samples not blocked: the launcher synchronises (b 3, a 1)",
        ),
    ],
)
def test_a_footer_gives_the_count_of_each_variant(remarks, remark):
    assert style.remarks(ladder_with(*([each] for each in remarks)), about_timing=True) == [remark]


def test_a_footer_names_the_variants_with_the_largest_shares():
    counts = [(1, 60), (12, 70), (12, 60), (2, 60), (3, 60)]
    ladder = ladder_with(*([discarded(*count)] for count in counts))
    assert style.remarks(ladder, about_timing=True) == [
        "launches discarded: set SM clock below 1960 MHz (c 12 of 60, b 12 of 70, e 3 of 60, fewer in 2 more)"
    ]


def test_a_remark_names_its_variants_and_counts_those_that_do_not_fit():
    ladder, words = ladder_with([], *[[ELSEWHERE]] * 6), "default parameters: not tuned on h200"
    assert style.remarks(ladder, about_timing=False) == [f"b, c, d and 3 more: {words}"]
    assert style.remarks(ladder.head(5), about_timing=False) == [f"b, c, d and e: {words}"]
