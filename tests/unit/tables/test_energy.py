"""Energy and rate from the trace of a long hot run."""

import numpy as np
import pytest

from warplog.tables import rows as energy

FLOPS = 4e9


def found(energy_j=None, power_w=500.0, sm_mhz=1500):
    """A case timed for two seconds, 10 launches per sample: 75 samples at 1.333 ms per launch, then 50 at 2 ms."""
    times = np.arange(0, 2, 0.02)
    samples_us = [1333.0] * 75 + [2000.0] * 50
    column = [energy_j(t) if energy_j else None for t in times]
    return {
        "hot": {"median_us": 1333.0, "launches": 1250, "samples_us": samples_us},
        "trace": {
            "time_s": list(times),
            "sm_mhz": [sm_mhz] * len(times),
            "power_w": [power_w] * len(times),
            "temperature_c": [50] * len(times),
            "energy_j": column,
            "throttle_reasons": [""] * len(times),
        },
    }


def test_power_is_the_slope_of_the_energy_counter_in_spite_of_its_steps():
    stepped = found(lambda t: 1e6 + 600.0 * np.floor(t / 0.1) * 0.1)
    assert energy.energy_of_run(stepped, FLOPS)["hot_power_w"] == pytest.approx(600, rel=0.01)


def test_without_a_counter_power_is_the_mean_of_the_readings():
    told = energy.energy_of_run(found(), FLOPS)
    assert told["hot_power_w"] == 500
    joule = 500 * 1333e-6
    assert told["energy_j"] == pytest.approx(joule)
    assert told["gflop_per_j"] == pytest.approx(4 / joule)
    assert told["pj_per_flop"] == pytest.approx(joule / FLOPS * 1e12)
    assert told["tflops_per_ghz"] == pytest.approx(4e9 / 1333e-6 * 1e-12 / 1.5)


def test_a_gpu_that_tells_nothing_has_no_energy_and_no_zero():
    silent = energy.energy_of_run(found(power_w=None, sm_mhz=None), FLOPS)
    assert set(silent.values()) == {None}
    no_flops = energy.energy_of_run(found(), 0)
    assert (no_flops["pj_per_flop"], no_flops["gflop_per_j"]) == (None, None)
    assert no_flops["energy_j"] > 0


def test_a_case_without_a_trace_adds_nothing():
    plain = {"hot": found()["hot"]}
    assert energy.energy_of_run(plain, FLOPS) == {}
    assert list(energy.power_trace_rows(plain, FLOPS)) == []


def test_the_rate_at_a_moment_is_that_of_the_launches_then():
    rows = list(energy.power_trace_rows(found(), FLOPS))
    assert rows[0]["gflops"] == pytest.approx(4 / 1333e-6)
    assert rows[-1]["gflops"] == pytest.approx(4 / 2000e-6)
    change = next(row["time_s"] for row in rows if row["gflops"] < 2500)
    assert change == pytest.approx(75 * 10 * 1333e-6, abs=0.021)
    assert {"sm_mhz", "power_w", "temperature_c", "energy_j", "throttle_reasons"} < set(rows[0])
