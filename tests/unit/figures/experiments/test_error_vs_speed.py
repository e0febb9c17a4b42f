"""The figure of error and speed by type: what it shows, what it leaves out, and that its names can be read."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from figure_tables import sgemm
from made_up_tables import MadeUpTables
from warplog import figures
from warplog.figures.shared import style
from warplog.figures.shared.settings import settings_of
from warplog.records.config import FigureSettings

FLOPS = 2.0 * 4096**3
# TFLOP/s of the library and of two kernels, and the error that all share.
TYPES = {
    "fp32": (51, None, None, 2e-5), "tf32": (400, 100, 370, 1.8e-3), "fp16": (740, 300, 650, 1.9e-3),
    "fp16acc16": (760, 310, 700, 5e-2), "bf16": (750, 300, 660, 1.5e-2), "int8": (1300, 400, 1150, 4e-2),
    "fp8": (1350, None, 1200, 0.24),
}  # fmt: skip
VARIANTS = ("cublas", "wmma", "wgmma")
MODULE = figures.module("error_vs_speed")
COLUMN = settings_of(FigureSettings(style="paper", width_in=3.3))


def made(statuses=(), **error):
    """Made-up tables; `statuses` by variant and type, `error` in place of all errors."""
    tables, bad = MadeUpTables(), dict(statuses)
    for place, name in enumerate(VARIANTS):
        tables.variant("types", name, place, len(VARIANTS), "4096-bf16", is_baseline=name == "cublas")
        for kind, (*rates, largest) in TYPES.items():
            rate = rates[place]
            status = bad.get((name, kind), "ok" if rate else "unsupported")
            facts = {"max_error_over_scale": largest if status == "ok" else np.nan, **error}
            tables.measured(
                "types",
                name,
                f"4096-{kind}",
                4096,
                FLOPS / (rate or 1) / 1e6,
                FLOPS,
                1e8,
                status=status,
                **facts,
            )
        tables.measured("types", name, "8192-bf16", 8192, 1e3, 8 * FLOPS, 4e8, max_error_over_scale=0.5)
    return tables.tables(types="cublas")


@pytest.fixture(scope="module")
def tables():
    return made()


def drawn(tables, settings=COLUMN):
    return MODULE.draw(MODULE.data(tables), style.look(tables, settings))


def named(figure):
    return {text.get_text(): text for text in figure.axes[0].texts}


def test_there_is_a_point_for_each_type_and_variant_at_the_size_of_the_headline_case(tables):
    rows = MODULE.data(tables)
    assert set(rows["type"]) == set(TYPES), "not the case of another size"
    point = rows[(rows["variant"] == "wgmma") & (rows["type"] == "int8")].iloc[0]
    assert (point["gflops"], point["max_error_over_scale"]) == (pytest.approx(1.15e6), 4e-2)
    marks = [point for line in drawn(tables).axes[0].lines for point in zip(*line.get_data(), strict=True)]
    for expected in ((51.0, 2e-5), (1200.0, 0.24)):
        assert any(mark == pytest.approx(expected) for mark in marks)
    assert set(named(drawn(tables))) == set(TYPES)


def test_the_title_says_what_the_fastest_type_gains_and_costs(tables):
    title = MODULE.draw(MODULE.data(tables), style.look(tables)).get_suptitle().replace("\n", " ")
    assert title == "fp8 is 1.80 times as fast as bf16, with 16.0 times the error · types, size 4096"
    best = tables.measurements.assign(
        gflops=tables.measurements["gflops"].where(tables.measurements["case"] == "4096-bf16", 1.0)
    )
    assert (
        MODULE.draw(MODULE.data(replace(tables, measurements=best)), style.look(tables))
        .get_suptitle()
        .startswith(MODULE.TITLE)
    )


def test_failed_types_are_named_and_unsupported_ones_are_not():
    note = drawn(made({("wgmma", "int8"): "wrong", **{("wmma", kind): "compile_error" for kind in TYPES}}))
    words = note.get_label().splitlines()[-1]
    assert "; wgmma in int8: wrong" in words
    assert "; wmma: compile error" in words
    assert "cublas" not in words
    assert "unsupported" not in words


def test_without_errors_or_a_second_type_there_is_nothing_to_show(tables):
    assert MODULE.data(made(max_error_over_scale=np.nan)).empty
    assert MODULE.data(sgemm()).empty, "tables of an earlier release"
    one = tables.measurements[tables.measurements["case"] == "4096-bf16"]
    assert MODULE.data(replace(tables, measurements=one)).empty


@pytest.mark.parametrize("width_in", [3.3, 7.2])
def test_the_names_of_types_are_apart_and_inside(tables, width_in):
    settings = settings_of(FigureSettings(style="paper", width_in=width_in))
    figure = drawn(tables, settings)
    with style.theme(settings):
        FigureCanvasAgg(figure).draw()
        renderer = figure.canvas.get_renderer()
        boxes = {name: text.get_window_extent(renderer) for name, text in named(figure).items()}
        whole = figure.bbox.padded(2)
    assert figure.get_figwidth() == width_in
    assert all(whole.contains(*corner) for box in boxes.values() for corner in box.get_points())
    assert [
        pair for pair in itertools.combinations(boxes, 2) if boxes[pair[0]].overlaps(boxes[pair[1]])
    ] == []
