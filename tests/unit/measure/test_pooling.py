"""How the results of several processes become the record of a case."""

from typing import Any

import pytest
from msgspec import structs

from warplog.core import remarks
from warplog.core.records import sustained_runs
from warplog.core.statistics import summarise
from warplog.measure.pooling import missing_runs, missing_sustained, pooled
from warplog.records.config import Config

SETTINGS = structs.asdict(Config().time)
STATE = {
    "sm_mhz": 1980.0, "sm_mhz_min": 1965, "sm_mhz_max": 1980, "power_w": 300.0, "power_w_max": 350.0,
    "power_kind": "instant", "temperature_c": 40, "throttle_reasons": [], "state_samples": 5,
}  # fmt: skip


def rest(process: int, samples_us: list[float], **changed: Any) -> dict[str, Any]:
    """The result of one process at rest; `changed` replaces keys of `cold`, or of the result."""
    cold = {
        **summarise(samples_us).as_record(samples_us),
        **{"empty_us": 1.0, "pause_us": 0.0, "discarded": 0, "held": False, "not_blocked": 0},
        **{
            "sm_mhz_samples": [1700.0] * len(samples_us),
            "sm_mhz": 1700.0,
            "set_mhz": 1980.0,
            "full_mhz": 1980.0,
        },
    }
    own = {key: changed.pop(key) for key in list(changed) if key in cold}
    return {
        "case": f"{process}/right:64", "status": "ok", "reason": "", "process": process, "seed": 7,
        "addresses": [1 << 40, process << 20], "warmup_launches": 3, "first_launch_us": 50.0, "launch_host_us": 2.0,
        "seconds": 0.25,
        **STATE, "cold": {**cold, **own}, **changed,
    }  # fmt: skip


def hot(*samples_us: float) -> dict[str, Any]:
    return {"hot": {**summarise(samples_us).as_record(samples_us), "launches": 100 * len(samples_us)}}


def sustained(process: int, mean_us: float, power_w: float | None = 700.0, **more: Any) -> dict[str, Any]:
    run = {
        "mean_us": mean_us,
        "sm_mhz": 1500.0 + process,
        "power_w": power_w,
        "launches": 1000,
        "seconds": 0.5,
    }
    limits = more.pop("limits", ["sw_power_cap"])
    found = {"case": "", "status": "ok", "reason": "", "process": process, "seconds": 1.5}
    return {**found, "sustained": {**run, "limits": limits, "steps": more.pop("steps", [])}, **more}


def of(*medians_us: float) -> list[dict[str, Any]]:
    """Results of processes with these medians."""
    return [rest(i + 1, [us] * 10) for i, us in enumerate(medians_us)]


def failed(process: int, status: str, reason: str) -> dict[str, Any]:
    return {"case": f"{process}/right:64", "status": status, "reason": reason, "seconds": 0.125}


def test_the_median_is_that_of_the_process_medians_and_not_of_all_samples() -> None:
    """The third process took most samples, and its median is the largest."""
    found = pooled([rest(1, [100.0] * 10), rest(2, [101.0] * 10), rest(3, [110.0] * 60)], [], SETTINGS)[
        "cold"
    ]
    assert found["median_us"] == 101.0
    assert (found["samples"], found["q1_us"], found["q3_us"]) == (80, 107.75, 110.0)
    assert (found["min_us"], found["max_us"]) == (100.0, 110.0)
    assert found["samples_us"] == [100.0] * 10 + [101.0] * 10 + [110.0] * 60, "one process after the other"
    assert len(found["sm_mhz_samples"]) == 80


def test_each_process_is_kept_with_its_median_and_the_number_of_its_samples() -> None:
    found = pooled(
        [rest(1, [100.0] * 10, pause_us=4000.0) | hot(90.0), rest(2, [102.0] * 12) | hot(92.0)],
        [sustained(1, 120.0), sustained(2, 122.0)],
        SETTINGS,
    )["processes"]
    told = [(p["process"], p["median_us"], p["samples"], p["pause_us"], p["hot_us"]) for p in found]
    assert told == [(1, 100.0, 10, 4000.0, 90.0), (2, 102.0, 12, 0.0, 92.0)]
    assert [p["sustained"]["mean_us"] for p in found] == [120.0, 122.0]
    assert [p["addresses"][1] for p in found] == [1 << 20, 2 << 20]
    assert [p["seconds"] for p in found] == [1.75, 1.75], "at rest and sustained"


def test_the_hot_time_is_the_median_of_the_processes() -> None:
    runs = [one | hot(us) for one, us in zip(of(100, 100, 100), (80.0, 90.0, 81.0), strict=True)]
    found = pooled(runs, [], SETTINGS)["hot"]
    assert (found["median_us"], found["samples"], found["launches"]) == (81.0, 3, 300)
    assert "hot" not in pooled(of(100, 100), [], SETTINGS)


def test_sustained_times_have_a_median_and_energy_per_launch() -> None:
    """700 W for 125 us are 87.5 mJ."""
    trace = {"samples_us": [120.0], "trace": {"time_s": [0.1]}}
    runs = [
        sustained(1, 120.0, 690.0, **trace),
        sustained(2, 130.0, 710.0),
        sustained(3, 125.0, 700.0, limits=[]),
    ]
    found = pooled(of(100, 100, 100), runs, SETTINGS)["sustained"]
    assert (found["mean_us"], found["power_w"], found["sm_mhz"]) == (125.0, 700.0, 1502.0)
    assert found["energy_j"] == pytest.approx(0.0875)
    assert (found["launches"], found["seconds"], found["limits"]) == (3000, 1.5, ["sw_power_cap"])
    assert (found["samples_us"], found["trace"]) == ([120.0], {"time_s": [0.1]}), "of the first process"
    silent = pooled(of(100, 100), [sustained(1, 120.0, None), sustained(2, 120.0, None)], SETTINGS)[
        "sustained"
    ]
    assert (silent["power_w"], silent["energy_j"]) == (None, None)


def test_a_sustained_time_is_that_at_the_power_limit_if_it_acts() -> None:
    """The second process saw the board above its limit of 700 W, and the clock was higher: times go with P^-0.5."""
    low, high = (656.0, 665.0, 675.0, 690.0), (700.0, 715.0, 730.0, 740.0)
    runs = [
        sustained(i + 1, 120.0 - i, steps=[(watts, 119.0 * (700 / watts) ** 0.5) for watts in powers])
        for i, powers in enumerate((low, high))
    ]
    found = pooled(of(100, 100), runs, SETTINGS, power_limit_w=700.0)
    assert found["sustained"]["mean_us"] == pytest.approx(119.0)
    assert (found["sustained"]["power_w"], found["sustained"]["at_power_w"]) == (700.0, 700.0)
    assert found["sustained"]["energy_j"] == pytest.approx(700.0 * 119e-6)
    each = [one["sustained"] for one in found["processes"]]
    assert [one["mean_us"] for one in each] == pytest.approx([119.0, 119.0])
    assert [one["measured_us"] for one in each] == [120.0, 119.0]
    other_limit = [{**one, "sustained": {**one["sustained"], "limits": ["hw_slowdown"]}} for one in runs]
    assert pooled(of(100, 100), other_limit, SETTINGS, 700.0)["sustained"]["mean_us"] == 119.5
    assert pooled(of(100, 100), runs, SETTINGS)["sustained"]["mean_us"] == 119.5, "the limit is unknown"


def test_the_boards_state_covers_all_processes() -> None:
    warm = {
        "sm_mhz": 1950.0,
        "sm_mhz_min": 1800,
        "power_w": 310.0,
        "power_w_max": 690.0,
        "temperature_c": 60,
        "throttle_reasons": ["sw_power_cap"],
    }
    found = pooled(
        [rest(1, [100.0] * 10), rest(2, [100.0] * 10) | warm],
        [],
        SETTINGS,
    )
    assert (found["sm_mhz"], found["sm_mhz_min"], found["sm_mhz_max"]) == (1965.0, 1800, 1980)
    assert (found["power_w"], found["power_w_max"], found["temperature_c"]) == (305.0, 690.0, 60)
    assert (found["throttle_reasons"], found["state_samples"]) == (["sw_power_cap"], 10)
    unknown = dict.fromkeys(("power_w", "power_w_max", "temperature_c"))
    assert pooled([rest(1, [100.0] * 10) | unknown], [], SETTINGS)["power_w"] is None


def test_a_failure_in_one_process_fails_the_case() -> None:
    runs = [*of(100.0), failed(2, "crashed", "signal SIGSEGV"), failed(3, "skipped", "not run")]
    found = pooled(runs, [], SETTINGS)
    assert found == {"status": "crashed", "reason": "signal SIGSEGV", "seconds": 0.5}
    later = pooled(of(100.0, 100.0), [sustained(1, 120.0), failed(2, "timeout", "no answer")], SETTINGS)
    assert (later["status"], later["reason"]) == ("timeout", "no answer")
    assert "cold" not in later


def told(*runs: dict[str, Any]) -> list[str]:
    return [remarks.words(one) for one in pooled(runs, [], SETTINGS)["remarks"]]


def test_remarks_say_how_the_times_were_taken() -> None:
    assert told(*of(100.0, 100.0)) == []
    some = rest(2, [100.0] * 50, discarded=12)
    assert told(rest(1, [100.0] * 50), some) == ["12 of 112 launches discarded: set SM clock below 1960 MHz"]
    assert told(*(rest(i, [100.0] * 2) for i in (1, 2, 3))) == ["only 6 samples"]
    held = rest(1, [100.0] * 50, held=True, set_mhz=1200.0)
    assert told(held) == ["clock held at 1200 MHz in spite of pauses"]
    waiting = [rest(i, [100.0] * 10, not_blocked=10) for i in (1, 2)]
    assert told(*waiting) == ["with the host's part of each launch"]
    assert told(waiting[0], rest(2, [100.0] * 10)) == ["10 samples not blocked: the launcher synchronises"]
    both = rest(1, [1e6] * 2, discarded=1)
    assert told(both) == ["only 2 samples", "1 of 3 launches discarded: set SM clock below 1960 MHz"]


def test_runs_are_added_until_the_median_is_precise_enough() -> None:
    """A range of 5.3 % of three normal values is a standard deviation of 3.2 %; (1.2533 x 3.2 / 0.4)^2 is 97."""
    assert missing_runs(of(356.0, 375.0, 357.0), 0.004) == pytest.approx(97 - 3, abs=2)
    assert missing_runs(of(356.0, 360.0, 357.0), 0.004) == 2
    assert missing_runs(of(356.0, 357.0, 356.5), 0.004) == 0, "three are enough"


def test_sustained_runs_are_added_until_their_median_is_precise_enough() -> None:
    """What the controller of the power limit does to the mean is not counted: times are compared at the limit."""
    runs = [sustained(number, us) for number, us in ((1, 300.0), (2, 309.0), (3, 302.0))]
    assert missing_sustained(runs, 0.004, None) == pytest.approx(31 - 3, abs=1)
    assert missing_sustained([sustained(number, 300.0) for number in (1, 2, 3)], 0.004, None) == 0
    assert missing_sustained([], 0.004, None) == 0
    # The same line through power and time: 1 % less power at half a percent more time.
    swinging = [
        sustained(number, 300.0 * factor, steps=[[700.0 / factor**2, 300.0 * factor]] * 4)
        for number, factor in ((1, 1.0), (2, 1.02), (3, 0.98))
    ]
    assert missing_sustained(swinging, 0.004, 700.0) == 0
    assert missing_sustained(swinging, 0.004, None) > 0
    failed = {**runs[0], "status": "crashed"}
    assert missing_sustained([failed, *runs], 0.004, None) == 0


def test_sustained_runs_of_further_processes_count_and_are_kept_apart() -> None:
    """Process 5 measured nothing at rest."""
    runs = [sustained(number, us) for number, us in ((1, 10.0), (2, 12.0), (5, 14.0))]
    found = pooled(of(8.0, 8.1), runs, SETTINGS)
    assert found["sustained"]["mean_us"] == 12.0
    assert [run["mean_us"] for run in found["further_sustained"]] == [14.0]
    assert [run["mean_us"] for run in sustained_runs(found)] == [10.0, 12.0, 14.0]
    assert [one["process"] for one in found["processes"]] == [1, 2]
    assert "further_sustained" not in pooled(of(8.0, 8.1), runs[:2], SETTINGS)


def test_further_runs_take_a_bounded_time() -> None:
    """The first run of a process takes longer than the others, since it also checks the results."""
    runs = [
        {**one, "seconds": seconds}
        for one, seconds in zip(of(356.0, 375.0, 357.0), (0.9, 0.1, 0.2), strict=True)
    ]
    assert missing_runs(runs, 0.004, most_s=0.35) == 3
    assert missing_runs(runs, 0.004, most_s=0.05) == 0
    assert missing_runs(runs, 0.004, most_s=60.0) == missing_runs(runs, 0.004)


def test_no_runs_are_added_where_they_tell_nothing() -> None:
    assert missing_runs(of(356.0), 0.004) == 0
    assert missing_runs(of(2.0, 2.15), 0.004) == 0, "0.2 us are below the resolution of CUDA events"
    assert missing_runs([*of(356.0, 375.0), failed(3, "crashed", "")], 0.004) == 0, "the case has no time"


def test_the_host_time_of_a_launch_is_the_median_over_the_processes() -> None:
    results = [rest(process, [5.0], launch_host_us=us) for process, us in ((1, 30.0), (2, 9.0), (3, 11.0))]
    assert pooled(results, [], SETTINGS)["launch_host_us"] == 11.0


def test_hot_times_without_a_graph_say_so_and_why() -> None:
    why = "RuntimeError: not while capturing"
    found = pooled([rest(1, [5.0] * 20, hot={**hot(4.0)["hot"], "uncaptured": why})], [], SETTINGS)
    assert found["hot"]["uncaptured"] == why
    assert found["remarks"] == [{"code": "no_graph"}]
