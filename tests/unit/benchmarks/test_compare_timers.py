"""The comparison of timers without a GPU: its table, its probe kernels, its NVBench child process."""

import csv
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import compare_timers
from benchmarks.timer_table import COLUMNS, TIMERS, Timing, as_csv, make_row

import host_family
from sass_builds import built, check
from warplog.catalog.family import load_family
from warplog.core import process
from warplog.machine import device
from warplog.records.door import read_json, write

CHILD = Path(compare_timers.__file__).with_name("nvbench_child.py")
FAMILY = load_family(compare_timers.FAMILY)


def found(nvbench=20.0, cold=15.0, ncu=14.5, hot=11.0, nsys=11.2):
    """Returns a Timing for each timer; a number is a median in microseconds."""
    given = (nvbench, cold, ncu, hot, nsys)
    return {n: v if isinstance(v, Timing) else Timing(v) for n, v in zip(TIMERS, given, strict=True)}


def test_row_disagrees_if_warplog_differs_from_the_profilers_but_not_if_nvbench_does():
    row = make_row("axpy", "64Ki", 0.8, found(nvbench=90.0, hot=1.2, nsys=2.3))
    assert (row["status"], row["reason"]) == ("disagree", "disagree: hot 1.2 us, nsys 2.3 us")


def test_row_without_a_timer_keeps_the_others():
    lacking = Timing(None, "denied", "counters are not permitted")
    row = make_row("axpy", "4Mi", 50.3, found(ncu=lacking))
    assert (row["ncu_us"], row["nvbench_over_ncu"], row["cold_over_ncu"]) == (None, None, None)
    assert row["hot_over_nsys"] == pytest.approx(11 / 11.2)
    assert (row["status"], row["reason"]) == ("denied", "ncu: counters are not permitted")


def test_csv_keeps_full_precision_and_leaves_missing_numbers_empty():
    rows = [make_row("copy", "4Mi", 1 / 3, found(nvbench=Timing(None, "missing", "no, none")))]
    (read,) = csv.DictReader(io.StringIO(as_csv(rows)))
    assert tuple(read) == COLUMNS
    assert float(read["megabytes"]) == 1 / 3
    assert float(read["cold_over_ncu"]) == 15 / 14.5
    assert (read["nvbench_us"], read["reason"]) == ("", "nvbench: no, none")


def test_without_a_gpu_there_is_an_error_message(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(device, "detect", lambda: None)
    assert compare_timers.main(["-o", str(tmp_path / "out")]) == 1
    assert "no GPU" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["axpy", "copy"])
def test_each_variant_has_its_own_cases_and_all_are_profiled(name):
    requires = FAMILY.variant(name).requires
    own = [case for case in FAMILY.cases.values() if not requires.why_not_case(case)]
    assert [case.name for case in own] == [f"{name}-{size}" for size in ("64Ki", "4Mi", "16Mi", "64Mi")]
    assert set(FAMILY.profile_cases) == set(FAMILY.cases)
    checked = [case for case in FAMILY.check_cases.values() if not requires.why_not_case(case)]
    assert {int(case.values["n"]) % 4 for case in checked} == {0, 1, 2, 3}
    arrays = {"axpy": 3, "copy": 2}[name]
    for case in own:
        assert FAMILY.amount(FAMILY.work.bytes, case, 1) == 4 * arrays * case.values["n"]


def test_reference_matches_the_definition_and_a_copy_is_exact():
    reference = FAMILY.reference()
    for name, case in FAMILY.check_cases.items():
        inputs = reference.make_inputs(np, np.random.default_rng(1), case.values)
        expected, scale = reference.reference(np, inputs, case.values)["out"]
        x, y = (inputs[key].astype(np.float64) for key in "xy")
        if name.startswith("copy"):
            assert np.isnan(y).all()
            assert (expected == x).all()
            assert not scale.any()
        else:
            assert (expected == case.values["a"] * x + y).all()
            assert (scale >= np.abs(expected)).all()


@pytest.mark.nvcc
@pytest.mark.parametrize("variant", FAMILY.variants, ids=lambda variant: variant.name)
def test_probe_kernels_compile_to_what_family_yaml_expects(kept_builds, variant):
    check(variant, *built(FAMILY, variant, "sm_90", kept_builds))


# A stand-in for NVBench: takes three samples per case and stores them for BenchmarkResult.
FAKE_BENCH = """
import json
from types import SimpleNamespace
__version__ = "0.0"
benches = []
class Bench:
    def __init__(self, function): self.function = function
    def set_name(self, name): self.name = name; return self
    def add_string_axis(self, axis, values): self.axis, self.values = axis, list(values); return self
def register(function):
    benches.append(Bench(function)); return benches[-1]
def run_all_benchmarks(argv):
    (bench,), stored = benches, {}
    assert argv[argv.index("--min-time") + 1] == "0.05" and argv[argv.index("--timeout") + 1] == "2.0"
    for value in bench.values:
        def exec(launch, *, batched):
            assert batched is False
            for _ in range(3):
                launch(SimpleNamespace(get_stream=lambda: SimpleNamespace(addressof=lambda: 0)))
            stored[value] = [2e-6, 1e-6, 4e-6]
        bench.function(SimpleNamespace(get_string={bench.axis: value}.__getitem__, exec=exec))
    with open(argv[argv.index("--jsonbin") + 1], "w") as file:
        json.dump({bench.name: stored}, file)
"""
FAKE_RESULTS = """
import json
from types import SimpleNamespace
class BenchmarkResult:
    @staticmethod
    def from_json(path):
        with open(path) as file:
            data = json.load(file)
        return {name: [SimpleNamespace(point={"case": c}, samples=s, is_skipped=False, skip_reason=None)
                       for c, s in states.items()] for name, states in data.items()}
"""


def run_child(folder, bench, body="for (int i = 0; i < a->N; i++) a->y[i] = a->factor * a->x[i];"):
    """Runs the child on a host kernel with `bench` as the source of cuda.bench; returns the timings and the process."""
    package = folder / "site" / "cuda" / "bench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(bench)
    (package / "results.py").write_text(FAKE_RESULTS)
    job = host_family.make_job(folder, body)
    answer = folder / "answer.json"
    task = {
        "family_file": str(job.family.file),
        "library": str(job.build_folder / "kernel.so"),
        "backend": "numpy",
        "cases": ["64", "1000"],
        "samples": str(folder / "samples.json"),
        "answer": str(answer),
        **compare_timers.NVBENCH,
    }
    write(folder / "task.json", task)
    environment = process.minimal_env({"PYTHONPATH": str(folder / "site")})
    command = [sys.executable, str(CHILD), str(folder / "task.json")]
    done = process.run(command, timeout_s=60, env=environment)
    return compare_timers.read_nvbench(answer, done, task["cases"]), done


def test_child_returns_the_median_of_nvbenchs_samples_in_microseconds(tmp_path):
    times, done = run_child(tmp_path, FAKE_BENCH)
    assert times == {"64": Timing(2.0), "1000": Timing(2.0)}, done.output_tail
    stored = read_json(tmp_path / "answer.json")
    assert stored["version"] == "0.0"
    assert stored["cases"][0]["samples_us"] == pytest.approx([2.0, 1.0, 4.0])


def test_child_returns_no_time_for_a_kernel_with_wrong_results(tmp_path):
    times, _ = run_child(tmp_path, FAKE_BENCH, body="for (int i = 0; i < a->N; i++) a->y[i] = 1;")
    assert {t.status for t in times.values()} == {"wrong"}
    assert {t.us for t in times.values()} == {None}


def test_without_nvbench_the_table_states_the_reason(tmp_path):
    times, done = run_child(tmp_path, "raise ImportError('libcuda.so.1: cannot open')")
    assert done.ok
    assert {t.status for t in times.values()} == {"missing"}
    row = make_row("axpy", "64", 1.0, found(nvbench=times["64"]))
    assert row["status"] == "missing"
    assert row["reason"].startswith("nvbench: cuda.bench cannot be imported (libcuda.so.1: cannot open); ")
    assert row["cold_over_ncu"] is not None


def test_failure_of_the_child_is_reported_with_its_last_output(tmp_path):
    times, _ = run_child(tmp_path, "raise RuntimeError('bad driver')")
    assert {t.status for t in times.values()} == {"error"}
    assert "exit status 1" in times["64"].reason
    assert "bad driver" in times["64"].reason
