"""The interface of the timing core: what it is asked to do, and when the clock counts as full."""

import ctypes
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from warplog.measure.worker import timer as timing
from warplog.measure.worker.timer import Timer

# The timing core without a GPU: each call records its name and the arguments that decide how it times.
CORE = """
#include <stdio.h>
#include <string.h>
typedef struct { float event_us, sm_mhz, set_mhz; int blocked; float host_us; } Sample;
static char calls[4096];
static int probes;
static void add(const char* what, int a, int b) { sprintf(calls + strlen(calls), "%s %d %d;", what, a, b); }
const char* warplog_timer_calls(void) { return calls; }
int warplog_timer_create(void** out) { *out = calls; return 0; }
int warplog_timer_probe(void* t, float* mhz) { *mhz = ++probes < 4 ? 1200 : 1905; return 0; }
int warplog_timer_cold(void* t, void* f, void* a, int n, Sample* out, int block, float pause) {
    if (f) add("cold", block, (int)pause);
    for (int i = 0; i < n; ++i) { Sample s = {block ? 2 : 5, 1800, 1980, block, 3}; out[i] = s; }
    return 0;
}
int warplog_timer_prepare(void* t, void* f, void* a, int launches, int capture) {
    add("prepare", launches, capture);
    return launches == 13 && capture ? 700 : launches == 14 ? 2 : 0;
}
int warplog_timer_run(void* t, int n, float pause, float* out, float* mhz) {
    add("run", n, (int)pause);
    for (int i = 0; i < n; ++i) out[i] = 7;
    *mhz = 1500;
    return 0;
}
int warplog_timer_release(void* t) { add("release", 0, 0); return 0; }
const char* warplog_timer_error(int code) { return "illegal address"; }
"""


@pytest.fixture
def core(tmp_path: Path) -> Path:
    (tmp_path / "core.c").write_text(CORE)
    library = tmp_path / "timer.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "core.c"], check=True)
    return library


def calls(core: Path) -> str:
    recorded = ctypes.CDLL(str(core)).warplog_timer_calls
    recorded.restype = ctypes.c_char_p
    return str(recorded().decode())


COMPILED = {"failure": lambda: None, "needs_no_graph": False}
LAUNCHER, ARGUMENTS = SimpleNamespace(function=ctypes.CDLL(None).abs, **COMPILED), ctypes.c_int(0)


@pytest.mark.parametrize(("blocking", "empty_us"), [(True, 2.0), (False, 5.0)])
def test_launchers_that_synchronise_are_neither_blocked_nor_captured(
    core: Path, blocking: bool, empty_us: float
) -> None:
    timer = Timer(core, blocking)
    assert timer.empty_us == empty_us, "the empty interval is measured the same way"
    samples = timer.cold(LAUNCHER, ARGUMENTS, 7, pause_us=400.0)
    assert [(s.event_us, s.sm_mhz, s.set_mhz, s.blocked) for s in samples] == [
        (empty_us, 1800.0, 1980.0, blocking)
    ] * 7
    with timer.batch(LAUNCHER, ARGUMENTS, 3) as batch:
        assert batch.run(2, 90.0) == ([7.0, 7.0], 1500.0)
    expected = f"cold {int(blocking)} 400;prepare 3 {int(blocking)};run 2 90;release 0 0;"
    assert calls(core) == expected


def test_the_timer_waits_until_the_clock_has_recovered_from_earlier_work(core: Path) -> None:
    timer = Timer(core, default_mhz=1905)
    assert timer.full_mhz == 1905
    assert timer.is_full(1890)
    assert not timer.is_full(1880)
    assert timer.is_full(0), "an unknown clock is not called low"


def test_a_clock_that_stays_lower_is_the_full_clock(core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A locked clock: waiting ends after a second, and 1905 MHz is all there is."""
    now = iter(range(100))
    clock = SimpleNamespace(monotonic=lambda: next(now) * 0.1, sleep=lambda seconds: None)
    monkeypatch.setattr(timing, "time", clock)
    timer = Timer(core, default_mhz=1980)
    assert timer.full_mhz == 1905
    assert timer.is_full(1900)
    timer.full_mhz = 1980  # it was higher while the board was cold
    assert not timer.recover(), "the case in which the clock fell says so"
    assert timer.full_mhz == 1905
    assert timer.recover(), "the next cases do not wait for it"


@pytest.mark.parametrize(("launches", "status"), [(13, "crashed"), (14, "out_of_memory")])
def test_a_batch_that_cannot_be_prepared_is_the_launchers_failure(
    core: Path, launches: int, status: str
) -> None:
    batch = Timer(core).batch(LAUNCHER, ARGUMENTS, launches)
    with pytest.raises(timing.LaunchFailed, match="illegal address") as failed, batch:
        pass
    assert failed.value.status == status


def test_launches_from_python_that_cannot_be_captured_are_timed_without_a_graph(core: Path) -> None:
    failed = timing.LaunchFailed("crashed", "RuntimeError: not while capturing")
    launcher = SimpleNamespace(function=LAUNCHER.function, failure=lambda: failed, needs_no_graph=True)
    with Timer(core).batch(launcher, ARGUMENTS, 13) as batch:
        assert batch.uncaptured == "RuntimeError: not while capturing"
        assert batch.run(2) == ([7.0, 7.0], 1500.0)
    assert calls(core) == "prepare 13 1;prepare 13 0;run 2 0;release 0 0;"


def test_a_failed_launch_has_the_launchers_own_reason(core: Path) -> None:
    failed = timing.LaunchFailed("compile_error", "no such instruction")
    launcher = SimpleNamespace(function=LAUNCHER.function, failure=lambda: failed, needs_no_graph=False)
    batch = Timer(core).batch(launcher, ARGUMENTS, 13)
    with pytest.raises(timing.LaunchFailed, match="no such instruction"), batch:
        pass
