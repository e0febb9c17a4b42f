"""Colours of the figures: one per variant in all figures, distinguishable in grey and with deuteranopia."""

import itertools

import numpy as np
import pandas as pd
import pytest
from drawn_figures import MODULES, drawn
from matplotlib.colors import to_hex, to_rgb

from figure_tables import SGEMM, sgemm, twenty
from warplog.figures.shared import style
from warplog.metrics import STALL_REASONS

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")


def colours(figure, name, variant, variants):
    """The colours in which a figure draws a variant: its bars, or its marker in the margin."""
    axes = figure.axes[0]
    if name in ("ladder", "occupancy", "timeline"):
        place = list(variants).index(variant)
        rows = [p for p in axes.patches if abs(p.get_y() + p.get_height() / 2 - place) < 0.01]
        return {to_hex(p.get_facecolor()) for p in rows if p.get_fill() and p.get_facecolor()[3] > 0}
    label = next(t for t in axes.texts if t.get_text().split("  ")[0] == variant)
    height = label.xyann[1]
    keys = [k for k in axes.lines if k.get_transform() == axes.transAxes and k.get_ydata()[0] == height]
    return {to_hex(k.get_color()) for k in keys}


def machado(colour):
    """A colour as seen with deuteranopia (Machado, Oliveira and Fernandes 2009, severity 1), linear RGB."""
    matrix = np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    )
    return np.clip(matrix @ linear(colour), 0, 1)


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lightness(light):
    return 116 * np.cbrt(light @ [0.2126, 0.7152, 0.0722]) - 16


@pytest.mark.parametrize("name", ["ladder", "occupancy", "timeline", "throughput_vs_size", "roofline"])
def test_a_variant_has_one_colour_in_all_figures_and_when_others_are_left_out(name, good):
    some = sgemm(names=("naive", "warptile", "cublas"))
    expected = {to_hex(style.look(good).style("naive").colour)}
    assert colours(drawn(name, good), name, "naive", good.variants["variant"]) >= expected
    assert colours(drawn(name, some), name, "naive", some.variants["variant"]) >= expected


def test_a_long_ladder_shows_its_main_path_in_colour_and_names_the_others_below(good):
    chosen = set(style.look(good).highlighted)
    parents = dict(good.variants[["variant", "parent"]].itertuples(index=False))
    path = ["tma_pipelined"]  # the fastest besides the baseline
    while parents[path[-1]] in parents:
        path.append(parents[path[-1]])
    assert chosen == {*path, "cublas"}
    for name in ("roofline", "throughput_vs_size"):
        figure = drawn(name, good)
        labels = {text.get_text().split("  ")[0] for text in figure.axes[0].texts}
        assert labels & set(SGEMM) == chosen, "one choice for all figures"
        note = figure.get_supxlabel().replace("\n", " ").partition("grey: ")[2].split(", ")
        assert set(note) == set(SGEMM) - labels


def test_a_short_ladder_and_one_without_a_time_have_no_grey_variants():
    assert set(style.look(sgemm(names=("naive", "warptile", "cublas"))).highlighted) == {
        "naive",
        "warptile",
        "cublas",
    }
    assert set(style.look(sgemm(dict.fromkeys(SGEMM, "wrong"))).highlighted) == set(SGEMM)


def test_colours_keep_their_place_without_the_last_variant_if_the_ladder_is_known():
    ladder = pd.DataFrame({"variant": ["a", "b"], "order": [0, 1], "is_baseline": [False, False], "rungs": 9})
    longer = pd.concat(
        [ladder, pd.DataFrame([{"variant": "z", "order": 8, "is_baseline": True, "rungs": 9}])]
    )
    assert style.variant_styles(ladder)["b"] == style.variant_styles(longer)["b"]


@pytest.mark.parametrize("tables", [sgemm(), twenty()], ids=["seventeen", "twenty"])
def test_ladder_order_can_be_read_in_grey_and_with_deuteranopia(tables):
    styles = list(style.look(tables).styles.values())
    kernels = [s for s in styles if not s.hatch]
    for seen in (linear, machado):
        steps = np.diff([lightness(seen(s.colour)) for s in kernels])
        assert (steps < -1.5).all(), "each variant is visibly darker than the one before"
    assert len({(s.marker, s.dashes) for s in styles}) == len(styles)
    assert sum(1 for s in styles if s.hatch) == 1


def test_stall_reasons_of_the_registry_all_have_a_look_of_their_own():
    reasons = MODULES["warp_stalls"].REASONS
    assert set(STALL_REASONS) <= set(reasons)
    for seen in (linear, machado):
        shades = [(hatch, lightness(seen(colour))) for colour, hatch in reasons.values()]
        pairs = [abs(a[1] - b[1]) for a, b in itertools.combinations(shades, 2) if a[0] == b[0]]
        assert min(pairs) > 7, "reasons of one hatch differ in lightness, in grey and with deuteranopia"
