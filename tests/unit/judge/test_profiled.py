"""Reports of profilers are compared kernel by kernel."""

from types import SimpleNamespace

import pytest

from report_files import Launch, Nsys, write_ncu
from warplog.core.errors import WarplogError
from warplog.judge import comparison, profiled
from warplog.judge.campaigns import Sources


def traced(path, durations):
    nsys = Nsys(path)
    for i, duration in enumerate(durations):
        nsys.kernel("k", called=10 * i, start=10_000 * i, duration=duration)
    nsys.kernel("other", called=5000, start=9_000_000, duration=77)
    return str(nsys.write())


def counted(path, cycles, instructions):
    counters = {"gpu__time_duration.sum": cycles, "gpc__cycles_elapsed.max": cycles, "launch__grid_size": 8.0}
    counters |= {"launch__block_size": 64.0, "smsp__inst_executed.sum": instructions}
    return str(write_ncu(path, [Launch("gemm", counters)]))


def test_the_launches_of_two_traces_are_the_samples_of_each_kernel(tmp_path):
    a = traced(tmp_path / "a.sqlite", [1000 + i % 7 for i in range(60)])
    b = traced(tmp_path / "b.sqlite", [1500 + i % 7 for i in range(60)])
    compared = comparison.run((a, b), Sources(tmp_path, read_report=profiled.load))
    assert (compared.a, compared.b, compared.gpu) == (a, b, "NVIDIA H200")
    kernel, other = compared.rows
    assert (kernel.family, kernel.variant, kernel.case, kernel.word) == (
        "nsys",
        "k(float*)",
        "8 blocks of 128",
        "SLOWER",
    )
    assert kernel.verdict.ratio == pytest.approx(1.5, rel=0.01)
    assert other.word in ("SAME", "AMBIGUOUS")


def test_single_launches_of_ncu_have_an_assumed_spread_and_are_compared_by_counters(tmp_path):
    a, b = counted(tmp_path / "a.ncu-rep", 2000.0, 100.0), counted(tmp_path / "b.ncu-rep", 3000.0, 250.0)
    (row,) = comparison.run((a, b), Sources(tmp_path, read_report=profiled.load)).rows
    assert (row.variant, row.case, row.word, row.counters) == (
        "gemm()",
        "8 blocks of 64",
        "SLOWER",
        "MORE",
    )
    assert [(change.counter, change.ratio) for change in row.changes] == [("instructions_executed", 2.5)]


def test_a_report_without_single_launches_is_refused(tmp_path):
    path = tmp_path / "a.log"
    path.write_text(
        "ptxas info    : Compiling entry function 'scale' for 'sm_80'\n"
        "ptxas info    : Function properties for scale\n"
        "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Used 8 registers\n"
    )
    with pytest.raises(WarplogError, match=r"a\.log: contains no durations of single launches"):
        comparison.run((str(path), str(path)), Sources(tmp_path, read_report=profiled.load))


def test_launches_of_one_configuration_are_averaged_and_what_one_of_them_lacks_is_unknown(
    tmp_path, monkeypatch
):
    def launch(number, kernel, **values):
        about = {"tool": "ncu", "launch": number, "kernel": kernel, "gpu": "NVIDIA H200"}
        values = {"grid_blocks": 8.0, "block_threads": 64.0, **values}
        return [SimpleNamespace(**about, metric=metric, value=value) for metric, value in values.items()]

    rows = [
        *launch(0, "k", duration_us=10.0, sm_mhz_in_ncu=1000.0, instructions_executed=100.0, dram_bytes=5.0),
        *launch(1, "k", duration_us=12.0, sm_mhz_in_ncu=2000.0, instructions_executed=300.0),
        *launch(2, "k", duration_us=50.0, grid_blocks=9.0),
        *launch(3, "j", duration_us=5.0, sm_mhz_in_ncu=1000.0),
        *launch(4, "j", duration_us=5.0),
    ]
    monkeypatch.setattr(profiled, "read_any", lambda _: rows)
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(b"NVR")
    found = profiled.load(path).cases
    one, other = found["ncu", "k", "8 blocks of 64"], found["ncu", "j", "8 blocks of 64"]
    assert one.counters == {"instructions_executed": 200.0}
    assert (one.processes[0].times_us, one.processes[0].sm_mhz) == ((10.0, 12.0), (1000.0, 2000.0))
    assert (other.processes[0].times_us, other.processes[0].sm_mhz) == ((5.0, 5.0), None)
    assert found["ncu", "k", "9 blocks of 64"].numbers() == (50.0,)
