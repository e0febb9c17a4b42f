"""All figures: their text, how they show gaps, and that they are reproducible."""

import re
import xml.dom.minidom
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pandas as pd
import pytest
from docutils.core import publish_parts
from drawn_figures import FAILED, FIGURES, MODULES, drawn, row, shown, texts
from matplotlib.text import Text
from PIL import Image
from plotted import plot

from figure_tables import FEW, SGEMM, overlap, sgemm, twenty, vector_add
from made_up_tables import write
from warplog import figures
from warplog.core.errors import WarplogError
from warplog.figures.shared import style
from warplog.tables import view

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")
ROOT = Path(__file__).parents[3]
UNITS = {
    "bank_conflicts": ("wavefronts (%)", None),
    "instruction_mix": ("(%)", None),
    "ladder": ("% of cublas", None),
    "occupancy": ("% of the warps", None),
    "overlap": ("(ms)", None),
    "quantization": ("elements", "TFLOP/s"),
    "roofline": ("FLOP per byte", "TFLOP/s"),
    "throughput_vs_size": ("elements", "TFLOP/s"),
    "timeline": ("(ms)", None),
    "warp_stalls": ("(%)", None),
}

# They have tests of their own.
ELSEWHERE = [
    "chains_x_warps",
    "claims",
    "error_vs_speed",
    "hierarchy",
    "lanes_over_banks",
    "lanes_over_sectors",
    "latency_vs_footprint",
    "memory_chart",
    "owners",
    "power_trace",
    "stride_curve",
    "swim_lanes",
    "tile_order",
    "tile_schedule",
]
TIMED = ("ladder", "quantization", "roofline", "throughput_vs_size")  # figures of the times of launches


def test_every_figure_is_found_and_asks_a_question():
    assert sorted(figures.needs()) == sorted(FIGURES + ELSEWHERE)
    for module in MODULES.values():
        assert module.__doc__.rstrip().endswith("?")
        assert module.TITLE


@pytest.mark.parametrize("name", [*FIGURES, *ELSEWHERE])
def test_caption_in_the_report_is_a_text(name):
    params = SimpleNamespace(captions=ROOT / "workflow" / "report")
    snakemake = SimpleNamespace(wildcards=SimpleNamespace(figure=name, family="sgemm"), params=params)
    template = (ROOT / "workflow/report/figure.rst").read_text(encoding="utf-8")
    text = jinja2.Environment(autoescape=False).from_string(template).render(snakemake=snakemake)
    body = publish_parts(text, writer="html")["body"]
    assert "sgemm" in body
    assert "System Message" not in body
    assert len(re.sub("<[^>]*>", "", body)) > 200


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_units_and_the_stamp_tells_the_origin(name, good):
    figure = shown(name, good)
    x_unit, y_unit = UNITS[name]
    assert x_unit in figure.axes[0].get_xlabel()
    assert y_unit is None or y_unit in figure.axes[0].get_ylabel()
    stamp = figure.get_supxlabel()
    assert "NVIDIA H200" in stamp
    assert "recorded campaign synthetic" in stamp
    assert ("mean SM clock 1967–1978 MHz" in stamp) == (name in TIMED)
    assert "sgemm" in figure.get_suptitle()
    assert figure.get_figwidth() == pytest.approx(7.2)


ODD = {
    "twenty": (twenty(), FIGURES),
    "one": (sgemm(names=("warptile",)), ("ladder", "warp_stalls")),
    "all_wrong": (sgemm(dict.fromkeys(SGEMM, "wrong")), TIMED),
    "no_baseline": (vector_add(), TIMED),
    "streams": (overlap(), ("overlap", "timeline")),
}


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        pytest.param(name, tables, id=f"{family}-{name}")
        for family, (tables, names) in ODD.items()
        for name in names
        if len(figures.data(name, tables))
    ],
)
def test_every_variant_is_named_in_a_text_that_is_large_enough_and_inside_of_the_figure(name, tables):
    figure = drawn(name, tables)
    figure.get_layout_engine().execute(figure)  # one that does not fit warns, and warnings are errors here
    words = " ".join(texts(figure))
    assert all(variant in words for variant in tables.variants["variant"])
    assert min(t.get_fontsize() for t in figure.findobj(Text) if t.get_text()) >= 8
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < figure.get_figwidth() + 0.05
    assert box.y1 < figure.get_figheight() + 0.05


@pytest.mark.parametrize("name", FIGURES)
def test_failed_variants_are_labelled_gaps(name, failed):
    rows = MODULES[name].data(failed)
    for variant, words in (("bank_swizzled", "wrong"), ("split_k", "compile error")):
        own = rows[rows["variant"] == variant]
        assert own["gap"].str.startswith(words).all()
        numbers = own.select_dtypes("number").drop(columns=["order", "size", "peak"], errors="ignore")
        assert numbers.isna().all(axis=None), "a failed variant has no numbers, and no zeros"
        assert any(words in text for text in texts(shown(name, failed)))


@pytest.mark.parametrize(
    "name", ["roofline", "warp_stalls", "occupancy", "bank_conflicts", "instruction_mix"]
)
def test_denied_counters_are_not_available_rather_than_zero(name, failed):
    assert row(name, failed, "autotuned")["gap"] == "n/a (denied)"
    assert any("n/a (denied)" in text for text in texts(shown(name, failed)))


def test_a_variant_without_rows_was_not_measured(good):
    without = good.measurements[good.measurements["variant"] != "warptile"]
    tables = replace(good, measurements=without)
    assert row("ladder", tables, "warptile")["gap"] == "not measured"


def test_script_writes_three_files_that_are_the_same_each_time_from_either_form_of_the_tables(tmp_path):
    names = (*FEW, "bank_swizzled", "split_k")  # of which two failed
    for suffix in ("parquet", "csv"):
        write(sgemm(FAILED, names=names), tmp_path / suffix, suffix)
    for number, form in enumerate(("parquet", "parquet", "csv"), 1):
        plot(["ladder"], tmp_path / form, tmp_path / str(number) / "sgemm")
    first, *others = (
        [(tmp_path / f"{n}/sgemm/ladder.{suffix}").read_bytes() for suffix in ("png", "svg", "csv")]
        for n in (1, 2, 3)
    )
    assert others == [first, first]
    assert first[0].startswith(b"\x89PNG")
    svg = first[1].decode()
    words = set(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    assert {"warptile", "36.3 TFLOP/s"} <= words, "text stays text"
    assert "<dc:date>" not in svg
    table = pd.read_csv(tmp_path / "1/sgemm/ladder.csv", dtype={"case": str})
    assert set(table["variant"].dropna()) == set(names)
    assert {"gpu_name", "origin", "campaign"} <= set(table.columns)


def test_only_what_changed_is_drawn_again(tmp_path):
    tables, folder = tmp_path / "tables", tmp_path / "sgemm"
    write(sgemm(names=FEW), tables)

    def drawn_again(names, version=1):
        before = {path: path.stat().st_mtime_ns for path in folder.glob("*.png")}
        plot(names, tables, folder, version=version)
        return {path.stem for path in folder.glob("*.png") if before.get(path) != path.stat().st_mtime_ns}

    assert drawn_again(["ladder", "occupancy"]) == {"ladder", "occupancy"}
    assert drawn_again(["ladder", "occupancy"]) == set()
    other = sgemm(names=FEW)
    other.metrics.loc[other.metrics["metric"] == "achieved_occupancy_pct", "value"] = 12.0
    write(other, tables)
    assert drawn_again(["ladder", "occupancy"]) == {"occupancy"}
    (folder / "ladder.svg").unlink()
    assert drawn_again(["ladder", "occupancy"]) == {"ladder"}
    assert drawn_again(["ladder"], version=2) == {"ladder"}
    assert {path.stem for path in folder.glob("[a-z]*")} == {"ladder"}, "the other figure is removed"


def test_a_figure_that_has_nothing_to_show_is_not_drawn_and_an_old_one_goes(tmp_path):
    tables = sgemm(names=("naive", "warptile"))
    write(replace(tables, metrics=tables.metrics.iloc[:0]), tmp_path / "tables", "csv")
    folder = tmp_path / "sgemm"
    folder.mkdir()
    (folder / "bank_conflicts.png").write_bytes(b"old")
    plot(["ladder", "bank_conflicts"], tmp_path / "tables", folder)
    assert {path.name for path in folder.iterdir()} == {
        ".drawn.json",
        "ladder.csv",
        "ladder.png",
        "ladder.svg",
    }


def test_figures_do_not_change_matplotlib_for_others(good):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    drawn("ladder", good)
    assert dict(mpl.rcParams) == before


def test_unknown_figure_or_family_names_what_there_is(tmp_path):
    write(vector_add(), tmp_path)
    sgemm, vectors = (tmp_path / family for family in ("sgemm", "vector_add"))
    with pytest.raises(
        WarplogError, match=r"\.\./secrets: no such figure; there are bank_conflicts, chains_x_warps, claims"
    ):
        plot(["../secrets"], tmp_path, vectors)
    with pytest.raises(WarplogError, match="sgemm: no such family; the table contains vector_add"):
        plot(["ladder"], tmp_path, sgemm)
    with pytest.raises(WarplogError, match=r"elsewhere/measurements.parquet: no such table; run"):
        plot(["ladder"], tmp_path / "elsewhere", vectors)


def test_damaged_tables_are_refused_in_one_line(tmp_path):
    write(vector_add(), tmp_path)
    (tmp_path / "metrics.parquet").write_bytes(b"PAR1 not a table")
    with pytest.raises(WarplogError, match=r"metrics.parquet: not a readable table") as caught:
        view.load(tmp_path, "vector_add")
    assert "\n" not in str(caught.value)
    write(vector_add(), tmp_path)
    pd.read_parquet(tmp_path / "variants.parquet").drop(columns="order").to_parquet(
        tmp_path / "variants.parquet"
    )
    with pytest.raises(WarplogError, match="lacks the column 'order'"):
        view.load(tmp_path, "vector_add")


@pytest.mark.parametrize("name", ["ladder", "warp_stalls"])
def test_reasons_and_names_from_outside_do_no_harm(tmp_path, name, good):
    long = "a_name_that_is_very_" * 5
    hostile = good.measurements.copy()
    hostile.loc[hostile["variant"] == "naive", "reason"] = "error: $\\frac{$ \x1b[31m<b>&\n" + "long " * 400
    hostile.loc[hostile["variant"] == "naive", "status"] = "compile_error"
    renamed = {
        n: getattr(good, n).replace({"variant": {"warptile": long}})
        for n in ("metrics", "timeline", "variants")
    }
    tables = replace(good, measurements=hostile.replace({"variant": {"warptile": long}}), **renamed)
    figure = drawn(name, tables)
    # All formats draw the same text; one picture in pixels stands for the others.
    style.save(figure, tmp_path / "x.svg", *([tmp_path / "x.png"] if name == "ladder" else []))
    xml.dom.minidom.parse(str(tmp_path / "x.svg"))
    assert any(
        text.startswith(("compile error: error: $\\frac{$", "naive: compile error")) for text in texts(figure)
    )


def test_stamp_repeats_what_the_tables_remark(good):
    stale = good.measurements.copy()
    stale.loc[stale["variant"].isin(["naive", "warptile"]), "remarks"] = '[{"code": "earlier_source"}]'
    line = style.origin_line(replace(good, measurements=stale))
    assert line.endswith("naive and warptile: recorded for an earlier source")


def test_only_figures_of_times_repeat_what_is_remarked_on_them(good):
    rows = good.measurements.assign(
        remarks='[{"code": "discarded", "dropped": 3, "taken": 60, "below_mhz": 1960}]'
    )
    noted = replace(good, measurements=rows)
    notes = {name: drawn(name, noted).get_supxlabel().replace("\n", " ") for name in ("ladder", "occupancy")}
    assert {name for name, note in notes.items() if "launches discarded" in note} == {"ladder"}


def test_pictures_have_few_colours_and_all_that_letters_need(tmp_path, good, sharp):
    style.save(drawn("ladder", good), tmp_path / "x.png", tmp_path / "x.svg")
    with Image.open(tmp_path / "x.png") as image:
        assert (image.mode, image.width) == ("P", round(7.2 * 200))
        shown = image.convert("RGB")
    assert shown.getpixel((0, 0)) == (255, 255, 255), "paper is white"
    assert len(shown.getcolors(256)) > 50


def test_positions_that_differ_in_their_last_digits_give_the_same_files(tmp_path, good):
    figure = drawn("ladder", good)
    style.save(figure, tmp_path / "x.svg", tmp_path / "x.png")
    for axes in figure.axes:
        axes.set_position([number + 3e-16 for number in axes.get_position().bounds])
    style.save(figure, tmp_path / "y.svg", tmp_path / "y.png")
    for suffix in ("svg", "png"):
        assert (tmp_path / f"x.{suffix}").read_bytes() == (tmp_path / f"y.{suffix}").read_bytes()
