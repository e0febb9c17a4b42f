"""Contents of each figure: the numbers in its table and the text on it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawn_figures import MODULES, drawn, row, shown, texts

from figure_tables import overlap, sgemm, vector_add

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
    assert "timeout" in texts(shown("throughput_vs_size", failed))


def test_a_size_that_a_variant_does_not_support_ends_its_line_without_a_mark(good):
    tables = sgemm({("naive", "16384"): "unsupported"})
    figure = drawn("throughput_vs_size", tables)
    assert "unsupported" not in texts(figure)
    marks = [line.get_marker() for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    assert "x" not in marks
    notes = [made.get_supxlabel().replace("\n", " ") for made in (figure, shown("throughput_vs_size", good))]
    assert ["a line ends at the largest size that its variant supports" in note for note in notes] == [
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


def test_roofline_of_an_unknown_gpu_has_points_only(good):
    tables = replace(good, gpus=good.gpus.iloc[:0])
    rows = MODULES["roofline"].data(tables)
    assert not set(rows["kind"]) & {"compute", "memory"}
    assert "peaks: unknown for this GPU" in drawn("roofline", tables).get_supxlabel().replace("\n", " ")


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
    assert any(t.startswith("mio_throttle ") for t in texts(shown("warp_stalls", good)))


def test_occupancy_names_the_limiter_and_ties(good):
    assert row("occupancy", good, "warptile")["limiter"] == "registers"
    assert row("occupancy", good, "naive")["limiter"] == "registers, warps"
    figure = shown("occupancy", good)
    assert "registers, warps" in texts(figure)
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
