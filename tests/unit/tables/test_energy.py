"""Sustained times, energy and rates, and the trace of a sustained run."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import made_up_records
from warplog.records.time import Sustained, TimeCase, Trace
from warplog.tables import rows as tables

FLOPS = 4e9
LAUNCH_US = 1333.0


def run(**changed: Any) -> Sustained:
    return made_up_records.sustained(LAUNCH_US, **changed)


def measured(sustained: Sustained | None, means_us: tuple[float, ...] = (), launches: int = 10) -> TimeCase:
    """A case of three processes with a hot time of 1300 us."""
    runs = [made_up_records.run(us, launches=launches) for us in means_us] or [None] * 3
    return made_up_records.time_case(
        "64",
        made_up_records.cold([1400.0] * 3),
        [made_up_records.process(i, 1400.0, 1, hot_us=1300.0, sustained=runs[i - 1]) for i in (1, 2, 3)],
        hot=made_up_records.hot([1300.0] * 3),
        **({"sustained": sustained} if sustained else {}),
    )


def traced() -> TimeCase:
    """A case with a trace of two seconds: 75 samples of 1.333 ms and 50 of 2 ms, of 10 launches each."""
    times = tuple(np.arange(0, 2, 0.02))
    trace = Trace(
        time_s=times,
        sm_mhz=(1500.0,) * len(times),
        power_w=(500.0,) * len(times),
        temperature_c=(50.0,) * len(times),
        energy_j=(None,) * len(times),
        throttle_reasons=("", "sw_power_cap") * (len(times) // 2),
    )
    samples_us = (LAUNCH_US,) * 75 + (2000.0,) * 50
    return measured(
        run(samples_us=samples_us, launches=3750, trace=trace), (1600.0, 1610.0, 1590.0), launches=1250
    )


def test_a_sustained_run_gives_time_rate_and_energy() -> None:
    """600 W for 1.333 ms are 0.8 J, for 4 GFLOP."""
    row = tables.sustained_columns(measured(run(), (1333.0, 1340.0, 1320.0)), FLOPS)
    assert (row["sustained_us"], row["sustained_sm_mhz"], row["sustained_power_w"]) == (
        LAUNCH_US,
        1500.0,
        600.0,
    )
    assert row["limited_by"] == "power"
    assert row["sustained_process_spread"] == pytest.approx(0.01515, rel=1e-3)
    assert row["sustained_gflops"] == pytest.approx(3000.75, rel=1e-4)
    assert row["energy_j"] == pytest.approx(0.7998)
    assert row["gflop_per_j"] == pytest.approx(5.00125, rel=1e-4)
    assert row["pj_per_flop"] == pytest.approx(199.95)
    assert row["tflops_per_ghz"] == pytest.approx(2.0005, rel=1e-4)


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        ((), "other"),
        (("sw_power_cap", "sw_thermal_slowdown"), "power"),
        (("hw_power_brake_slowdown",), "power"),
        (("hw_thermal_slowdown",), "temperature"),
        (("hw_slowdown",), "other"),
    ],
)
def test_what_lowers_the_clock_has_a_kind(limits: tuple[str, ...], kind: str) -> None:
    assert tables.sustained_columns(measured(run(limits=limits)), FLOPS)["limited_by"] == kind


def test_a_reason_that_does_not_lower_the_clock_is_no_limit() -> None:
    """The driver still reports the power limit that an earlier case had reached."""
    full = measured(run(limits=("sw_power_cap",), sm_mhz=1977.0))
    assert tables.sustained_columns(full, FLOPS)["limited_by"] == ""


def test_if_no_limit_acts_the_sustained_time_is_the_hot_one_and_its_energy_is_unknown() -> None:
    row = tables.sustained_columns(measured(None), FLOPS)
    assert (row["sustained_us"], row["sustained_sm_mhz"], row["limited_by"]) == (1300.0, 1980.0, "")
    assert row["sustained_gflops"] == pytest.approx(3077, rel=1e-3)
    assert (row["sustained_power_w"], row["energy_j"], row["sustained_process_spread"]) == (None, None, None)


def test_a_case_that_the_profilers_do_not_capture_has_no_sustained_time_from_its_short_hot_run() -> None:
    """Bursts of 2 ms are over before the power limit acts."""
    assert tables.sustained_columns(measured(None), FLOPS, is_captured=False) == {}
    row = tables.sustained_columns(measured(run()), FLOPS, is_captured=False)
    assert row["sustained_us"] == run().mean_us


def test_a_case_without_a_hot_time_has_no_sustained_one() -> None:
    plain = replace(measured(None), hot=None, no_hot="not_wanted")
    assert tables.sustained_columns(plain, FLOPS) == {}


def test_a_gpu_that_reports_nothing_has_no_energy_and_no_zero() -> None:
    silent = tables.sustained_columns(measured(run(power_w=None, sm_mhz=None)), FLOPS)
    rates = ("energy_j", "gflop_per_j", "pj_per_flop", "tflops_per_ghz", "sustained_sm_mhz")
    assert {silent[name] for name in rates} == {None}
    no_flops = tables.sustained_columns(measured(run()), 0)
    assert (no_flops["pj_per_flop"], no_flops["gflop_per_j"], no_flops["sustained_gflops"]) == (
        None,
        None,
        None,
    )
    assert no_flops["energy_j"] > 0


def test_the_rate_at_a_moment_is_that_of_the_launches_then() -> None:
    rows = list(tables.power_trace_rows(traced(), FLOPS))
    assert len(rows) == 100
    assert rows[0]["gflops"] == pytest.approx(3000.75, rel=1e-4)
    assert rows[-1]["gflops"] == pytest.approx(2000)
    change = next(row["time_s"] for row in rows if row["gflops"] < 2500)
    assert change == pytest.approx(1.0, abs=0.021), "the samples are those of the first process"
    assert {"sm_mhz", "power_w", "temperature_c", "energy_j", "throttle_reasons"} < set(rows[0])


def test_a_case_without_a_trace_adds_nothing_to_it() -> None:
    assert list(tables.power_trace_rows(measured(run()), FLOPS)) == []
    assert list(tables.power_trace_rows(measured(None), FLOPS)) == []
