"""Figures for special families: overlap of copies and kernels, power over time, tiles and waves."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from figure_tables import vector_add
from made_up_tables import MadeUpTables
from warplog import figures
from warplog.catalog.family import load_family
from warplog.extract.trace import overlap_metrics
from warplog.figures.shared import style
from warplog.figures.shared.settings import WEB

ROOT = Path(__file__).parents[3]
ENGINES = ("Host-to-Device", "kernel", "Device-to-Host")
STREAMS = {"sequential": (1, 1), "three_streams": (3, 24)}
SMS = 132


def module(name):
    return figures.module(name)


def drawn(name, tables):
    made = module(name)
    figure = made.draw(made.data(tables), style.look(tables))
    figure.draw_without_rendering()
    return figure


def words(figure):
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    return texts + [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.fixture(scope="module")
def pipelines():
    """Three launches per variant with 5 ms per engine; the second launch is the longest, the third the median."""
    made = MadeUpTables()
    for order, (name, (streams, pieces)) in enumerate(STREAMS.items()):
        made.variant("overlap", name, order, 2, "64Mi", is_baseline=not order)
        for launch, slower in enumerate((1.0, 1.2, 1.1)):
            free, engine = [0.0] * streams, dict.fromkeys(ENGINES, 0.0)
            spans = {name: [] for name in ENGINES}
            for piece in range(pieces):
                stream = piece % streams
                for lane in ENGINES:
                    start = max(free[stream], engine[lane])
                    free[stream] = engine[lane] = end = start + 5000.0 * slower / pieces
                    spans[lane].append((start, end))
                    event = (lane.replace("kernel", "work"), stream, start + 1e5 * launch, end - start)
                    made.event("overlap", name, "64Mi", *event, launch=launch)
        metrics = overlap_metrics(spans["kernel"], spans[ENGINES[0]], spans[ENGINES[2]])
        made.counted("overlap", name, "64Mi", "", 0, metrics, tool="nsys")
        made.measured("overlap", name, "64Mi", 2**26, metrics["wall_us"], 1e11, 2**29)
    return made.tables(overlap="sequential")


def test_overlap_shows_the_launch_of_median_wall_time_by_engine(pipelines):
    rows = module("overlap").data(pipelines)
    sequential = rows[rows["variant"] == "sequential"]
    assert list(sequential["engine"]) == list(ENGINES)
    assert list(sequential["start_us"]) == pytest.approx([0, 5500, 11000])
    three = rows[rows["variant"] == "three_streams"]
    assert three.groupby("engine").size().to_dict() == dict.fromkeys(ENGINES, 24)
    assert sequential["longest_engine_pct"].iloc[0] == pytest.approx(100 / 3)
    assert three["longest_engine_pct"].iloc[0] == pytest.approx(100 * 24 / 26)
    assert {"16.5 ms", "33.3 %", "92.3 %"} <= set(words(drawn("overlap", pipelines)))


def test_copies_across_the_bus_are_measured_by_its_peak():
    tables = vector_add()
    gpus = tables.gpus.assign(pcie_gbytes_per_s_peak=63.0)
    slow = tables.measurements.assign(gbytes_per_s=50.0, gflops=0.0)
    over = replace(tables, gpus=gpus, measurements=slow, variants=tables.variants.assign(limit="pcie"))
    quantity = over.quantity()
    assert (quantity.column, quantity.peak, quantity.peak_label) == ("gbytes_per_s", 63.0, "PCIe peak")
    assert replace(over, variants=tables.variants).quantity().peak_label == "DRAM peak"
    both_ways = replace(over, measurements=slow.assign(gbytes_per_s=89.0)).quantity()
    assert math.isnan(both_ways.peak), "that of one direction is no bound for copies in both"


def test_overlap_lanes_do_not_share_a_place(pipelines):
    bars = [p for p in drawn("overlap", pipelines).axes[0].patches if p.get_height() < 0.5]
    places = {round(p.get_y(), 3) for p in bars}
    assert len(bars) == 3 + 72
    assert len(places) == 2 * len(ENGINES)


@pytest.fixture(scope="module")
def traces():
    """Traces of two cases of cublas: random data at the power limit, zeros far below it; `plain` has none."""
    made = MadeUpTables()
    for order, name in enumerate(("plain", "cublas")):
        made.variant("power", name, order, 2, "8192-random", is_baseline=name == "cublas")
        for case, watts, mhz in (("8192-random", 700.0, 1500.0), ("8192-zeros", 350.0, 1980.0)):
            tflops, flops = 700 * mhz / 1980, 2.0 * 8192**3
            energy = watts / tflops if name == "cublas" else np.nan
            made.measured(
                "power", name, case, 8192, flops / tflops / 1e6, flops, 6 * 8192**2, pj_per_flop=energy
            )
            if name == "cublas":
                key = {"family": "power", "variant": name, "case": case, **made.mark}
                made.rows["power_trace"] += [
                    {**key, "time_s": i * 0.02, "sm_mhz": mhz, "power_w": watts, "temperature_c": 50.0,
                     "energy_j": watts * i * 0.02, "throttle_reasons": "", "gflops": 1e3 * tflops}
                    for i in range(100)
                ]  # fmt: skip
    return made.tables(power="cublas")


def test_power_trace_draws_a_line_per_case_and_the_energy_below(traces):
    figure = drawn("power_trace", traces)
    clock, power, speed, energy = figure.axes
    assert [line.get_ydata()[0] for line in power.lines] == [700, 350]
    assert [line.get_ydata()[0] for line in clock.lines] == [1500, 1980]
    assert speed.lines[1].get_ydata()[0] == pytest.approx(700)
    assert [bar.get_height() for bar in energy.patches] == pytest.approx([700 / (700 * 1500 / 1980), 0.5])
    assert {"8192-random", "8192-zeros", "1.32", "0.500"} <= set(words(figure))


def test_power_trace_names_variants_without_one(traces):
    rows = module("power_trace").data(traces)
    assert list(rows.loc[rows["variant"] == "plain", "gap"]) == ["no trace recorded"]
    assert "plain: no trace recorded" in drawn("power_trace", traces).get_supxlabel().replace("\n", " ")


@pytest.fixture(scope="module")
def steps():
    """The family's own cases, with times that depend only on tiles and waves: 100 us per wave."""
    family = load_family(ROOT / "kernels/quantization/family.yaml")
    made = MadeUpTables()
    for order, v in enumerate(family.variants):
        text = {"parameters": json.dumps(dict(v.parameters)), "size_label": family.work.size_label}
        about = {"is_baseline": v.name == family.baseline, **text}
        made.variant("quantization", v.name, order, 3, "16896", **about)
        tile, per_sm = v.parameters["BM"], v.parameters["BLOCKS_PER_SM"]
        for case in family.cases.values():
            m, n = int(case.values["M"]), int(case.values["N"])
            blocks = np.ceil(m / tile) * np.ceil(n / v.parameters["BN"])
            us = 100.0 * np.ceil(blocks / (SMS * per_sm))
            made.measured(
                "quantization", v.name, case.name, m, us, family.amount(family.work.flops, case, 132), 4 * m
            )
        grid = np.ceil(16896 / tile) * 128 / v.parameters["BN"]
        counters = {"grid_blocks": grid, "occupancy_limit_warps_blocks": 8}
        counters |= {"occupancy_limit_shared_memory_blocks": per_sm}
        made.counted("quantization", v.name, "16896", "gemm", 0, counters)
    return made.tables(quantization="tile_128")


def test_waves_predict_what_only_waves_make(steps):
    rows = module("quantization").data(steps)
    assert "33x33" not in set(rows["case"]), "another kind of case"
    assert rows["predicted_us"].to_numpy() == pytest.approx(rows["median_us"].to_numpy())
    by_case = rows[rows["variant"] == "tile_128"].set_index("case")
    assert by_case.loc["16896", "waves"] == 1
    assert by_case.loc["16897", "blocks"] == 133
    assert by_case.loc["16897", "median_us"] == 2 * by_case.loc["16896", "median_us"]
    assert rows.loc[rows["variant"] == "tile_32", "blocks_per_sm"].iloc[0] == 1
    two = rows[rows["variant"] == "tile_128_two_blocks"].set_index("case")
    assert two.loc["33792", "waves"] == 1
    small = rows[rows["variant"] == "tile_32"].set_index("case")
    assert small.loc["129", "blocks"] == 5 * 4, "four columns of tiles, from the counters of a captured case"


def test_quantization_tells_blocks_and_needs_no_counters(steps):
    assert "tile_128, 1 block per SM" in words(drawn("quantization", steps))
    uncounted = replace(steps, metrics=steps.metrics.iloc[:0])
    rows = module("quantization").data(uncounted)
    assert rows["predicted_us"].isna().all()
    assert "tile_128" in words(drawn("quantization", uncounted))


def title(name, tables, change=lambda rows: rows):
    made = module(name)
    return made.draw(change(made.data(tables)), style.look(tables)).get_suptitle().replace("\n", " ")


def test_titles_state_the_finding(pipelines, traces, steps):
    assert title("overlap", pipelines).startswith(
        "Overlap of copies and kernels: three_streams takes 5.96 ms instead of 16.5"
    )
    assert title("power_trace", traces).startswith(
        "Energy per FLOP of cublas: 1.32 pJ with 8192-random, 0.500 pJ with 8192-zeros ·"
    )
    assert "tile_128_two_blocks takes 2.00 times as long at 33920 as at 33792" in title("quantization", steps)


@pytest.mark.parametrize("width_in", [7.2, 3.3])
def test_the_text_of_a_power_trace_is_inside_of_it(traces, width_in):
    settings = replace(WEB, width_in=width_in)
    rows = module("power_trace").data(traces)
    figure = module("power_trace").draw(rows, style.look(traces, settings))
    with style.theme(settings):
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < width_in + 0.05
    assert "(s)" in figure.axes[2].get_xlabel()


def test_without_a_trace_there_is_nothing_to_show(traces):
    assert module("power_trace").data(replace(traces, power_trace=traces.power_trace.iloc[:0])).empty


def test_energies_of_two_sizes_are_not_compared(traces):
    def larger(rows):
        zeros = rows["case"] == "8192-zeros"
        return rows.assign(size=rows["size"].mask(zeros, 16384), case=rows["case"].mask(zeros, "16384-zeros"))

    assert title("power_trace", traces, larger).startswith(
        "Clock, power and speed of back-to-back launches ·"
    )


def test_dips_at_the_power_limit_are_explained(traces):
    limited = replace(traces, power_trace=traces.power_trace.assign(throttle_reasons="sw_power_cap"))
    for tables, expected in ((traces, False), (limited, True)):
        assert (
            "dips: the controller of the power limit" in drawn("power_trace", tables).get_supxlabel()
        ) == expected


def test_titles_without_a_finding_name_the_subject(pipelines, traces, steps):
    shown = title("overlap", pipelines, lambda rows: rows.assign(is_baseline=False))
    assert shown.startswith("Overlap of copies and kernels in one launch ·")
    shown = title("power_trace", traces, lambda rows: rows.assign(pj_per_flop=np.nan))
    assert shown.startswith("Clock, power and speed of back-to-back launches ·")
    assert title("quantization", steps, lambda rows: rows.assign(median_us=1.0)).startswith(
        "Tile and wave quantization ·"
    )


def test_pieces_too_narrow_to_be_told_apart_are_one_bar():
    overlap = module("overlap")
    piece = {"engine": "kernel", "duration_us": 5.0}
    events = pd.DataFrame([piece | {"start_us": 5.1 * i} for i in range(100)])
    assert list(overlap._joined(events, 10.0)["duration_us"]) == [pytest.approx(5.1 * 99 + 5)]
    assert len(overlap._joined(events, 4.0)) == 100
    apart = events.assign(start_us=events["start_us"] * 2)
    assert len(overlap._joined(apart, 10.0)) == 100
    other = pd.concat([events, events.assign(engine="Host-to-Device")])
    assert len(overlap._joined(other, 10.0)) == 2
