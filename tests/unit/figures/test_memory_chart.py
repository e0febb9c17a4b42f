"""The memory chart: what it says of each unit and arrow, and what of counters that are missing."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawn_figures import texts

from figure_tables import sgemm
from warplog import figures
from warplog.figures.shared import style
from warplog.figures.shared.memory_boxes import METRICS, chart, turned
from warplog.figures.shared.settings import settings_of
from warplog.records.config import FigureSettings

FIGURE = figures.module("memory_chart")
KERNEL = {
    **dict.fromkeys(METRICS, 0.0), "duration_us": 2831.0, "inst_stg": 131072.0, "inst_lds": 1e8, "inst_ldsm": 8e6,
    "inst_sts": 2e6, "global_load_sectors_per_request": np.nan, "global_store_sectors_per_request": 16.0,
    "shared_wavefronts": 3.07e8, "shared_conflict_ways": 1.14, "l1_bytes": 4.36e9, "l1_hit_pct": 5.5,
    "l1_throughput_pct": 33.8, "l2_bytes": 4.31e9, "l2_hit_pct": 85.7, "l2_throughput_pct": 17.2,
    "dram_bytes_read": 3.42e8, "dram_bytes_written": 5.43e7, "dram_gbytes_per_s": 140.0, "dram_throughput_pct": 2.91,
}  # fmt: skip


def boxes(drawn):
    return {box.name: box.lines for box in drawn.boxes}


def labels(drawn):
    return [" ".join(filter(None, (arrow.above, arrow.below))) for arrow in drawn.arrows]


def counted(tables, **kernels):
    """The tables with the metrics of these variants' kernels instead of their own."""
    given = {*METRICS, *(metric for values in kernels.values() for metric in values)}
    rows = tables.metrics[~tables.metrics["metric"].isin(given) | ~tables.metrics["variant"].isin(kernels)]
    rows = rows.to_dict("records")
    for name, values in kernels.items():
        first = next(r for r in rows if (r["variant"], r["case"], r["launch"]) == (name, "4096", 0))
        rows += [{**first, "metric": metric, "value": value} for metric, value in values.items()]
    return replace(tables, metrics=pd.DataFrame(rows))


def test_boxes_and_arrows_have_the_recorded_values():
    drawn = chart("cp_async", KERNEL)
    assert boxes(drawn) == {
        "Kernel": ("2831 µs",),
        "L1/TEX": ("4.36 GB", "5.50 % hits", "L1 and shared:", "33.8 % used"),
        "Shared": ("307 M wavefronts", "1.14-way"),
        "L2": ("4.31 GB", "85.7 % hits", "17.2 % used"),
        "Device": ("140 GB/s", "2.91 % used"),
    }
    assert boxes(chart("slow", KERNEL | {"duration_us": 275_820.0}))["Kernel"] == ("276 ms",)
    assert {
        "131 k stores 16 sectors/req.",
        "108 M loads",
        "2 M stores",
        "342 MB read",
        "54.3 MB written",
    } <= set(labels(drawn))
    assert {box.name: box.used for box in drawn.boxes}["L2"] == pytest.approx(0.172)


def test_the_arrows_between_l1_and_l2_have_the_bytes_that_follow_from_the_counters():
    """131072 stores of 16 sectors of 32 bytes are 67.1 MB; of 4.36 GB, 94.5 % were not in L1."""
    assert {"≤ 4.12 GB requested", "67.1 MB sectors written"} <= set(labels(chart("cp_async", KERNEL)))
    stores_only = chart("stores_only", {**KERNEL, "l1_bytes": 131072.0 * 16 * 32, "l1_hit_pct": 0.0})
    assert "0 B requested" in labels(stores_only)
    few = chart("loads_of_few_bytes", {**KERNEL, "l1_bytes": 2 * 131072.0 * 16 * 32, "l1_hit_pct": 0.0})
    assert "≤ 67.1 MB requested" in labels(few), "what was not in L1 contains the stores"
    assert "▼ ≤ 66.9 MB requested" in labels(
        chart("fewer", {**KERNEL, "l1_bytes": 1.34e8, "l1_hit_pct": 0.0}, KERNEL)
    )
    idle_stores = {**KERNEL, "inst_ldg": 131072.0, "global_load_sectors_per_request": 16.0}
    idle_stores |= {"l1_bytes": 1.5 * 131072 * 16 * 32, "l1_hit_pct": 0.0}
    assert {"≤ 101 MB requested", "≤ 67.1 MB sectors written"} <= set(labels(chart("idle", idle_stores)))
    unknown = labels(chart("old", {"l2_bytes": 1e9}))
    assert {"n/a B requested", "n/a B sectors written"} <= set(unknown)


def test_traffic_that_does_not_exist_is_not_drawn_as_traffic():
    idle = [arrow for arrow in chart("stores_only", KERNEL).arrows if arrow.is_idle]
    assert [arrow.above for arrow in idle] == ["no loads"]
    bypassed = chart("bypassed", {**KERNEL, "inst_stg": 0.0, "l1_bytes": 0.0}).arrows
    assert [arrow.below for arrow in bypassed if arrow.above == "0 B"] == ["requested", "sectors written"]
    assert not any("TMA" in label or "async" in label for label in labels(chart("plain", KERNEL)))
    tma = chart(
        "tma", {**KERNEL, "inst_utmaldg": 131072.0, "inst_hgmma": 10.0, "inst_lds": 0.0, "inst_ldsm": 0.0}
    )
    assert "131 k TMA loads" in labels(tma)
    assert "no loads besides wgmma" in labels(tma)
    assert "2 M stores besides TMA" in labels(tma)
    assert boxes(tma)["Shared"][-2:] == ("read by wgmma", "written by TMA")
    assert len(boxes(chart("plain", KERNEL))["Shared"]) == 2
    assert "8.45 M async copies" in labels(chart("async", {**KERNEL, "inst_ldgsts": 8.45e6}))


def test_loads_without_ldg_are_generic_or_local_rather_than_absent():
    """LD has no counter, but its requests have sectors; a spilling kernel looks its local loads up in L1."""
    generic = labels(chart("wmma", {**KERNEL, "global_load_sectors_per_request": 8.0}))
    assert "n/a (generic loads) 8 sectors/req." in generic
    asynchronous = {"global_load_sectors_per_request": 16.0, "inst_ldgsts": 1e6}
    assert "no loads" in labels(chart("cp_async", KERNEL | asynchronous))
    assert "39.3 M local loads" in labels(chart("spills", KERNEL | {"inst_ldl": 39.3e6}))


BLACKWELL = {
    **KERNEL, "tensor_memory_bytes_allocated": 131072.0, "tensor_memory_load_reads": 2.1e6,
    "tensor_memory_mma_reads": 3.4e7, "tensor_memory_mma_writes": 3.3e7, "tensor_memory_copy_writes": 4096.0,
}  # fmt: skip


def test_tensor_memory_is_a_box_below_shared_memory_of_a_kernel_that_uses_it():
    drawn = chart("tcgen05", BLACKWELL)
    assert boxes(drawn)["Tensor memory"] == ("131 kB per SM", "34 M reads", "33 M writes", "by tcgen05")
    assert boxes(drawn)["Shared"][-1] == "read by tcgen05"
    assert {"2.1 M reads", "no writes", "4096 writes by copies"} <= set(labels(drawn))
    for box in drawn.boxes:
        assert box.x + box.width <= drawn.size[0]
        assert box.y + box.height <= drawn.size[1]
    plain = chart("wgmma", KERNEL)
    unused = chart(
        "simt", {**BLACKWELL, "tensor_memory_bytes_allocated": 0.0, "tensor_memory_mma_writes": 0.0}
    )
    assert unused.boxes == plain.boxes
    assert plain.size[1] < drawn.size[1]
    narrow = turned(drawn)
    assert narrow.size == plain.size[::-1]
    assert "Tensor memory" not in boxes(narrow)
    assert not any("tensor" in label or "copies" in label for label in labels(narrow))


def test_traffic_that_is_only_known_in_both_directions_together_is_one_arrow():
    both = {**KERNEL, "dram_bytes_read": np.nan, "dram_bytes_written": np.nan, "dram_bytes": 4e8}
    drawn = labels(chart("of_two_directions", both))
    assert "400 MB read, written" in drawn
    assert not any(label.startswith("n/a") for label in drawn)
    tables = counted(sgemm(), warptile=both, cp_async_pipelined=both)
    assert FIGURE.data(tables).set_index("variant")["place"]["cp_async_pipelined"] == 1.0


def test_figure_with_tensor_memory_shows_it_beside_a_parent_without():
    tables = counted(sgemm(), warptile=KERNEL, cp_async_pipelined=BLACKWELL)
    parent, own = FIGURE.draw(FIGURE.data(tables), style.look(tables)).axes
    assert own.get_ylim()[0] > parent.get_ylim()[0]
    assert any("Tensor memory" in text.get_text() for text in own.texts)
    hopper = {name: value for name, value in KERNEL.items() if not name.startswith("tensor_memory_")}
    without = counted(sgemm(), warptile=hopper, cp_async_pipelined=hopper)
    with_column, no_column = ("tensor_memory_mma_reads" in FIGURE.data(t) for t in (tables, without))
    assert (with_column, no_column) == (True, False)


def test_the_use_of_l1_is_that_of_elapsed_cycles_as_in_the_sentences():
    """1e6 instructions at 2 per cycle take 5e5 cycles of active SMs: half of the 132 SMs in 7576 cycles."""
    sms = sgemm().peak("sms")
    half = {"instructions_executed": 1e6, "ipc": 2.0, "gpu_cycles": 1e6 / sms}
    tables = counted(sgemm(), warptile=KERNEL | half, cp_async_pipelined=KERNEL)
    rows = FIGURE.data(tables).set_index("variant")
    assert rows.loc["warptile", "l1_throughput_pct"] == pytest.approx(33.8 / 2)


def test_a_counter_that_is_missing_is_not_available_rather_than_zero():
    drawn = chart(
        "old", {name: value for name, value in KERNEL.items() if name in ("dram_bytes_read", "l2_bytes")}
    )
    assert boxes(drawn)["L1/TEX"] == ("n/a B", "n/a % hits", "L1 and shared:", "n/a % used")
    assert boxes(drawn)["L2"][0] == "4.31 GB"
    assert "n/a loads n/a sector/req." in labels(drawn)
    assert not any(arrow.is_idle for arrow in drawn.arrows)


def test_values_that_differ_from_the_parents_by_a_tenth_are_marked():
    parent = {**KERNEL, "dram_bytes_read": 9.18e8, "inst_stg": 65536.0, "l2_bytes": 4.3e9}
    texts = labels(chart("child", KERNEL, parent))
    assert "▼ 342 MB read" in texts
    assert "▲ 131 k stores 16 sectors/req." in texts
    assert boxes(chart("child", KERNEL, parent))["L2"][0] == "4.31 GB"


def test_figure_shows_the_fastest_variant_with_counters_below_its_parent():
    slower = {**KERNEL, "dram_bytes_read": 9.18e8}
    tables = counted(sgemm(), warptile=slower, cp_async_pipelined=KERNEL, cublas=KERNEL)
    rows = FIGURE.data(tables).set_index("variant")
    assert rows["place"].dropna().to_dict() == {"warptile": 0.0, "cp_async_pipelined": 1.0}
    assert rows.loc["warptile", "dram_bytes_read"] == 9.18e8
    figure = FIGURE.draw(FIGURE.data(tables), style.look(tables))
    title = figure.get_suptitle().replace("\n", " ")
    assert title.startswith(
        "Memory chart: cp_async_pipelined reads 63 % less from device memory than warptile · sgemm"
    )
    same = counted(sgemm(), warptile=KERNEL, cp_async_pipelined=KERNEL)
    title = FIGURE.draw(FIGURE.data(same), style.look(same)).get_suptitle().replace("\n", " ")
    assert title.startswith(
        "Memory chart: cp_async_pipelined moves as much as warptile in L1, L2 and device memory,"
    )
    past = counted(sgemm(), warptile=KERNEL, cp_async_pipelined={**KERNEL, "l1_bytes": 0.0})
    title = FIGURE.draw(FIGURE.data(past), style.look(past)).get_suptitle().replace("\n", " ")
    assert "moves as much as warptile in L2 and device memory," in title, "one that bypasses L1"
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["warptile", "cp_async_pipelined"]
    assert {"918 MB", "▼ 342 MB"} <= set(texts(figure))


def test_a_variant_with_the_kernel_of_its_parent_stands_below_the_nearest_other_kernel():
    tables = counted(
        sgemm(), warptile=KERNEL, cp_async_pipelined=KERNEL, autotuned={**KERNEL, "inst_sts": 3e6}
    )
    tables = replace(tables, metrics=tables.metrics.assign(kernel="k"))
    rows = FIGURE.data(tables).set_index("variant")
    assert rows["place"].dropna().to_dict() == {"autotuned": 0.0, "cp_async_pipelined": 1.0}


def test_narrow_figure_shows_only_the_fastest_variant():
    tables = counted(sgemm(), warptile=KERNEL, cp_async_pipelined=KERNEL)
    look = style.look(tables, settings_of(FigureSettings(style="paper", width_in=3.3)))
    figure = FIGURE.draw(FIGURE.data(tables), look)
    assert [axes.texts[0].get_text() for axes in figure.axes] == ["cp_async_pipelined"]


def test_figure_without_counters_says_so():
    tables = sgemm(uncounted=tuple(sgemm().variants["variant"]))
    figure = FIGURE.draw(FIGURE.data(tables), style.look(tables))
    assert "no variant has a time and counters" in texts(figure)
