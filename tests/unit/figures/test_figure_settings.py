"""Figures for a document: style, width, font, titles and formats, and that narrow figures can be read."""

import itertools
import re
from dataclasses import replace

import pytest
from drawn_figures import FIGURES
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from PIL import Image
from plotted import plot

from figure_tables import FEW, sgemm
from made_up_tables import write
from warplog import figures
from warplog.core.errors import WarplogError
from warplog.figures.shared import style
from warplog.figures.shared.labels import TITLE_PT
from warplog.figures.shared.settings import for_pages, settings_of
from warplog.records import door
from warplog.records.config import Config, FigureSettings

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")
COLUMN = settings_of(FigureSettings(style="paper", width_in=3.3))


def drawn(name, tables, settings):
    module = figures.module(name)
    return module.draw(module.data(tables), style.look(tables, settings))


def visible_texts(figure):
    """The texts with their boxes in pixels, without the labels of ticks that are outside of their axis."""
    renderer = figure.canvas.get_renderer()
    axes = [axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)]
    ticks = [(axis, tick) for axis in axes for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks())]
    hidden = {
        tick.label1
        for axis, tick in ticks
        if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    }
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [
        (text.get_text(), Text.get_window_extent(text, renderer)) for text in texts if text not in hidden
    ]
    return [(text, box) for text, box in boxes if box.width > 1]


def overlapping(figure):
    """The pairs of texts of which one covers more than a pixel of the other, in both directions."""
    pairs = itertools.combinations(visible_texts(figure), 2)
    return [
        (a, b)
        for (a, box), (b, other) in pairs
        if min(box.x1, other.x1) - max(box.x0, other.x0) > 1.5
        and min(box.y1, other.y1) - max(box.y0, other.y0) > 1.5
    ]


@pytest.mark.parametrize("titles", [False, True], ids=["untitled", "titled"])
@pytest.mark.parametrize("name", [*FIGURES, "memory_chart"])
def test_text_of_a_figure_for_one_column_is_inside_of_it_legible_and_apart(name, titles, good):
    settings = replace(COLUMN, titles=titles)
    figure = drawn(name, good, settings)
    with style.theme(settings):
        FigureCanvasAgg(figure).draw()
        inside = figure.bbox.padded(2)
        outside = [
            text for text, box in visible_texts(figure) if not all(map(inside.contains, *box.get_points().T))
        ]
        assert (overlapping(figure), outside) == ([], [])
    assert figure.get_figwidth() == 3.3
    sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_text().strip()}
    assert sizes == ({7.0, TITLE_PT} if titles else {7.0})


def written(name, tables, stem, **chosen):
    settings = settings_of(FigureSettings(**chosen))
    return figures.write(name, figures.module(name).data(tables), style.look(tables, settings), stem)


@pytest.fixture(scope="module")
def column(good, tmp_path_factory):
    """Returns the files of a ladder for one column, by their suffixes."""
    stem = tmp_path_factory.mktemp("column") / "sgemm-ladder"
    return {path.suffix: path for path in written("ladder", good, stem, style="paper", width_in=3.3)}


def words_of(svg):
    return set(re.findall(r"<text[^>]*>([^<]*)</text>", svg.read_text(encoding="utf-8")))


def test_pdf_has_the_width_in_inches_and_its_fonts_embedded(column):
    assert column.keys() == {".pdf", ".svg", ".png", ".txt", ".csv"}
    pdf = column[".pdf"].read_bytes()
    width_pt = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)[1])
    assert width_pt == pytest.approx(3.3 * 72)
    named, embedded = (
        len(re.findall(pattern, pdf)) for pattern in (rb"/Type /FontDescriptor", rb"/FontFile2 \d+ 0 R")
    )
    assert named == embedded > 0
    assert b"DejaVuSans" in pdf
    assert b"CreationDate" not in pdf
    with Image.open(column[".png"]) as image:
        assert image.width == 3.3 * 200
    assert 'width="237.6pt"' in column[".svg"].read_text(encoding="utf-8")


def test_figure_without_title_keeps_title_origin_and_notes_for_the_caption(column, good, tmp_path):
    caption = column[".txt"].read_text(encoding="utf-8").splitlines()
    assert caption[0].endswith("% of cublas · sgemm, case 4096")
    assert caption[1].startswith("NVIDIA H200 · recorded campaign synthetic")
    assert "medians with a cold L2" in caption[2]
    assert not words_of(column[".svg"]) & set(caption)
    written("ladder", good, tmp_path / "with_title", style="paper", titles=True, formats=("svg",))
    assert caption[0] in (tmp_path / "with_title.svg").read_text(encoding="utf-8")
    assert not (tmp_path / "with_title.txt").exists()


def test_names_of_variants_are_whole_in_one_column(good, tmp_path):
    name = "vectorized_untransposed"
    rows = good.variants.replace({"variant": {"autotuned": name}})
    measured = good.measurements.replace({"variant": {"autotuned": name}, "parent": {"autotuned": name}})
    tables = replace(good, variants=rows, measurements=measured)
    written("ladder", tables, tmp_path / "x", style="paper", width_in=3.3, formats=("svg",))
    assert f">{name}<" in (tmp_path / "x.svg").read_text(encoding="utf-8")


def test_values_are_those_of_the_tables_at_any_width(column, good):
    shown = words_of(column[".svg"])
    rows = good.ladder("4096").set_index("variant")
    assert f"{rows.loc['warptile', 'gflops'] / 1e3:.1f}" in shown
    assert "TFLOP/s" in shown
    assert "×1.16" in shown
    assert rows.loc["autotuned", "median_us"] / rows.loc["warptile", "median_us"] == pytest.approx(
        1.16, abs=0.005
    )


def test_dark_figure_has_light_text_on_a_dark_ground_and_keeps_hues(good, tmp_path):
    light, dark = style.look(good), style.look(good, settings_of(FigureSettings(style="dark")))
    module = figures.module("ladder")
    for name, look in (("light", light), ("dark", dark)):
        figure = module.draw(module.data(good), look)
        style.save(figure, tmp_path / f"{name}.png", tmp_path / f"{name}.svg", settings=look.settings)
    with Image.open(tmp_path / "dark.png") as image:
        ground = image.convert("RGB").getpixel((0, 0))
    assert max(ground) < 40
    fills = [
        set(re.findall(r"fill: (#\w{6})", (tmp_path / f"{name}.svg").read_text()))
        for name in ("light", "dark")
    ]
    assert "#ffffff" in fills[0] - fills[1]
    assert "#222222" in fills[0] - fills[1], "no ink is left on the dark ground"


def test_unknown_font_is_an_error_that_names_it_and_what_there_is(good, tmp_path):
    with pytest.raises(
        WarplogError, match=r"figures.font: 'DejaVu Sanz' is not installed; did you mean 'DejaVu Sans'"
    ):
        written("ladder", good, tmp_path / "x", font="DejaVu Sanz")
    assert not list(tmp_path.iterdir())


def test_another_font_and_size_are_used(good, tmp_path):
    written("occupancy", good, tmp_path / "x", font="DejaVu Serif", font_pt=9.5, formats=("svg",))
    source = (tmp_path / "x.svg").read_text(encoding="utf-8")
    sizes, fonts = (
        set(re.findall(pattern, source)) for pattern in (r"font-size: (\S+);", r"font-family: '(.*?)'")
    )
    assert (sizes, fonts) == ({"9.5px", "10px"}, {"DejaVu Serif"}), "the title has 10 points"


def test_changed_settings_draw_again_and_files_that_are_not_wanted_go(tmp_path, sharp):
    tables, folder = tmp_path / "tables", tmp_path / "sgemm"
    write(sgemm(names=FEW), tables)
    plot(["ladder"], tables, folder, COLUMN)
    assert {path.name for path in folder.glob("[a-z]*")} == {
        f"ladder.{e}" for e in ("png", "svg", "pdf", "txt", "csv")
    }
    plot(["ladder"], tables, folder)
    assert {path.name for path in folder.glob("[a-z]*")} == {f"ladder.{e}" for e in ("png", "svg", "csv")}
    with Image.open(folder / "ladder.png") as image:
        assert image.width == 7.2 * 200


def test_workflow_writes_the_png_that_pages_show_whatever_the_formats_are():
    assert for_pages(settings_of(FigureSettings(formats=("pdf",)))).formats == ("png", "pdf")
    assert for_pages(settings_of(FigureSettings(style="paper"))).formats == ("png", "pdf", "svg")


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"style": "print"}, r"config: figures.style: 'print' is not one of dark, paper, web"),
        ({"width_in": 1}, r"config: figures.width_in: 1 is less than the minimum of 3"),
        ({"width": 3.3}, r"config: figures: unknown key 'width'; did you mean 'width_in'\?"),
        ({"formats": ["svg", "svg"]}, r'config: figures.formats: \["svg","svg"\] has non-unique elements'),
        ({"formats": ["gif"]}, r"config: figures.formats.0: 'gif' is not one of pdf, png, svg"),
    ],
)
def test_a_setting_that_is_not_valid_is_an_error_with_its_place(chosen, message):
    with pytest.raises(WarplogError, match=message):
        door.decode({"figures": chosen}, Config, "config")
