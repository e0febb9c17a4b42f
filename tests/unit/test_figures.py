"""The figures: what is in their tables, what is written on them, and that they are the same each time."""

import re
import xml.dom.minidom
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jinja2
import numpy as np
import pandas as pd
import pytest
from docutils.core import publish_parts
from PIL import Image

from figure_tables import SGEMM, overlap, sgemm, twenty, vector_add
from made_up_tables import write
from script_modules import script
from warplog import figure_data, figure_style
from warplog.errors import WarplogError

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")
ROOT = Path(__file__).parents[2]
FIGURES = [
    "bank_conflicts", "ladder", "occupancy", "overlap", "power_trace", "quantization", "roofline",
    "throughput_vs_size", "timeline", "warp_stalls",
]  # fmt: skip
UNITS = {
    "bank_conflicts": ("10⁹ wavefronts", None),
    "ladder": ("% of cublas", None),
    "occupancy": ("% of the warps", None),
    "overlap": ("(ms)", None),
    "power_trace": ("(s)", None),
    "quantization": ("elements", "TFLOP/s"),
    "roofline": ("FLOP per byte", "TFLOP/s"),
    "throughput_vs_size": ("elements", "TFLOP/s"),
    "timeline": ("(ms)", None),
    "warp_stalls": ("(%)", None),
}
FAILED = {"bank_swizzled": "wrong", "split_k": "compile_error", ("naive", "16384"): "timeout"}


PLOT = script("plot_figure")
MODULES = {name: PLOT.figure_module(name) for name in FIGURES}


def drawn(name, tables):
    module = MODULES[name]
    return module.draw(module.data(tables), figure_style.look(tables))


def texts(figure):
    """All words of a figure."""
    found = [t.get_text() for axes in figure.axes for t in axes.texts]
    found += [t.get_text() for axes in figure.axes for t in axes.get_yticklabels()]
    found += [t.get_text() for legend in figure.legends for t in legend.get_texts()]
    return [*found, figure.get_suptitle(), figure.get_supxlabel()]


def row(name, tables, variant):
    rows = MODULES[name].data(tables)
    return rows[rows["variant"] == variant].iloc[0]


@pytest.fixture(scope="module")
def good():
    return sgemm()


@pytest.fixture(scope="module")
def failed():
    return sgemm(FAILED, uncounted=("autotuned",))


def test_every_figure_is_found_and_asks_a_question():
    of_claims = ["claims"]  # its tests are in test_claims.py
    assert sorted(p.stem for p in PLOT.FIGURES.glob("*.py")) == sorted(FIGURES + of_claims)
    for module in MODULES.values():
        assert module.__doc__.rstrip().endswith("?")
        assert module.TITLE


@pytest.mark.parametrize("name", [*FIGURES, "claims"])
def test_caption_in_the_report_is_a_text(name):
    source = SimpleNamespace(figure=str(PLOT.FIGURES / f"{name}.py"))
    snakemake = SimpleNamespace(input=source)
    template = (ROOT / "workflow/report/figure.rst").read_text(encoding="utf-8")
    text = jinja2.Environment(autoescape=False).from_string(template).render(snakemake=snakemake)
    body = publish_parts(text, writer="html")["body"]
    assert "family" in body
    assert "System Message" not in body
    assert len(re.sub("<[^>]*>", "", body)) > 200


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_units_and_the_stamp_tells_the_origin(name, good):
    figure = drawn(name, good)
    x_unit, y_unit = UNITS[name]
    assert x_unit in figure.axes[0].get_xlabel()
    assert y_unit is None or y_unit in figure.axes[0].get_ylabel()
    stamp = figure.get_supxlabel()
    assert "NVIDIA H200" in stamp
    assert "recorded campaign synthetic" in stamp
    assert "SM at 1967–1980 MHz" in stamp
    assert "sgemm" in figure.get_suptitle()
    assert figure.get_figwidth() == pytest.approx(7.2)


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_smaller_than_eight_points_and_none_overlaps_the_edge(name, good):
    figure = drawn(name, good)
    figure.draw_without_rendering()
    box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < figure.get_figwidth() + 0.05
    assert box.y1 < figure.get_figheight() + 0.05
    from matplotlib.text import Text

    assert min(t.get_fontsize() for t in figure.findobj(Text) if t.get_text()) >= 8


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize(
    "tables",
    [twenty(), sgemm(names=("warptile",)), vector_add(), overlap(), sgemm(dict.fromkeys(SGEMM, "wrong"))],
    ids=["twenty", "one", "no_baseline", "streams", "all_wrong"],
)
def test_every_variant_is_named_whatever_the_family(name, tables):
    figure = drawn(name, tables)
    figure.draw_without_rendering()  # a layout that does not fit warns, and warnings are errors here
    words = " ".join(texts(figure))
    assert all(variant in words for variant in tables.variants["variant"])


@pytest.mark.parametrize("name", FIGURES)
def test_failed_variants_are_labelled_gaps(name, failed):
    rows = MODULES[name].data(failed)
    for variant, words in (("bank_swizzled", "wrong"), ("split_k", "compile error")):
        mine = rows[rows["variant"] == variant]
        assert mine["gap"].str.startswith(words).all()
        numbers = mine.select_dtypes("number").drop(columns=["order", "size", "peak"], errors="ignore")
        assert numbers.isna().all(axis=None), "a failed variant has no numbers, and no zeros"
        assert any(words in text for text in texts(drawn(name, failed)))


@pytest.mark.parametrize("name", ["roofline", "warp_stalls", "occupancy", "bank_conflicts"])
def test_denied_counters_are_not_available_rather_than_zero(name, failed):
    assert row(name, failed, "autotuned")["gap"] == "n/a (denied)"
    assert any("n/a (denied)" in text for text in texts(drawn(name, failed)))


def test_a_variant_without_rows_was_not_measured(good):
    without = good.measurements[good.measurements["variant"] != "warptile"]
    tables = replace(good, measurements=without)
    assert row("ladder", tables, "warptile")["gap"] == "not measured"


def test_ladder_holds_percent_quartiles_and_gain(good):
    entry = row("ladder", good, "vectorized")
    assert entry["percent"] == pytest.approx(100 * 31437 / 51200)
    assert entry["percent_q1"] < entry["percent"] < entry["percent_q3"]
    assert entry["gain_over_parent"] == pytest.approx(31437 / 25948)
    assert (entry["reference"], entry["rate_unit"]) == ("cublas", "GFLOP/s")
    assert entry["rate"] == pytest.approx(31437)
    words = texts(drawn("ladder", good))
    assert "×1.21" in words
    assert "31.4 TFLOP/s" in words


def test_ladder_without_a_baseline_refers_to_the_fastest():
    tables = vector_add()
    entry = row("ladder", tables, "scalar")
    assert entry["reference"] == "the fastest, grid_stride"
    assert row("ladder", tables, "grid_stride")["percent"] == pytest.approx(100)
    assert entry["percent"] < 100
    assert entry["percent_q1"] < entry["percent"] < entry["percent_q3"]
    assert "the fastest, grid_stride" in drawn("ladder", tables).axes[0].get_xlabel()


def test_ladder_refers_to_the_fastest_where_the_baseline_failed():
    tables = sgemm({"cublas": "crashed"})
    medians = tables.measurements["median_us"]
    ratios = dict.fromkeys(("ratio_to_baseline", "ratio_q1", "ratio_q3"), np.nan)
    tables = replace(tables, measurements=tables.measurements.assign(**ratios))
    best = tables.measurements.loc[(tables.measurements["case"] == "4096") & medians.notna()]
    name = best.loc[best["median_us"].idxmin(), "variant"]
    assert row("ladder", tables, name)["percent"] == pytest.approx(100)
    assert row("ladder", tables, "cublas")["gap"] == "crashed"


def test_throughput_is_told_in_the_unit_that_limits_the_family(good):
    assert (good.quantity().unit, good.quantity().peak) == ("GFLOP/s", 66900)
    memory = vector_add().quantity()
    assert (memory.column, memory.peak, memory.peak_label) == ("gbytes_per_s", 4800, "DRAM peak")
    no_work = good.measurements.assign(gflops=0.0, gbytes_per_s=np.nan)
    assert replace(good, measurements=no_work).quantity().unit == "µs"


def test_peak_below_what_was_measured_is_not_drawn_as_one(good):
    faster = good.measurements.assign(gflops=good.measurements["gflops"] * 15)
    tables = replace(good, measurements=faster)
    assert np.isnan(tables.quantity().peak)
    assert row("roofline", tables, "cublas").isna()["roof_pct"]
    with_tensor = replace(tables, gpus=tables.gpus.assign(bf16_tflops_peak=989.0))
    assert with_tensor.quantity().peak == 989000
    assert with_tensor.quantity().peak_label == "BF16 peak"


def test_throughput_breaks_the_line_where_a_size_failed(failed):
    rows = MODULES["throughput_vs_size"].data(failed)
    naive = rows[rows["variant"] == "naive"].set_index("size")
    assert naive.loc[16384, "gap"] == "timeout"
    assert np.isnan(naive.loc[16384, "rate"])
    assert naive.loc[8192, "gap"] == ""
    assert "timeout" in texts(drawn("throughput_vs_size", failed))


def test_a_size_that_a_variant_does_not_support_ends_its_line_without_a_mark(good):
    tables = sgemm({("naive", "16384"): "unsupported"})
    figure = drawn("throughput_vs_size", tables)
    assert "unsupported" not in texts(figure)
    marks = [line.get_marker() for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert "x" not in marks
    notes = [made.get_supxlabel().replace("\n", " ") for made in (figure, drawn("throughput_vs_size", good))]
    assert ["a line ends where its variant supports no larger size" in note for note in notes] == [
        True,
        False,
    ]


def test_throughput_draws_one_kind_of_case_where_sizes_repeat(good):
    other = good.measurements[good.measurements["case"] != "256"]
    other = other.assign(case="skewed_" + other["case"])
    tables = replace(good, measurements=pd.concat([good.measurements, other]))
    rows = MODULES["throughput_vs_size"].data(tables)
    assert set(rows.loc[rows["drawn"], "case"]) == set(good.measurements["case"])
    assert "6 cases of another kind" in drawn("throughput_vs_size", tables).get_supxlabel().replace("\n", " ")


def test_roofline_holds_points_roofs_and_the_compulsory_intensity(good):
    rows = MODULES["roofline"].data(good).set_index("label")
    assert rows.loc["FP32 peak", "gflops"] == 66900
    assert rows.loc["DRAM peak", "gbytes_per_s"] == 4800
    assert rows.loc["compulsory traffic", "intensity_flop_per_byte"] == pytest.approx(4096 / 8)
    assert rows.loc["warptile", "intensity_flop_per_byte"] == pytest.approx(500)
    assert rows.loc["warptile", "roof_pct"] == pytest.approx(100 * 36267 / 66900)
    assert rows.loc["FP32 peak", "peak_source"] in drawn("roofline", good).get_supxlabel()


def test_roofline_of_an_unknown_gpu_has_points_only(good):
    tables = replace(good, gpus=good.gpus.iloc[:0])
    rows = MODULES["roofline"].data(tables)
    assert not set(rows["kind"]) & {"compute", "memory"}
    assert "no peaks known" in drawn("roofline", tables).get_supxlabel()


def test_longest_kernel_stands_for_a_case_of_several(good):
    for name in ("roofline", "warp_stalls", "occupancy", "bank_conflicts", "timeline"):
        assert row(name, good, "split_k")["kernel"] == "split_k_kernel"


def test_stalls_add_up_and_name_the_longest(good):
    rows = MODULES["warp_stalls"].data(good)
    mine = rows[rows["variant"] == "smem_tiled"]
    assert mine["share_pct"].sum() == pytest.approx(100)
    assert mine["cycles_per_issue"].sum() == pytest.approx(mine["warp_cycles_per_issue"].iloc[0])
    assert (mine["dominant_stall"] == "mio_throttle").all()
    assert mine["drawn_as"].nunique() == 10, "eight reasons, selected and other"
    assert set(MODULES["warp_stalls"].REASONS) >= set(rows["state"])
    assert any(t.startswith("mio_throttle ") for t in texts(drawn("warp_stalls", good)))


def test_occupancy_names_the_limiter_and_ties(good):
    assert row("occupancy", good, "warptile")["limiter"] == "registers"
    assert row("occupancy", good, "naive")["limiter"] == "registers, warps"
    figure = drawn("occupancy", good)
    assert "registers, warps" in texts(figure)
    widths = {round(p.get_width(), 2) for p in figure.axes[0].patches}
    entry = row("occupancy", good, "warptile")
    assert {entry["theoretical_occupancy_pct"], round(entry["achieved_occupancy_pct"], 2)} <= widths


def test_bank_conflicts_tell_ways_and_kernels_without_shared_memory(good):
    entry = row("bank_conflicts", good, "blocktile_2d")
    assert entry["shared_conflict_ways"] == pytest.approx(4)
    assert entry["excess_pct"] == pytest.approx(75)
    assert row("bank_conflicts", good, "naive")["gap"] == "no shared-memory access"
    assert "4.00-way" in texts(drawn("bank_conflicts", good))


def test_timeline_counts_gaps_and_keeps_streams_apart(good):
    entry = row("timeline", good, "warptile")
    assert entry["gap_median_us"] == pytest.approx(1.1)
    assert entry["gap_max_us"] == pytest.approx(10.1)
    assert entry["start_us"] == 0
    rows = MODULES["timeline"].data(overlap())
    assert rows.groupby("variant")["stream"].nunique().to_dict() == {"one_stream": 1, "three_streams": 3}
    spans = rows.groupby("variant")["span_us"].first()
    assert spans["three_streams"] < spans["one_stream"]
    assert "copy to the host" in texts(drawn("timeline", overlap()))


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_script_writes_three_files_that_are_the_same_each_time(tmp_path, suffix):
    write(sgemm(FAILED), tmp_path / "tables", suffix)
    for name in ("ladder", "warp_stalls") if suffix == "csv" else FIGURES:
        first, second = ([tmp_path / f"{n}/sgemm/{name}.{e}" for e in ("png", "svg", "csv")] for n in (1, 2))
        PLOT.main(name, tmp_path / "tables", first[:1])
        PLOT.main(name, tmp_path / "tables", second[:1])
        assert [f.read_bytes() for f in first] == [f.read_bytes() for f in second]
        assert first[0].read_bytes().startswith(b"\x89PNG")
        svg = first[1].read_text(encoding="utf-8")
        words = set(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
        assert "warptile" in " ".join(words), "text stays text"
        assert name != "ladder" or "36.3 TFLOP/s" in words
        assert "<dc:date>" not in svg
        table = pd.read_csv(first[2], dtype={"case": str})
        assert set(table["variant"].dropna()) == set(SGEMM)
        assert {"gpu_name", "origin", "campaign"} <= set(table.columns)


def test_figures_do_not_change_matplotlib_for_others(good):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    drawn("ladder", good)
    assert dict(mpl.rcParams) == before


def test_unknown_figure_or_family_names_what_there_is(tmp_path):
    write(vector_add(), tmp_path)
    sgemm, vectors = ([tmp_path / family / "x.png"] for family in ("sgemm", "vector_add"))
    with pytest.raises(
        WarplogError, match=r"\.\./secrets: no such figure; there are bank_conflicts, claims, ladder"
    ):
        PLOT.main("../secrets", tmp_path, vectors)
    with pytest.raises(WarplogError, match="sgemm: no such family; the table holds vector_add"):
        PLOT.main("ladder", tmp_path, sgemm)
    with pytest.raises(WarplogError, match=r"elsewhere/measurements.parquet: no such table; run"):
        PLOT.main("ladder", tmp_path / "elsewhere", vectors)


def test_damaged_tables_are_refused_in_one_line(tmp_path):
    write(vector_add(), tmp_path)
    (tmp_path / "metrics.parquet").write_bytes(b"PAR1 not a table")
    with pytest.raises(WarplogError, match=r"metrics.parquet: not a readable table") as caught:
        figure_data.load(tmp_path, "vector_add")
    assert "\n" not in str(caught.value)
    write(vector_add(), tmp_path)
    pd.read_parquet(tmp_path / "variants.parquet").drop(columns="order").to_parquet(
        tmp_path / "variants.parquet"
    )
    with pytest.raises(WarplogError, match="lacks the column 'order'"):
        figure_data.load(tmp_path, "vector_add")


def test_two_gpus_in_one_table_must_be_told_apart(tmp_path, good):
    both = [pd.concat([t, t.assign(gpu="l4", gpu_name="NVIDIA L4")]) for t in vars(good).values()]
    write(figure_data.FigureTables(*both), tmp_path)
    with pytest.raises(WarplogError, match="h200, l4: several GPUs"):
        figure_data.load(tmp_path, "sgemm")
    tables = figure_data.load(tmp_path, "sgemm", "l4")
    assert figure_style.origin_line(tables).startswith("NVIDIA L4 · ")
    assert len(tables.measurements) == len(good.measurements)


@pytest.mark.parametrize("name", FIGURES)
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
    figure_style.save(figure, tmp_path / "x.png", tmp_path / "x.svg")
    xml.dom.minidom.parse(str(tmp_path / "x.svg"))
    assert any(
        text.startswith(("compile error: error: $\\frac{$", "naive: compile error")) for text in texts(figure)
    )


def test_stamp_repeats_what_the_tables_remark(good):
    stale = good.measurements.copy()
    stale.loc[stale["variant"].isin(["naive", "warptile"]), "reason"] = "recorded for an earlier version"
    line = figure_style.origin_line(replace(good, measurements=stale))
    assert line.endswith("2 of 17 variants: recorded for an earlier version")


def test_pictures_have_few_colours_and_all_that_letters_need(tmp_path, good):
    figure_style.save(drawn("ladder", good), tmp_path / "x.png", tmp_path / "x.svg")
    with Image.open(tmp_path / "x.png") as image:
        assert (image.mode, image.width) == ("P", round(figure_style.WIDTH_IN * 200))
        shown = image.convert("RGB")
    assert shown.getpixel((0, 0)) == (255, 255, 255), "paper is white"
    assert len(shown.getcolors(256)) > 50
