"""The table rows of a long hot run and of a host-timed family."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_energy import found

from host_family import make_family
from warplog.catalog.contract import Measuring
from warplog.core.columns import TABLES
from warplog.machine import device
from warplog.machine.device import Gpu
from warplog.tables import rows as table_rows
from warplog.tables import stages
from warplog.tables.files import as_frame
from warplog.tables.records import FamilyRecords, Source, VariantRecords
from warplog.tables.rows import agreement

GPU = Gpu("h200", "NVIDIA H200", "GPU-1", (9, 0), "sm_90", 132, 0, "", "", 1980, 700.0, "")
CAMPAIGN = {"gpu_name": "NVIDIA H200", "campaign": "test"}


@pytest.fixture
def rows_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Builds the tables of the host family, timed once with a trace and once without, with an nsys capture."""
    family = make_family(tmp_path)
    times = dict.fromkeys(("q1_us", "q3_us", "min_us", "max_us", "mean_us", "median_us"), 1400.0)
    cold = {**times, "samples": 12, "rel_spread": 0.01, "empty_us": 1.0, "sm_mhz": 1900.0}
    traced = found(lambda t: 600.0 * t)
    traced["hot"]["rel_spread"] = 0.01
    cases: list[dict[str, Any]] = [
        {"case": "64", "status": "ok", "reason": "", "seconds": 2.5, "cold": cold, **traced},
        {"case": "1000", "status": "ok", "reason": "", "seconds": 0.25, "cold": cold},
    ]
    ok = {"status": "ok", "reason": ""}
    us = {"unit": "us", "tool_version": "1", **ok}
    nsys = {**us, "case": "64", "kernel": "", "launch": 0, "metric": "nsys_duration_us", "value": 700.0,
            "tool": "nsys"}  # fmt: skip
    timed = (("64", "a", 900.0), ("64", "b", 480.0), ("1000", "a", 900.0), ("1000", "b", None))
    ncu = [
        {
            **us,
            "case": case,
            "kernel": kernel,
            "launch": 0,
            "metric": "duration_us",
            "value": value,
            "tool": "ncu",
        }
        for case, kernel, value in timed
    ]
    errors = (0.25, 0.75, 0.5)
    checked = [{"case": str(i), "max_error_over_tolerance": error, **ok} for i, error in enumerate(errors)]
    records = VariantRecords(
        build={**ok, "seconds": 3.0}, check={**ok, "cases": [*checked, {"case": "unsupported", **ok}]},
        time={**ok, "cases": cases, "session": {"start_seconds": 0.5}},
        extract={**ok, "rows": [nsys, *ncu], "timeline": [], "lines": []},
    )  # fmt: skip
    monkeypatch.setattr(FamilyRecords, "of", lambda *_: records)

    def make(measuring: Measuring) -> dict[str, list[dict[str, Any]]]:
        changed = replace(family, measuring=measuring, flops="4000000000")
        source = Source(tmp_path, "h200", "sm_90", "live", CAMPAIGN)
        peaks = device.peaks(GPU, {})
        chosen = {"scale": changed.variants}
        return table_rows.make_rows(source, {"scale": changed}, {"scale": ("64", "1000")}, chosen, GPU, peaks)

    return make


def test_a_case_without_a_hot_time_has_a_row_that_nothing_hot_is_compared_in(rows_of) -> None:
    _, second = rows_of(Measuring())["measurements"]
    assert (second["median_us"], second["hot_us"], second["agreement"]) == (1400.0, None, "")
    assert agreement(1400.0, None, 1400.0, 700.0) == "ok", "cold is still compared with ncu"


@pytest.mark.parametrize(
    ("cold_us", "ncu_us", "told"),
    [
        (1030.9, 1000.0, "ok"),
        (1031.1, 1000.0, "disagree: cold 1031 us, ncu 1000 us"),
        (969.1, 1000.0, "ok"),
        (968.9, 1000.0, "disagree: cold 968.9 us, ncu 1000 us"),
        (2.9, 2.0, "ok"),
        (3.1, 2.0, "disagree: cold 3.1 us, ncu 2 us"),
    ],
)
def test_times_agree_within_three_percent_and_a_microsecond(cold_us, ncu_us, told) -> None:
    assert agreement(cold_us, None, ncu_us, None) == told
    hot = told.replace("cold", "hot").replace("ncu", "nsys")
    assert agreement(1.0, cold_us, None, ncu_us) == hot


def test_the_duration_of_a_launch_is_the_sum_over_its_kernels(rows_of) -> None:
    """The rows have two kernels for ncu, of 900 and 480 us, and one that it could not time in the other case."""
    first, second = rows_of(Measuring())["measurements"]
    assert (first["ncu_us"], second["ncu_us"]) == (1380.0, None)


def test_the_error_of_a_variant_is_the_largest_of_its_check(rows_of) -> None:
    assert [row["max_error_over_tolerance"] for row in rows_of(Measuring())["measurements"]] == [0.75, 0.75]


def test_where_the_time_goes_is_a_table(rows_of) -> None:
    rows = rows_of(Measuring())["stages"]
    told = [(r["stage"], r.get("cases"), r["seconds"], r.get("start_seconds")) for r in rows]
    assert told == [("build", None, 3.0, None), ("check", 0, 0, None), ("time", 2, 2.75, 0.5)]
    assert stages.summary(rows) == "3 s on the GPU (check 0, time 3); 3 s of compiler"


def test_a_trace_is_a_table_and_its_energy_stands_beside_the_times(rows_of) -> None:
    rows = rows_of(Measuring(hot_seconds=2))
    first, second = rows["measurements"]
    assert first["hot_power_w"] == pytest.approx(600)
    assert first["energy_j"] == pytest.approx(600 * 1333e-6)
    assert first["pj_per_flop"] == pytest.approx(600 * 1333e-6 / 4e9 * 1e12)
    assert "energy_j" not in second
    trace = rows["power_trace"]
    assert {(r["family"], r["variant"], r["case"], r["gpu"]) for r in trace} == {
        ("scale", "right", "64", "h200")
    }
    assert len(trace) == 100
    frame = as_frame(trace, TABLES["power_trace"], "power_trace")
    assert frame["gflops"].iloc[0] == pytest.approx(4 / 1333e-6)
    assert len(as_frame(rows["measurements"], TABLES["measurements"], "measurements")) == 2


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        ("stream", "disagree: hot 1333 us, nsys 700 us (2 kernels per launch, each cold in ncu)"),
        ("host", ""),
    ],
)
def test_times_with_the_hosts_part_are_not_compared_with_a_profilers(rows_of, timing, expected) -> None:
    assert rows_of(Measuring(timing=timing))["measurements"][0]["agreement"] == expected
