"""Readings of a GPU's state during measurements, with a fake driver library instead of a GPU."""

import threading
import time
from functools import partial
from types import SimpleNamespace

import pytest

import fake_driver
from fake_driver import H200, Queue
from warplog.machine import clocks
from warplog.machine.clocks import Means, Sampler, clock_state
from warplog.machine.nvml import kept_loaded, opened


class Reasons(Queue):
    """Returns the answers one by one; repeats the last one and sets the event when it is reached."""

    def __init__(self, looked, answers):
        super().__init__(answers)
        self.looked = looked

    def pop(self, _index=0):
        if len(self) == 1:
            self.looked.set()
            return self[0]
        return super().pop(0)


@pytest.fixture
def install(monkeypatch):
    """Replaces the driver by a fake one with the given boards."""
    return partial(fake_driver.install, monkeypatch)


@pytest.mark.parametrize(
    ("field", "power_w", "kind"),
    [
        (SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=654_321)), 654.321, "instant"),
        (SimpleNamespace(nvmlReturn=3, value=SimpleNamespace(uiVal=77)), 400.0, "average"),
        (None, 400.0, "average"),
    ],
)
def test_power_is_the_instantaneous_one_where_the_gpu_has_it(install, field, power_w, kind):
    install(H200 | ({"GetFieldValues": [field]} if field else {}))
    state = clock_state()
    assert (state.power_w, state.power_kind) == (pytest.approx(power_w), kind)


def test_throttle_reasons_have_names_and_idle_is_none_of_them(install):
    install(H200 | {"GetCurrentClocksEventReasons": 0x1 | 0x4 | 0x40 | 0x8000})
    state = clock_state()
    assert state.throttle_reasons == ("sw_power_cap", "hw_thermal_slowdown")
    assert state.idle
    older = {k: v for k, v in H200.items() if k != "GetCurrentClocksEventReasons"}
    install(older | {"GetCurrentClocksThrottleReasons": 0x2})
    assert clock_state().throttle_reasons == ("applications_clocks_setting",)


def test_the_sampler_reports_the_busy_time_and_every_brake(install):
    looked = threading.Event()
    frequencies = Queue([345, 1980, 1755, 1500] + [1755] * 100_000)
    driver = install(
        H200
        | {
            ("GetClockInfo", "sm"): frequencies,
            "GetCurrentClocksEventReasons": Reasons(looked, [1, 0, 0x20, 0x4, 0]),
        }
    )
    with Sampler(interval_s=0.0) as sampler:
        assert looked.wait(30)
    result = sampler.result()
    assert result.sm_mhz == 1755
    assert (result.sm_mhz_min, result.sm_mhz_max) == (1500, 1980)
    assert result.throttle_reasons == ("sw_power_cap", "sw_thermal_slowdown")
    assert (result.power_w, result.power_kind, result.temperature_c) == (400.0, "average", 41)
    assert result.state_samples >= 5
    assert driver.users == 0


@pytest.mark.parametrize(
    ("reasons", "limits"),
    [
        (0x1 | 0x2 | 0x100, ()),
        (0x4, ("sw_power_cap",)),
        (0x21, ("sw_thermal_slowdown",)),
        (0x8 | 0x80, ("hw_slowdown", "hw_power_brake_slowdown")),
    ],
)
def test_only_power_and_heat_are_limits(install, reasons, limits):
    install(H200 | {"GetCurrentClocksEventReasons": reasons})
    assert clock_state().limits == limits


class Readings:
    """Stands in for the module `time`: a reading every 0.02 s, in which the energy counter has the next value."""

    def __init__(self, install, energies_j, **board):
        self.done = threading.Event()
        self.reading, self.energies_mj = -1, [int(1e3 * e) for e in energies_j]
        answers = {"GetTotalEnergyConsumption": EnergyCounter(self)} if energies_j else {}
        install(H200 | answers | board)

    def monotonic(self):
        self.reading += 1
        return 0.02 * self.reading


class EnergyCounter(Queue):
    """The answer to the last query of each reading."""

    def __init__(self, readings):
        super().__init__()
        self.readings = readings

    def pop(self, _index=0):
        given = self.readings.energies_mj
        if self.readings.reading >= len(given) - 1:
            self.readings.done.set()
        return given[min(self.readings.reading, len(given) - 1)]


def sampled(monkeypatch, install, energies_j, **board):
    """Returns a sampler that took a reading for each energy, 0.02 s apart."""
    readings = Readings(install, energies_j, **board)
    monkeypatch.setattr(clocks, "time", readings)
    with Sampler(interval_s=0.0) as sampler:
        assert readings.done.wait(30)
    return sampler


def test_mean_power_is_the_slope_between_steps_of_the_energy_counter(monkeypatch, install):
    """The counter has a step of 60 J every 0.1 s; readings before the first step and after the last do not count."""
    energies_j = [1000 + 60 * ((i + 3) // 5) for i in range(40)]
    sampler = sampled(monkeypatch, install, energies_j)
    assert sampler.mean_power(0.0, 0.77) == pytest.approx(600)
    assert sampler.mean_power(0.15, 0.61) == pytest.approx(600), (
        "an interval between two steps gives the same"
    )
    assert sampler.between(0.0, 0.77).power_w == pytest.approx(600)


def test_steps_of_the_energy_counter_have_the_period_of_all_readings(monkeypatch, install):
    """60 J every 0.1 s, then 70 J: readings are 0.02 s apart, so that an update is seen up to that much late."""
    energies_j = [1000 + 60 * min(i // 5, 5) + 70 * max(i // 5 - 5, 0) for i in range(45)]
    sampler = sampled(monkeypatch, install, energies_j)
    steps = sampler.energy_steps(0.09, 0.81)
    assert [round(power_w) for _, _, power_w in steps] == [600, 600, 600, 600, 700, 700, 700]
    assert all(end - begin == pytest.approx(0.1) for begin, end, _ in steps)
    assert sampler.energy_steps(0.35, 0.81) == steps[3:]
    assert sampler.energy_steps(0.09, 0.25) == [], "two updates are too few"


def test_mean_power_is_unknown_until_the_counter_has_had_three_steps(monkeypatch, install):
    sampler = sampled(monkeypatch, install, [1000 + 60 * (i // 5) for i in range(40)])
    assert sampler.mean_power(0.0, 0.28) is None
    assert sampler.mean_power(0.0, 0.33) == pytest.approx(600)


def test_without_an_energy_counter_mean_power_is_that_of_the_readings(monkeypatch, install):
    looked = threading.Event()
    powers = Queue([400_000, 500_000, 600_000] + [600_000] * 1000)
    frequencies = {("GetClockInfo", "sm"): Queue([1500, 1600, 1850] + [1980] * 1000)}
    reasons = {"GetCurrentClocksEventReasons": Reasons(looked, [0, 0, 4, 0x20, 0])}
    install(H200 | {"GetPowerUsage": powers} | frequencies | reasons)
    begin = time.monotonic()
    with Sampler(interval_s=0.0) as sampler:
        assert looked.wait(30)
    times = sampler.trace(begin, time.monotonic()).time_s
    last = begin + (times[2] + times[3]) / 2
    assert sampler.mean_power(begin, last) == pytest.approx(500)
    assert sampler.between(begin, last) == Means(1650, 500, ("sw_power_cap",))
    assert sampler.mean_power(begin - 2, begin - 1) is None
    assert sampler.between(begin - 2, begin - 1) == Means(None, None, ())


def test_without_a_gpu_nothing_is_known(install):
    install()
    with Sampler() as sampler:
        pass
    assert sampler.mean_power(0.0, 1e9) is None
    assert sampler.between(0.0, 1e9) == Means(None, None, ())


def test_a_trace_holds_the_looks_between_two_moments(install):
    looked = threading.Event()
    energies = Queue([1_000_000 + 2000 * i for i in range(100_000)])
    install(
        H200
        | {
            "GetTotalEnergyConsumption": energies,
            "GetCurrentClocksEventReasons": Reasons(looked, [4] * 30 + [0x24]),
        }
    )
    begin = time.monotonic()
    with Sampler(interval_s=0.0) as sampler:
        assert looked.wait(30)
    trace = sampler.trace(begin, time.monotonic())
    assert trace.time_s[0] >= 0
    assert list(trace.time_s) == sorted(trace.time_s)
    assert trace.energy_j[:3] == (1000.0, 1002.0, 1004.0)
    assert (trace.sm_mhz[0], trace.power_w[0], trace.temperature_c[0]) == (1755, 400.0, 41)
    assert trace.throttle_reasons[0] == "sw_power_cap"
    assert trace.throttle_reasons[-1] == "sw_power_cap,sw_thermal_slowdown"
    middle = begin + (trace.time_s[5] + trace.time_s[6]) / 2
    assert len(sampler.trace(begin, middle).time_s) == 6
    assert sampler.trace(begin - 2, begin - 1).time_s == ()


def test_a_summary_covers_the_readings_since_its_begin_and_takes_one_if_there_are_none(install):
    temperatures = Queue([41, 55, 60, 60])
    install(H200 | {"GetTemperature": temperatures})
    with Sampler(interval_s=3600.0) as sampler:
        assert sampler.result().temperature_c == 41
        begin = time.monotonic()
        assert sampler.result(begin).temperature_c == 55
        assert sampler.result(begin).state_samples == 1
        assert sampler.result().state_samples == 2


def test_the_energy_is_read_only_if_it_is_used(install):
    install(H200 | {"GetTotalEnergyConsumption": 5_000})
    for with_energy, expected in ((True, 5.0), (False, None)):
        begin = time.monotonic()
        with Sampler(interval_s=3600.0, with_energy=with_energy) as sampler:
            pass
        assert sampler.trace(begin, time.monotonic()).energy_j == (expected,)


def test_a_gpu_without_an_energy_counter_has_none(install):
    install(H200)
    assert clock_state().energy_j is None


def test_a_mig_instance_is_not_charged_for_its_neighbours(install):
    board = H200 | {"GetMigMode": [1, 1], "GetMaxMigDeviceCount": 7, "GetTotalEnergyConsumption": 5_000}
    install(board, mig={"MIG-1": (dict(H200), board)})
    state = clock_state()
    assert (state.power_w, state.power_kind, state.energy_j) == (None, "", None)
    assert (state.sm_mhz, state.temperature_c) == (1755, 41)


def test_a_kept_library_is_not_loaded_again_for_each_card_and_is_let_go_at_the_end(install):
    driver = install(H200)
    with kept_loaded():
        with opened():
            assert driver.users == 2
        assert driver.users == 1
    assert driver.users == 0


def test_without_a_gpu_there_is_nothing_to_keep(install):
    install()
    with kept_loaded():
        pass
