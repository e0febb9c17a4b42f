"""Combines the measurements of a case from several processes: the median over processes is the number."""

import math
from collections.abc import Sequence
from statistics import fmean, median, stdev
from typing import Any

from warplog.core.records import Record, worst
from warplog.core.statistics import MEDIAN_EFFICIENCY, summarise
from warplog.measure.power_limit import times_at_limit
from warplog.measure.worker.timer import FULL_CLOCK

_LEAST_GAP_US = 0.2
_LEAST_RUN_S = 1e-3
_POWER_CAP = "sw_power_cap"
# Expected range of n normal values in standard deviations: L. H. C. Tippett, Biometrika 17 (1925) 364.
RANGE_OF_NORMAL = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704, 8: 2.847, 9: 2.970, 10: 3.078}


def missing_runs(rest: Sequence[Record], error: float, most_s: float = math.inf) -> int:
    """Returns how many more runs at rest the median over runs needs for a relative standard error of `error`.

    There are never so many that they would take longer than `most_s` seconds. A case that failed in a process needs
    none, since it has no time.
    """
    if any(one["status"] != "ok" for one in rest):
        return 0
    wanted = _missing([one["cold"]["median_us"] for one in rest], error)
    each_s = min((one.get("seconds", 0.0) for one in rest), default=0.0)
    return int(min(wanted, most_s / max(each_s, _LEAST_RUN_S)))


def missing_sustained(results: Sequence[Record], error: float, power_limit_w: float | None) -> int:
    """Returns how many more sustained runs the median over runs needs for a relative standard error of `error`."""
    if any(one["status"] != "ok" for one in results):
        return 0
    return _missing([one["sustained"]["mean_us"] for one in _at_limit(results, power_limit_w)], error)


def _missing(times_us: Sequence[float], error: float) -> int:
    """Returns how many more times the median needs for a relative standard error of `error`.

    The standard deviation of up to ten is estimated from their range, which for three normal values is 1.69 of them.
    Times that differ by at most 0.2 us, the resolution of CUDA events, need no further ones.
    """
    if len(times_us) < 2 or max(times_us) - min(times_us) <= _LEAST_GAP_US:
        return 0
    if len(times_us) in RANGE_OF_NORMAL:
        deviation = (max(times_us) / min(times_us) - 1) / RANGE_OF_NORMAL[len(times_us)]
    else:
        deviation = stdev(times_us) / median(times_us)
    return max(0, math.ceil((MEDIAN_EFFICIENCY * deviation / error) ** 2) - len(times_us))


def pooled(
    rest: Sequence[Record],
    sustained: Sequence[Record],
    settings: Record,
    power_limit_w: float | None = None,
) -> Record:
    """Returns the record of a case from its results in each process, in order.

    The median of `cold`, the times at rest, is the median of the process medians; the other statistics are those of
    all samples, which stand one process after the other. So it is for `hot`; `sustained` is the median of the
    means, or of the times at the power limit if that acts (see power_limit).

    If the case failed in one process, its status is that failure, and it has no times.

    Args:
        rest: results at rest (see worker/time_case.py); at least one.
        sustained: sustained results; empty if no limit lowers the clock.
        settings: the section `time` of the configuration.
        power_limit_w: the board's power limit; None if unknown.
    """
    everything = [*rest, *sustained]
    status = worst(one["status"] for one in everything)
    seconds = sum(one.get("seconds", 0.0) for one in everything)
    if status != "ok":
        reason = next(one["reason"] for one in everything if one["status"] == status)
        return {"status": status, "reason": reason, "seconds": seconds}
    cold = _summary([one["cold"] for one in rest])
    sustained = _at_limit(sustained, power_limit_w)
    return {
        "status": "ok",
        "reason": "",
        "remarks": _remarks(rest, cold, settings),
        "warmup_launches": rest[0]["warmup_launches"],
        "first_launch_us": rest[0]["first_launch_us"],
        "launch_host_us": median(one["launch_host_us"] for one in rest),
        "cold": cold,
        **({"hot": _hot(rest)} if "hot" in rest[0] else {}),
        **({"sustained": _sustained(sustained)} if sustained else {}),
        **_state(rest),
        "processes": [_process(one, sustained) for one in rest],
        **_further(rest, sustained),
        "seconds": round(seconds, 3),
    }


def _summary(parts: Sequence[Record]) -> Record:
    samples = [us for part in parts for us in part["samples_us"]]
    clocks = [mhz for part in parts for mhz in part["sm_mhz_samples"]]
    known = [part["set_mhz"] for part in parts if part["set_mhz"] is not None]
    return {
        **summarise(samples).as_record(samples),
        "median_us": median(part["median_us"] for part in parts),
        "empty_us": median(part["empty_us"] for part in parts),
        "discarded": sum(part["discarded"] for part in parts),
        "not_blocked": sum(part["not_blocked"] for part in parts),
        "sm_mhz_samples": clocks,
        "sm_mhz": median(clocks) if clocks else None,
        "set_mhz": median(known) if known else None,
    }


def _hot(rest: Sequence[Record]) -> Record:
    parts = [one["hot"] for one in rest if "hot" in one]
    samples = [us for part in parts for us in part["samples_us"]]
    middle = median(part["median_us"] for part in parts)
    launches = sum(part["launches"] for part in parts)
    kept = {key: parts[0][key] for key in ("uncaptured",) if key in parts[0]}
    return {**summarise(samples).as_record(samples), "median_us": middle, "launches": launches, **kept}


def _at_limit(results: Sequence[Record], power_limit_w: float | None) -> list[Record]:
    """Returns the sustained results with the time at the power limit as `mean_us`, if it acts and can be told."""
    runs = [one["sustained"] for one in results]
    acts = any(_POWER_CAP in run["limits"] for run in runs)
    times_us = times_at_limit([run["steps"] for run in runs], power_limit_w) if acts else None
    if times_us is None:
        return list(results)
    return [
        {
            **one,
            "sustained": {**run, "mean_us": us, "measured_us": run["mean_us"], "at_power_w": power_limit_w},
        }
        for one, run, us in zip(results, runs, times_us, strict=True)
    ]


def _sustained(results: Sequence[Record]) -> Record:
    """Returns the sustained time, clock, power, energy per launch and limits, and the trace of the first process."""
    parts = [one["sustained"] for one in results]
    mean_us = median(part["mean_us"] for part in parts)
    power_w = parts[0].get("at_power_w") or _mean([part["power_w"] for part in parts])
    return {
        "mean_us": mean_us,
        "sm_mhz": _mean([part["sm_mhz"] for part in parts]),
        "power_w": power_w,
        "energy_j": None if power_w is None else power_w * mean_us * 1e-6,
        "limits": sorted({limit for part in parts for limit in part["limits"]}),
        "launches": sum(part["launches"] for part in parts),
        "seconds": sum(part["seconds"] for part in parts),
        **{key: parts[0][key] for key in ("at_power_w",) if key in parts[0]},
        **{key: results[0][key] for key in ("samples_us", "trace") if key in results[0]},
    }


def _state(rest: Sequence[Record]) -> Record:
    """Returns the board's state at rest: medians over the processes, and extremes of all readings."""

    def of_all(name: str) -> list[float]:
        return [one[name] for one in rest if one[name] is not None]

    middle = {name: median(of_all(name)) if of_all(name) else None for name in ("sm_mhz", "power_w")}
    highest = ("sm_mhz_max", "power_w_max", "temperature_c")
    return {
        **middle,
        "sm_mhz_min": min(of_all("sm_mhz_min"), default=None),
        **{name: max(of_all(name), default=None) for name in highest},
        "power_kind": rest[0]["power_kind"],
        "throttle_reasons": sorted({reason for one in rest for reason in one["throttle_reasons"]}),
        "state_samples": sum(one["state_samples"] for one in rest),
    }


def _process(rest: Record, sustained: Sequence[Record]) -> Record:
    cold = rest["cold"]
    same = (one for one in sustained if one["process"] == rest["process"])
    later = next(same, None)
    return {
        **{key: rest[key] for key in ("process", "seed", "addresses", "first_launch_us")},
        **{
            key: cold[key] for key in ("median_us", "samples", "discarded", "empty_us", "pause_us", "set_mhz")
        },
        **({"hot_us": rest["hot"]["median_us"]} if "hot" in rest else {}),
        **({"sustained": later["sustained"]} if later else {}),
        "seconds": rest.get("seconds", 0.0) + (later or {}).get("seconds", 0.0),
    }


def _further(rest: Sequence[Record], sustained: Sequence[Record]) -> Record:
    """Returns the sustained runs of processes that measured nothing at rest, under their key in the record."""
    numbers = {one["process"] for one in rest}
    runs = [one["sustained"] for one in sustained if one["process"] not in numbers]
    return {"further_sustained": runs} if runs else {}


def _remarks(rest: Sequence[Record], cold: Record, settings: Record) -> list[Record]:
    found: list[Record] = []
    if cold["samples"] < settings["min_samples"]:
        found.append({"code": "few_samples", "samples": cold["samples"]})
    full_mhz = max((one["cold"]["full_mhz"] or 0.0) for one in rest)
    if any(one["cold"]["held"] for one in rest):
        found.append({"code": "held_clock", "mhz": cold["set_mhz"]})
    elif dropped := cold["discarded"]:
        taken, mhz = dropped + cold["samples"], FULL_CLOCK * full_mhz
        found.append({"code": "discarded", "dropped": dropped, "taken": taken, "below_mhz": mhz})
    if waiting := cold["not_blocked"]:
        everything = waiting == cold["samples"]
        found.append({"code": "host_time"} if everything else {"code": "not_blocked", "samples": waiting})
    if any("uncaptured" in one.get("hot", ()) for one in rest):
        found.append({"code": "no_graph"})
    return found


def _mean(values: Sequence[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
