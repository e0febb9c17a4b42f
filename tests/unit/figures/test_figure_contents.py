"""Contents of each figure: the numbers in its table and the text on it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawn_figures import MODULES, drawn, row, shown, texts

from figure_tables import SGEMM, overlap, sgemm, vector_add
from made_up_ceilings import DRAM, ceilings
from made_up_tables import MadeUpTables
from warplog import figures
from warplog.figures.shared import style
from warplog.tables.activity import activities, statistics

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")


def test_ladder_holds_percent_quartiles_and_gain(good):
    entry = row("ladder", good, "vectorized")
    assert entry["percent"] == pytest.approx(100 * 31437 / 51200)
    assert entry["percent_q1"] < entry["percent"] < entry["percent_q3"]
    assert entry["gain_over_parent"] == pytest.approx(31437 / 25948)
    assert (entry["reference"], entry["rate_unit"]) == ("cublas", "GFLOP/s")
    assert entry["rate"] == pytest.approx(31437)
    words = texts(shown("ladder", good))
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


def test_throughput_is_stated_in_the_unit_that_limits_the_family(good):
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
    assert "timeout" in texts(shown("throughput_vs_size", failed))


def test_a_size_that_a_variant_does_not_support_ends_its_line_without_a_mark(good):
    tables = sgemm({("naive", "16384"): "unsupported"})
    figure = drawn("throughput_vs_size", tables)
    assert "unsupported" not in texts(figure)
    marks = [line.get_marker() for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert "x" not in marks
    notes = [made.get_supxlabel().replace("\n", " ") for made in (figure, shown("throughput_vs_size", good))]
    assert ["a line ends at the largest size at which its variant was run" in note for note in notes] == [
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
    assert rows.loc["FP32 peak", "peak_source"] in shown("roofline", good).get_supxlabel().replace("\n", " ")


def test_the_compulsory_intensity_is_written_without_an_exponent(good):
    assert "compulsory traffic: 512 FLOP/B" in texts(shown("roofline", good))
    large = good.measurements.assign(gflops=2.667 * good.measurements["gflops"])
    figure = drawn("roofline", replace(good, measurements=large))
    assert "compulsory traffic: 1\u2009370 FLOP/B" in texts(figure)


def test_a_measured_ceiling_takes_the_place_of_the_peak_and_says_whose_it_is(good):
    counted = good.metrics[good.metrics["metric"] == "dram_bytes"].assign(metric="l2_bytes")
    tables = replace(good, ceilings=ceilings(), metrics=pd.concat([good.metrics, counted]))
    rows = MODULES["roofline"].data(tables).set_index("label")
    assert rows.loc["DRAM measured", "gbytes_per_s"] == 4000
    assert rows.loc["L2 measured", "gbytes_per_s"] == 8000
    assert rows.loc["warptile", "roof_pct"] == pytest.approx(100 * 36267 / 60000)
    assert not {"DRAM peak", "FP32 peak"} & set(rows.index)
    figure = drawn("roofline", tables)
    note = figure.get_supxlabel().replace("\n", " ")
    assert all(f"{name}: measured by {of}" in note for name, of in (("DRAM", "memory"), ("FP32", "ilp")))
    assert any(text.startswith("DRAM measured 4") for text in texts(figure))


@pytest.mark.parametrize("word", ["missed", "not_measurable"])
def test_a_ceiling_without_a_plausible_value_leaves_the_peak(good, word):
    tables = replace(good, ceilings=ceilings(replace(DRAM, word=word)))
    rows = MODULES["roofline"].data(tables).set_index("label")
    assert rows.loc["DRAM peak", "gbytes_per_s"] == 4800
    assert "L2 measured" not in rows.index


def covering(figure):
    """The pairs of texts of a figure that overlap, and the texts that reach beyond its edge."""
    figure.draw_without_rendering()
    texts = [text for text in figure.axes[0].texts if text.get_text().strip() and not text.get_rotation()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    pairs = [(a, b) for i, (a, box) in enumerate(boxes) for b, other in boxes[i + 1 :] if box.overlaps(other)]
    return pairs + [text for text, box in boxes if box.x1 > figure.bbox.x1 or box.x0 < 0]


def test_labels_of_the_roofline_cover_neither_each_other_nor_the_algorithms_line(good):
    for tables in (good, vector_add()):
        figure = drawn("roofline", tables)
        assert covering(figure) == []
        axes = figure.axes[0]
        mark = next(line for line in axes.lines if list(line.get_ydata()) == [0, 1])
        across = axes.transData.transform((mark.get_xdata()[0], axes.get_ylim()[0]))[0]
        (peak,) = (text for text in axes.texts if text.get_text().startswith("FP32 peak"))
        box = peak.get_window_extent()
        assert not box.x0 < across < box.x1
        assert box.x1 < axes.bbox.x1 + 0.05 * figure.dpi


def test_roofline_of_an_unknown_gpu_has_points_only(good):
    tables = replace(good, gpus=good.gpus.iloc[:0])
    rows = MODULES["roofline"].data(tables)
    assert not set(rows["kind"]) & {"compute", "memory"}
    assert "peaks: unknown for this GPU" in drawn("roofline", tables).get_supxlabel().replace("\n", " ")


@pytest.mark.parametrize(
    ("origins", "words"),
    [("data_sheet", ", not measured"), ("device", ", not measured"), ("measured", "own run, measured")],
)
def test_a_figure_says_whether_the_peaks_were_measured(good, origins, words):
    tables = replace(good, gpus=good.gpus.assign(origins=origins, source="own run"))
    for name in ("roofline", "throughput_vs_size"):
        assert set(MODULES[name].data(tables)["peak_source"].dropna()) >= {f"own run, {words.split(', ')[1]}"}
    assert words in drawn("roofline", tables).get_supxlabel().replace("\n", " ")


def test_a_roof_of_tensor_cores_is_drawn_only_where_it_can_bind(good):
    known = good.gpus.assign(
        fp32_tflops_peak=67.0, tf32_tflops_peak=494.5, bf16_tflops_peak=989.0, fp8_tflops_peak=1979.0
    )
    tables = replace(good, gpus=known)
    assert [name for name, _ in tables.compute_peaks(50e3)] == ["FP32 peak"]
    assert [name for name, _ in tables.compute_peaks(800e3)] == ["FP32 peak", "BF16 peak"]
    assert [name for name, _ in tables.compute_peaks(1200e3)] == ["FP32 peak", "BF16 peak", "FP8 peak"]


def test_longest_kernel_stands_for_a_case_of_several(good):
    for name in ("roofline", "warp_stalls", "occupancy", "bank_conflicts", "timeline"):
        assert row(name, good, "split_k")["kernel"] == "split_k_kernel"


def test_stalls_add_up_and_name_the_longest(good):
    rows = MODULES["warp_stalls"].data(good)
    own = rows[rows["variant"] == "smem_tiled"]
    assert own["share_pct"].sum() == pytest.approx(100)
    assert own["cycles_per_issue"].sum() == pytest.approx(own["warp_cycles_per_issue"].iloc[0])
    assert (own["dominant_stall"] == "mio_throttle").all()
    assert set(MODULES["warp_stalls"].REASONS) >= set(rows["state"])
    assert any(t.startswith("mio_throttle ") for t in texts(shown("warp_stalls", good)))


def restalled(tables, variant, **shares):
    """The tables with other warp states of a variant, in cycles per issued instruction."""
    rows = tables.metrics.copy()
    own = (rows["variant"] == variant) & rows["metric"].str.match(r"stall_\w+_cycles_per_issue")
    rows.loc[own, "value"] = 0.01
    for state, cycles in shares.items():
        rows.loc[own & (rows["metric"] == f"stall_{state}_cycles_per_issue"), "value"] = cycles
    return replace(tables, metrics=rows)


def test_a_warp_that_is_ready_does_not_stall(good):
    tables = restalled(good, "warptile", selected=1.0, not_selected=5.0, wait=2.0)
    assert row("warp_stalls", tables, "warptile")["dominant_stall"] == "wait"
    assert any(text.startswith("wait ") for text in texts(drawn("warp_stalls", tables)))
    assert not any(text.startswith("not_selected ") for text in texts(drawn("warp_stalls", tables)))


def test_no_state_is_hidden_in_a_rest(good):
    states = {
        "selected": 1.0,
        "math_pipe_throttle": 1.6,
        "wait": 1.7,
        "barrier": 1.1,
        "short_scoreboard": 1.7,
    }
    figure = drawn("warp_stalls", restalled(good, "warptile", **states))
    place = list(good.variants["variant"]).index("warptile")
    widths = {
        round(bar.get_width(), 1)
        for bar in figure.axes[0].patches
        if abs(bar.get_y() + bar.get_height() / 2 - place) < 0.01
    }
    total = sum(states.values()) + 0.01 * (18 - len(states))
    assert round(100 * 1.6 / total, 1) in widths
    assert "other" not in texts(figure)
    assert "math_pipe_throttle" in texts(figure)


@pytest.mark.parametrize("name", ["warp_stalls", "bank_conflicts"])
def test_bars_are_shares_whatever_the_totals(name, good):
    for tables in (good, sgemm(names=("blocktile_2d", "split_k"))):
        figure = drawn(name, tables)
        assert "(%)" in figure.axes[0].get_xlabel()
        assert figure.axes[0].get_xlim() == (0, 100)


def test_reads_that_no_counter_covers_are_not_called_free_of_conflicts(good):
    rows = good.metrics
    clean = rows["variant"] == "cp_async_pipelined"
    pattern = rows[clean & (rows["metric"] == "shared_wavefronts")]
    hgmma = pattern.assign(metric="inst_hgmma", value=1e6)
    tables = replace(good, metrics=pd.concat([rows, hgmma]))
    assert row("bank_conflicts", tables, "cp_async_pipelined")["partly"]
    words = texts(drawn("bank_conflicts", tables))
    assert "cp_async_pipelined" not in words
    assert words.count("1.00-way") == texts(shown("bank_conflicts", good)).count("1.00-way") - 1
    note = words[-1].replace("\n", " ")
    assert (
        "not drawn: cp_async_pipelined, whose shared memory is read by wgmma, which no counter covers" in note
    )


def test_roofline_uses_the_algorithms_flops_on_both_axes(good):
    """Counted FLOPs include HFMA2 instructions that only move constants."""
    rows = good.metrics.copy()
    hit = (rows["variant"] == "warptile") & (rows["metric"] == "arithmetic_intensity_flop_per_byte")
    rows.loc[hit, "value"] *= 9
    point = row("roofline", replace(good, metrics=rows), "warptile")
    assert point["intensity_flop_per_byte"] == pytest.approx(500)
    assert point["gflops"] / point["intensity_flop_per_byte"] == pytest.approx(
        point["launch_dram_bytes"] / 3.7897e6, rel=1e-3
    )


def with_metrics(tables, variant, **values):
    """The tables with further metrics of the first kernel of a variant at 4096."""
    rows = tables.metrics.to_dict("records")
    first = next(r for r in rows if (r["variant"], r["case"], r["launch"]) == (variant, "4096", 0))
    more = [{**first, "metric": name, "value": value} for name, value in values.items()]
    return replace(tables, metrics=pd.DataFrame([*rows, *more]))


def test_roofline_has_the_intensity_at_each_level_from_the_recorded_bytes(good):
    flops = 2.0 * 4096**3
    point = row(
        "roofline", with_metrics(good, "warptile", l2_bytes=flops / 20, l1_bytes=flops / 5), "warptile"
    )
    assert point["intensity_flop_per_byte"] == pytest.approx(500)
    assert point["l2_flop_per_byte"] == pytest.approx(20, rel=1e-3)
    assert point["l1_flop_per_byte"] == pytest.approx(5, rel=1e-3)
    assert np.isnan(row("roofline", good, "warptile")["l2_flop_per_byte"])


def test_roofline_has_no_intensity_of_l1_where_tma_copies_past_it(good):
    tables = with_metrics(good, "tma_pipelined", l2_bytes=7e9, l1_bytes=7e7, inst_utmaldg=131072.0)
    tables = with_metrics(tables, "naive", l2_bytes=7e10, l1_bytes=7e11, inst_utmaldg=0.0)
    rows = MODULES["roofline"].data(tables).set_index("label")
    assert np.isnan(rows.loc["tma_pipelined", "l1_flop_per_byte"])
    assert rows.loc["tma_pipelined", "l2_flop_per_byte"] > 0
    assert rows.loc["naive", "l1_flop_per_byte"] > 0
    assert rows.loc["L1 peak", "gbytes_per_s"] == pytest.approx(128 * 132 * 1.98, rel=1e-3)
    assert "no L1 where TMA bypasses it" in drawn("roofline", tables).get_supxlabel().replace("\n", " ")


@pytest.mark.parametrize(("mhz", "tflops"), [(1600.0, 54.07), (1980.0, None)])
def test_roofline_has_a_second_roof_at_the_clock_of_the_fastest_variant_if_it_differs(good, mhz, tflops):
    """132 SMs x 256 FLOPs per clock."""
    tables = replace(good, measurements=good.measurements.assign(sm_mhz=mhz))
    rows = MODULES["roofline"].data(tables)
    roofs = rows[rows["kind"] == "clock"].set_index("label")["gflops"]
    assert roofs.to_dict() == (
        {} if tflops is None else {"FP32 at 1600 MHz": pytest.approx(1e3 * tflops, rel=1e-3)}
    )
    point, title = row("roofline", tables, "cublas"), drawn("roofline", tables).get_suptitle()
    assert point["clock_roof_pct"] == pytest.approx(100 * point["gflops"] / (132 * 256 * mhz * 1e-3))
    assert title.startswith(
        "Roofline: cublas reaches 77 % of its roof" + (", 95 % at 1600 MHz" if tflops else " ·")
    )


def test_roofline_counts_the_bytes_of_all_kernels_of_a_launch(good):
    rows = good.metrics
    own = rows[(rows["variant"] == "split_k") & (rows["case"] == "4096") & (rows["metric"] == "dram_bytes")]
    assert len(own) == 2
    assert row("roofline", good, "split_k")["launch_dram_bytes"] == pytest.approx(own["value"].sum())


def limited(tables, **values):
    """The tables with the columns of several processes and a long run of one variant."""
    rows = tables.measurements.assign(processes=3.0, set_mhz=1980.0, limited_by="")
    rows["process_min_us"], rows["process_max_us"] = rows["median_us"] * 0.999, rows["median_us"] * 1.002
    hit = (rows["variant"] == "tma_pipelined") & (rows["case"] == "4096")
    rows.loc[hit, "sustained_us"] = rows.loc[hit, "median_us"] * 1.25
    rows.loc[hit, "limited_by"] = "power"
    return replace(tables, measurements=rows.assign(**values))


def test_ladder_shows_sustained_beside_rest_and_names_the_regime_and_the_whiskers(good):
    tables = limited(good)
    entry = row("ladder", tables, "tma_pipelined")
    assert entry["percent_long"] == pytest.approx(entry["percent"] / 1.25)
    assert np.isnan(row("ladder", tables, "warptile")["percent_long"])
    figure = drawn("ladder", tables)
    assert figure.axes[0].get_xlabel() == "speed (% of cublas at rest)"
    note = figure.get_supxlabel().replace("\n", " ")
    assert "medians at rest; whiskers: spread between processes" in note
    assert "outlined: sustained, limited by power" in note
    outlined = [
        bar for bar in figure.axes[0].patches if bar.get_width() == pytest.approx(entry["percent_long"])
    ]
    assert len(outlined) == 1
    earlier = shown("ladder", good)
    assert "whiskers: quartiles" in earlier.get_supxlabel()
    assert "outlined" not in earlier.get_supxlabel()


def test_ladder_outlines_no_variant_that_is_slower_back_to_back_without_a_limit(good):
    tables = limited(good)
    rows = tables.measurements.copy()
    slower = (rows["variant"] == "warptile") & (rows["case"] == "4096")
    rows.loc[slower, "sustained_us"] = rows.loc[slower, "median_us"] * 1.1
    tables = replace(tables, measurements=rows)
    assert np.isnan(row("ladder", tables, "warptile")["percent_long"])
    assert row("ladder", tables, "tma_pipelined")["percent_long"] > 0
    unlimited = drawn("ladder", replace(tables, measurements=rows.assign(limited_by="")))
    assert "outlined" not in unlimited.get_supxlabel()


def test_ladder_says_what_the_time_of_the_baseline_includes(good):
    assert "(" not in shown("ladder", good).get_suptitle()
    variants = good.variants
    variants = variants.assign(
        note=variants["is_baseline"].map({True: "its time includes a copy", False: ""})
    )
    title = drawn("ladder", replace(good, variants=variants)).get_suptitle().replace("\n", " ")
    assert "% of cublas (its time includes a copy) · " in title


def test_roofline_has_no_marker_for_a_launch_whose_copies_ncu_does_not_count(good):
    assert row("roofline", good, "tma_pipelined")["gap"] == ""
    copy = good.timeline.head(1).assign(variant="tma_pipelined", case=good.profiled_case, kind="memcpy")
    entry = row("roofline", replace(good, timeline=pd.concat([good.timeline, copy])), "tma_pipelined")
    assert entry["gap"] == "copies not counted"
    assert np.isnan(entry["intensity_flop_per_byte"])


def test_ladder_marks_a_gain_within_noise(good):
    tables = limited(good)
    assert row("ladder", tables, "best_of")["tied"]
    assert not row("ladder", tables, "warptile")["tied"]
    assert "≈×1.00" in texts(drawn("ladder", tables))


def test_a_case_of_another_kind_stands_alone_in_the_throughput(good):
    square = good.measurements[good.measurements["case"] == "8192"]
    other = square.assign(case="8191x8193", size=8191, gflops=square["gflops"] / 2)
    tables = replace(good, measurements=pd.concat([good.measurements, other]))
    rows = MODULES["throughput_vs_size"].data(tables)
    assert set(rows.loc[rows["alone"], "case"]) == {"8191x8193"}
    axes = drawn("throughput_vs_size", tables).axes[0]
    joined = [line for line in axes.lines if 8191 in list(line.get_xdata()) and len(line.get_xdata()) > 1]
    assert joined == []
    alone = [line for line in axes.lines if list(line.get_xdata()) == [8191]]
    assert {line.get_markerfacecolor() for line in alone} == {"white"}
    assert "open marks: 8191x8193" in drawn("throughput_vs_size", tables).get_supxlabel().replace("\n", " ")


def shaped(tables):
    """The tables with cases that are shapes without an order, of which the last has two dimensions swapped."""
    shapes = {"2048": "1x65536", "4096": "4096x4096", "8192": "16384x1024"}
    rows = tables.measurements[tables.measurements["case"].isin(list(shapes))]
    variants = tables.variants.assign(headline_case="4096x4096")
    return replace(tables, measurements=rows.assign(case=rows["case"].map(shapes)), variants=variants)


def test_no_line_joins_shapes_and_the_title_counts_the_cases_that_a_variant_wins(good):
    figure = drawn("throughput_vs_size", shaped(good))
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1x65536", "4096x4096", "16384x1024"]
    inside = [line for line in axes.lines if line.get_transform() == axes.transData]
    assert all(line.get_linestyle() == "None" for line in inside), "dots, no lines"
    title = figure.get_suptitle().replace("\n", " ")
    assert (
        title
        == "Throughput by case: cublas is the fastest, or tied with the fastest, in 3 of 3 cases · sgemm"
    )
    labels = {text.get_text() for text in axes.texts}
    assert "cublas" in labels
    assert set(MODULES["throughput_vs_size"].data(shaped(good))["drawn"]) == {True}


def test_a_shape_without_a_time_is_marked(good):
    tables = shaped(sgemm({("naive", "4096"): "timeout"}))
    assert "timeout" in texts(drawn("throughput_vs_size", tables))


def test_the_variant_that_the_title_names_is_labelled(good):
    rows = good.measurements.copy()
    last = rows["size"] == rows["size"].max()
    own, best = (
        last & (rows["variant"] == "warptile"),
        rows.loc[last & (rows["variant"] == "cublas")].iloc[0],
    )
    for column, faster in {"median_us": 0.9, "q1_us": 0.9, "q3_us": 0.9, "gflops": 1 / 0.9}.items():
        rows.loc[own, column] = best[column] * faster
    figure = drawn("throughput_vs_size", replace(good, measurements=rows))
    assert "warptile is the fastest at" in figure.get_suptitle().replace("\n", " ")
    assert "warptile" in {text.get_text() for text in figure.axes[0].texts}
    assert "warptile" not in figure.get_supxlabel().partition("grey: ")[2]


def test_the_title_calls_no_variant_the_fastest_that_is_tied(good):
    assert "tma_pipelined" not in shown("throughput_vs_size", good).get_suptitle()
    assert "cublas is the fastest at 16384" in shown("throughput_vs_size", good).get_suptitle()
    rows = good.measurements
    rival = rows["variant"] == "naive"
    of_cublas = rows[rows["variant"] == "cublas"].set_index("case")
    columns = ["median_us", "q1_us", "q3_us", "gflops"]
    same = rows.copy()
    same.loc[rival, columns] = of_cublas.loc[rows.loc[rival, "case"], columns].to_numpy()
    title = drawn("throughput_vs_size", replace(good, measurements=same)).get_suptitle()
    assert "naive and cublas are tied at 16384" in title


def test_the_time_of_a_launch_is_that_of_all_its_kernels():
    """Two kernels of one name, of which the second is short, as in a reduction of several passes."""
    made = MadeUpTables()
    made.variant("sgemm", "passes", 0, 1, "4096")
    made.measured("sgemm", "passes", "4096", 4096, 302.0, 1e9, 1e9)
    clock = 0.0
    for launch in range(5):
        for us in (300.0, 1.8, 1.7):
            made.event("sgemm", "passes", "4096", "reduce", 7, clock, us, launch=launch)
            clock += us + 1.0
    events = activities(made.tables())["passes"]
    assert statistics(events)["launch_median_us"] == pytest.approx(303.5)


@pytest.mark.parametrize("name", ["timeline", "overlap"])
def test_figures_of_traced_launches_name_their_regime(name, good):
    note = shown(name, good).get_supxlabel().replace("\n", " ")
    assert "nsys, hot: launches back to back" in note


def test_occupancy_names_the_limiter_and_ties(good):
    assert row("occupancy", good, "warptile")["limiter"] == "registers"
    assert row("occupancy", good, "naive")["limiter"] == "registers, warps"
    rows = MODULES["occupancy"].data(good).assign(theoretical_occupancy_pct=50.0)
    assert "registers, warps" in texts(MODULES["occupancy"].draw(rows, style.look(good)))
    figure = shown("occupancy", good)
    assert "registers, warps" not in texts(figure), "warps that fill the SM are not limited"
    widths = {round(p.get_width(), 2) for p in figure.axes[0].patches}
    entry = row("occupancy", good, "warptile")
    assert {entry["theoretical_occupancy_pct"], round(entry["achieved_occupancy_pct"], 2)} <= widths


def test_bank_conflicts_tell_ways_and_kernels_without_shared_memory(good):
    entry = row("bank_conflicts", good, "blocktile_2d")
    assert entry["shared_conflict_ways"] == pytest.approx(4)
    assert entry["excess_pct"] == pytest.approx(75)
    assert row("bank_conflicts", good, "naive")["gap"] == "no shared-memory access"
    assert "4.00-way" in texts(shown("bank_conflicts", good))


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


EACH = {"occupancy": {"theoretical_occupancy_pct": 50.0}, "bank_conflicts": {"gap": "", "partly": False}}


@pytest.mark.parametrize(
    ("name", "values", "finding"),
    [
        ("timeline", {"busy_pct": 99.5}, "the GPU is busy at least 99.5 % of the time in all variants shown"),
        ("timeline", {"busy_pct": np.nan}, ""),
        ("occupancy", {"theoretical_occupancy_pct": 100.0}, "no variant is limited"),
        (
            "occupancy",
            {"limiter": "registers, shared"},
            "12 of 12 variants are limited by registers and shared",
        ),
        ("occupancy", {"limiter": ""}, ""),
        ("warp_stalls", {"dominant_stall": "wait"}, "wait is the largest stall in 12 of 12 variants"),
        ("bank_conflicts", {"shared_conflict_ways": 1.001}, "none"),
        ("bank_conflicts", {"shared_conflict_ways": np.nan}, ""),
    ],
)
def test_a_title_states_what_its_rows_have_in_common_or_only_the_subject(good, name, values, finding):
    rows = MODULES[name].data(good).assign(**EACH.get(name, {}) | values)
    title = MODULES[name].draw(rows, style.look(good)).get_suptitle().replace("\n", " ")
    assert finding in title.partition(":")[2] if finding else ":" not in title.partition(" · ")[0]


def test_a_title_names_the_variant_that_stands_out_or_counts_the_many(good):
    def title(name, rows):
        return MODULES[name].draw(rows, style.look(good)).get_suptitle().replace("\n", " ")

    rows = MODULES["timeline"].data(good)
    rows.loc[rows["variant"] == "warptile", "busy_pct"] = 41.5
    assert "in warptile the GPU is busy only 41.5 %" in title("timeline", rows)
    rows = MODULES["occupancy"].data(good).assign(theoretical_occupancy_pct=50.0)
    rows["limiter"] = ["registers, shared", *["shared"] * (len(rows) - 1)]
    assert f": {len(rows) - 1} of {len(rows)} variants are limited by shared memory" in title(
        "occupancy", rows
    )
    rows = MODULES["bank_conflicts"].data(good).assign(gap="", partly=False, shared_conflict_ways=1.001)
    rows.loc[2, "shared_conflict_ways"] = 2.5
    worst = rows.loc[2, "variant"]
    assert f"most in {worst}, 2.50-way on average · " in title("bank_conflicts", rows)
    partly = rows.assign(partly=rows["variant"].ne(worst), excess_pct=0.0)
    assert f"most in {worst}, 2.50-way on average (1 of {len(rows)} variants counted)" in title(
        "bank_conflicts", partly
    )


def test_speeds_that_span_more_than_a_factor_of_four_have_a_logarithmic_axis(good):
    assert shown("throughput_vs_size", good).axes[0].get_yscale() == "log"
    near = good.measurements.assign(gflops=30000.0 + good.measurements["median_us"].rank())
    axes = drawn("throughput_vs_size", replace(good, measurements=near)).axes[0]
    assert (axes.get_yscale(), axes.get_ylim()[0]) == ("linear", 0)


def test_two_sizes_are_no_course_over_the_size(good):
    for count, rows in ((2, 0), (3, 3 * len(SGEMM))):
        kept = good.measurements["case"].isin(["2048", "4096", "8192"][-count:])
        tables = replace(good, measurements=good.measurements[kept])
        assert len(figures.data("throughput_vs_size", tables)) == rows


def test_a_timeline_shows_the_variants_in_which_no_activity_fills_the_time(good):
    """Launches of one kernel only repeat the times."""
    events = good.timeline
    renamed = events.assign(name=events["name"].replace(r"finish|.*_kernel", "kernel", regex=True))
    assert figures.data("timeline", good)["variant"].nunique() == len(SGEMM)
    assert set(figures.data("timeline", replace(good, timeline=renamed))["variant"]) == {"split_k"}
    assert figures.data("timeline", replace(good, timeline=renamed[renamed["variant"] != "split_k"])).empty


def test_without_a_conflict_there_are_no_bars_of_conflicts(good):
    rows = good.metrics
    excess = rows["metric"] == "shared_wavefronts_excess"
    assert figures.data(
        "bank_conflicts", replace(good, metrics=rows.assign(value=rows["value"].mask(excess, 0.0)))
    ).empty


def test_occupancy_says_which_carve_out_it_assumes(good):
    figure = shown("occupancy", good)
    assert "shared 228 KiB" in texts(figure)
    note = figure.get_supxlabel().replace("\n", " ")
    assert "shared: with the largest carve-out of an SM, unless the driver's choice limits" in note
    unknown = replace(good, gpus=good.gpus.iloc[:0])
    assert "carve-out" not in drawn("occupancy", unknown).get_supxlabel()
