"""What a long hot run costs: power, energy and throughput from the trace that the timing of a case keeps."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from warplog.records import Record


def of_run(found: Record, flops: float) -> dict[str, float | None]:
    """Columns of `measurements` for a timed case that kept a trace; {} for one that kept none.

    hot_power_w is the slope of the GPU's energy counter over the run, which its coarse steps blur least; where
    there is no counter, the mean of the power readings. All else follows from it, from the mean clock of the
    run and from its median time per launch.
    """
    trace = found.get("trace")
    if not trace:
        return {}
    hot_us = found["hot"]["median_us"]
    power_w, mhz = _power_w(trace), _mean(trace["sm_mhz"])
    energy_j = power_w * hot_us * 1e-6 if power_w else None
    return {
        "hot_power_w": power_w,
        "hot_sm_mhz": mhz,
        "energy_j": energy_j,
        "gflop_per_j": flops * 1e-9 / energy_j if energy_j and flops else None,
        "pj_per_flop": energy_j * 1e12 / flops if energy_j and flops else None,
        "tflops_per_ghz": flops / hot_us * 1e-3 / mhz if mhz and flops else None,
    }


def trace_rows(found: Record, flops: float) -> Iterator[dict[str, Any]]:
    """Rows of the table `power_trace`: what the GPU told at each moment, and the rate of the launches then."""
    trace, hot = found.get("trace"), found.get("hot")
    if not trace or not hot:
        return
    samples_us = np.asarray(hot["samples_us"])
    launches = hot["launches"] / samples_us.size  # of one sample
    ends_s = np.cumsum(samples_us) * launches * 1e-6
    for i, time_s in enumerate(trace["time_s"]):
        here = min(int(np.searchsorted(ends_s, time_s)), samples_us.size - 1)
        yield {
            **{name: values[i] for name, values in trace.items()},
            "gflops": flops / float(samples_us[here]) * 1e-3 if flops else None,
        }


def _power_w(trace: Mapping[str, Any]) -> float | None:
    told = [(t, e) for t, e in zip(trace["time_s"], trace["energy_j"], strict=True) if e is not None]
    if len({energy for _, energy in told}) > 2:
        times, energies = np.array(told, dtype=np.float64).T
        return float(np.polyfit(times - times[0], energies - energies[0], 1)[0])
    return _mean(trace["power_w"])


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
