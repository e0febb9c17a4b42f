"""How the results of several processes become the record of a case."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs

from warplog.core.statistics import summarise
from warplog.measure.pooling import missing_sustained, pooled
from warplog.measure.results import AtRest, Result, Sustained
from warplog.measure.rounds import missing_runs
from warplog.measure.task import CaseRun
from warplog.records import remarks
from warplog.records.config import TimeSettings
from warplog.records.fields import Status
from warplog.records.time import Board, Cold, Hot, SustainedRun, TimeCase, Trace

BOARD = Board(
    sm_mhz=1980.0,
    sm_mhz_min=1965,
    sm_mhz_max=1980,
    power_w=300.0,
    power_w_max=350.0,
    power_kind="instant",
    temperature_c=40,
    throttle_reasons=(),
    state_samples=5,
)


def run(process: int) -> CaseRun:
    return CaseRun(variant="right", case="64", process=process)


def rest(process: int, samples_us: Sequence[float], **changed: Any) -> Result:
    """The result of one process at rest; `changed` replaces fields of `cold`, or of what it found."""
    cold = Cold(
        **vars(summarise(samples_us)),
        samples_us=tuple(samples_us),
        empty_us=1.0,
        discarded=0,
        not_blocked=0,
        sm_mhz_samples=(1700.0,) * len(samples_us),
        sm_mhz=1700.0,
        set_mhz=1980.0,
    )
    own = {key: changed.pop(key) for key in list(changed) if key in Cold.__struct_fields__}
    found = AtRest(
        warmup_launches=3,
        first_launch_us=50.0,
        launch_host_us=2.0,
        cold=structs.replace(cold, **own),
        pause_us=0.0,
        held=False,
        full_mhz=1980.0,
        hot=None,
        no_hot="not_captured",
        limited=False,
        board=BOARD,
        seed=7,
        addresses=(1 << 40, process << 20),
    )
    return Result(run=run(process), seconds=0.25, found=structs.replace(found, **changed))


def hot(*samples_us: float, uncaptured: str = "") -> dict[str, Any]:
    """The fields of a hot time."""
    summary = {**vars(summarise(samples_us)), "samples_us": samples_us}
    return {"hot": Hot(**summary, launches=100 * len(samples_us), uncaptured=uncaptured), "no_hot": ""}


def sustained(process: int, mean_us: float, power_w: float | None = 700.0, **more: Any) -> Result:
    mean = SustainedRun(
        mean_us=mean_us,
        sm_mhz=1500.0 + process,
        power_w=power_w,
        launches=1000,
        seconds=0.5,
        limits=more.pop("limits", ("sw_power_cap",)),
        steps=more.pop("steps", ()),
    )
    return Result(run=run(process), seconds=1.5, found=Sustained(run=mean, **more))


def of(*medians_us: float) -> list[Result]:
    """Results of processes with these medians."""
    return [rest(i + 1, [us] * 10) for i, us in enumerate(medians_us)]


def failed(process: int, status: Status, reason: str) -> Result:
    return Result(run=run(process), status=status, reason=reason, seconds=0.125)


def entry(results: Sequence[Result], later: Sequence[Result] = (), limit_w: float | None = None) -> TimeCase:
    return pooled(results, later, "" if later else "not_limited", TimeSettings(), limit_w)


def test_the_median_is_that_of_the_process_medians_and_not_of_all_samples() -> None:
    """The third process took most samples, and its median is the largest; the first one had another board state."""
    first = rest(1, [100.0] * 10, empty_us=5.0, set_mhz=1200.0)
    found = entry([first, rest(2, [101.0] * 10), rest(3, [110.0] * 60)]).cold
    assert found.median_us == 101.0
    assert (found.samples, found.q1_us, found.q3_us) == (80, 107.75, 110.0)
    assert (found.min_us, found.max_us) == (100.0, 110.0)
    assert found.samples_us == (100.0,) * 10 + (101.0,) * 10 + (110.0,) * 60, "one process after the other"
    assert len(found.sm_mhz_samples) == 80
    assert (found.empty_us, found.set_mhz) == (1.0, 1980.0)


def test_the_error_is_that_of_the_process_that_checked_the_results() -> None:
    first, *later = of(100.0, 101.0)
    checked = structs.replace(first, found=structs.replace(first.found, max_error_over_scale=0.25))
    assert entry([checked, *later]).max_error_over_scale == 0.25


def test_each_process_is_kept_with_its_median_and_the_number_of_its_samples() -> None:
    found = entry(
        [rest(1, [100.0] * 10, pause_us=4000.0, **hot(90.0)), rest(2, [102.0] * 12, **hot(92.0))],
        [sustained(1, 120.0), sustained(2, 122.0)],
    ).processes
    told = [(p.process, p.median_us, p.samples, p.pause_us, p.hot_us) for p in found]
    assert told == [(1, 100.0, 10, 4000.0, 90.0), (2, 102.0, 12, 0.0, 92.0)]
    assert [p.sustained.mean_us for p in found] == [120.0, 122.0]
    assert [p.addresses[1] for p in found] == [1 << 20, 2 << 20]
    assert [p.seconds for p in found] == [1.75, 1.75], "at rest and sustained"


def test_the_hot_time_is_the_median_of_the_processes() -> None:
    """The second process took most batches, which are the longest."""
    batches = ((80.0,), (90.0,) * 5, (81.0,))
    found = entry([rest(i, [100.0] * 10, **hot(*us)) for i, us in enumerate(batches, 1)]).hot
    assert (found.median_us, found.samples, found.launches) == (81.0, 7, 700)
    without = entry(of(100, 100))
    assert (without.hot, without.no_hot) == (None, "not_captured")


def test_sustained_times_have_a_median_and_energy_per_launch() -> None:
    """700 W for 125 us are 87.5 mJ."""
    columns = dict.fromkeys(("sm_mhz", "power_w", "temperature_c", "energy_j"), (None,))
    trace = Trace(time_s=(0.1,), **columns, throttle_reasons=("",))
    runs = [
        sustained(1, 120.0, 690.0, samples_us=(120.0,), trace=trace),
        sustained(2, 139.0, 710.0),
        sustained(3, 125.0, 700.0, limits=()),
    ]
    found = entry(of(100, 100, 100), runs).sustained
    assert (found.mean_us, found.power_w, found.sm_mhz) == (125.0, 700.0, 1502.0)
    assert found.energy_j == pytest.approx(0.0875)
    assert (found.launches, found.seconds, found.limits) == (3000, 1.5, ("sw_power_cap",))
    assert (found.samples_us, found.trace) == ((120.0,), trace), "of the first process"
    silent = entry(of(100, 100), [sustained(1, 120.0, None), sustained(2, 120.0, None)]).sustained
    assert (silent.power_w, silent.energy_j) == (None, None)


def test_a_sustained_time_is_that_at_the_power_limit_if_it_acts() -> None:
    """The second process saw the board above its limit of 700 W, and the clock was higher: times go with P^-0.5."""
    low, high = (656.0, 665.0, 675.0, 690.0), (700.0, 715.0, 730.0, 740.0)
    steps = [tuple((watts, 119.0 * (700 / watts) ** 0.5) for watts in powers) for powers in (low, high)]
    runs = [sustained(i + 1, 120.0 - i, 650.0, steps=own) for i, own in enumerate(steps)]
    found = entry(of(100, 100), runs, limit_w=700.0)
    assert found.sustained.mean_us == pytest.approx(119.0)
    assert (found.sustained.power_w, found.sustained.at_power_w) == (700.0, 700.0)
    assert found.sustained.energy_j == pytest.approx(700.0 * 119e-6)
    each = [one.sustained for one in found.processes]
    assert [one.mean_us for one in each] == pytest.approx([119.0, 119.0])
    assert [one.measured_us for one in each] == [120.0, 119.0]
    other = [sustained(i + 1, 120.0 - i, steps=own, limits=("hw_slowdown",)) for i, own in enumerate(steps)]
    assert entry(of(100, 100), other, limit_w=700.0).sustained.mean_us == 119.5
    assert entry(of(100, 100), runs).sustained.mean_us == 119.5, "the limit is unknown"


def test_the_boards_state_covers_all_processes() -> None:
    warm = structs.replace(
        BOARD,
        sm_mhz=1950.0,
        sm_mhz_min=1800,
        power_w=310.0,
        power_w_max=690.0,
        temperature_c=60,
        throttle_reasons=("sw_power_cap",),
    )
    found = entry([rest(1, [100.0] * 10), rest(2, [100.0] * 10, board=warm)]).board
    assert (found.sm_mhz, found.sm_mhz_min, found.sm_mhz_max) == (1965.0, 1800, 1980)
    assert (found.power_w, found.power_w_max, found.temperature_c) == (305.0, 690.0, 60)
    assert (found.throttle_reasons, found.state_samples) == (("sw_power_cap",), 10)
    unknown = structs.replace(BOARD, power_w=None, power_w_max=None, temperature_c=None)
    assert entry([rest(1, [100.0] * 10, board=unknown)]).board.power_w is None


def test_a_failure_in_one_process_fails_the_case() -> None:
    runs = [*of(100.0), failed(2, "crashed", "signal SIGSEGV"), failed(3, "skipped", "not run")]
    assert entry(runs) == TimeCase(case="64", status="crashed", reason="signal SIGSEGV", seconds=0.5)
    later = entry(of(100.0, 100.0), [sustained(1, 120.0), failed(2, "timeout", "no answer")])
    assert (later.status, later.reason, later.cold) == ("timeout", "no answer", None)


def test_remarks_say_how_the_times_were_taken() -> None:
    def told(*runs: Result) -> list[remarks.TimeRemark]:
        return list(entry(runs).remarks)

    below_mhz = 0.99 * 1980.0
    assert told(*of(100.0, 100.0)) == []
    warm, some = rest(1, [100.0] * 50, discarded=5, full_mhz=1950.0), rest(2, [100.0] * 50, discarded=12)
    dropped = remarks.Discarded(dropped=17, taken=117, below_mhz=below_mhz)
    assert told(warm, some) == [dropped]
    assert told(*(rest(i, [100.0] * 2) for i in (1, 2, 3))) == [remarks.FewSamples(samples=6)]
    held = rest(1, [100.0] * 50, held=True, set_mhz=1200.0)
    assert told(held) == [remarks.HeldClock(mhz=1200.0)]
    waiting = [rest(i, [100.0] * 10, not_blocked=10) for i in (1, 2)]
    assert told(*waiting) == [remarks.HostTime()]
    assert told(waiting[0], rest(2, [100.0] * 10)) == [remarks.NotBlocked(samples=10)]
    both = rest(1, [1e6] * 2, discarded=1)
    one = remarks.Discarded(dropped=1, taken=3, below_mhz=below_mhz)
    assert told(both) == [remarks.FewSamples(samples=2), one]


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
        sustained(number, 300.0 * factor, steps=((700.0 / factor**2, 300.0 * factor),) * 4)
        for number, factor in ((1, 1.0), (2, 1.02), (3, 0.98))
    ]
    assert missing_sustained(swinging, 0.004, 700.0) == 0
    assert missing_sustained(swinging, 0.004, None) > 0
    assert missing_sustained([failed(4, "crashed", ""), *runs], 0.004, None) == 0


def test_sustained_runs_of_further_processes_count_and_are_kept_apart() -> None:
    """Process 5 measured nothing at rest."""
    runs = [sustained(number, us) for number, us in ((1, 10.0), (2, 12.0), (5, 14.0))]
    found = entry(of(8.0, 8.1), runs)
    assert found.sustained.mean_us == 12.0
    assert [run.mean_us for run in found.further_sustained] == [14.0]
    assert [run.mean_us for run in found.sustained_runs] == [10.0, 12.0, 14.0]
    assert [one.process for one in found.processes] == [1, 2]
    assert entry(of(8.0, 8.1), runs[:2]).further_sustained == ()


def test_further_runs_take_a_bounded_time() -> None:
    """The first run of a process takes longer than the others, since it also checks the results."""
    runs = [
        structs.replace(one, seconds=seconds)
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
    assert entry(results).launch_host_us == 11.0


def test_hot_times_without_a_graph_say_so_and_why() -> None:
    why = "RuntimeError: not while capturing"
    found = entry([rest(1, [5.0] * 20, **hot(4.0, uncaptured=why))])
    assert found.hot.uncaptured == why
    assert found.remarks == (remarks.NoGraph(),)
