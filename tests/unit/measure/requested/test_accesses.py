"""The stage accesses with host functions: a stand-in for the tracer writes the trace of a made-up kernel."""

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from host_family import GRID, KERNEL, THREADS, make_job, make_tracer, named
from report_files import Launch, write_ncu
from warplog.core.errors import WarplogError
from warplog.machine.toolchain import Tool
from warplog.measure.results import Result
from warplog.measure.stages import accesses
from warplog.measure.stages.check import check_family
from warplog.records.config import AccessSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Session
from warplog.records.requested.accesses import Accesses

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"
SETTINGS = AccessSettings(most_entries=1 << 16, timeout_s=20.0)
NCU = Tool("ncu", Path("/opt/ncu"), "2025.3.1", "")


def checked(folder: Path, bodies: dict[str, str]):
    """Returns jobs of variants that passed their check; a body that runs under the tracer only uses `traced()`."""
    jobs = []
    for place, (name, body) in enumerate(bodies.items()):
        (folder / name).mkdir()
        job = named(make_job(folder / name, body), *bodies)[place]
        jobs.append(replace(job, record=folder / "check" / "scale.json", scratch=folder / f".{name}.work"))
    check_family(jobs)
    return [
        replace(job, record=folder / "accesses" / "scale.json", settings=SETTINGS, inputs_sha256="same")
        for job in jobs
    ]


def traced(folder: Path, jobs, tracer: Path | None = None, ncu: Tool | None = None) -> dict[str, Accesses]:
    """Traces the variants and returns their records."""
    library = tracer or make_tracer(folder / "tracer.so")
    accesses.trace_accesses(jobs, folder / "check" / "scale.json", library, ncu)
    return FamilyRecord.read(jobs[0].record, Accesses).variants


# The stand-in has no environment variable of CUDA; the stage sets this one for the worker only.
UNDER_THE_TRACER = 'getenv("CUDA_INJECTION64_PATH")'


def test_one_launch_of_the_smallest_case_is_traced(tmp_path):
    record = traced(tmp_path, checked(tmp_path, {"right": RIGHT}))["right"]
    assert (record.status, record.reason) == ("ok", "")
    (case,) = record.cases
    assert (case.case, case.counted, case.counted_reason) == ("64", "skipped", "config: profile.ncu is off")
    (kernel,), (load,) = case.kernels, case.instructions
    assert (kernel.mangled, kernel.traced_blocks, kernel.lost) == (KERNEL, GRID, 0)
    assert (load.requests, load.sectors, load.kind) == (GRID, 4 * GRID, "load")
    assert not list(tmp_path.rglob("*.trace"))


def test_the_family_may_name_other_cases_for_variants_that_support_them(tmp_path):
    (job,) = checked(tmp_path, {"right": RIGHT})
    family = structs.replace(job.family, accesses=("odd", "one"))
    record = traced(tmp_path, [replace(job, family=family)])["right"]
    assert [(case.case, case.status) for case in record.cases] == [("odd", "ok"), ("one", "ok")]
    for multiple, cases in ((8, ("64",)), (127, ("odd",))):
        requires = structs.replace(job.variant.requires, multiple_of={"N": multiple})
        assert family.traced_cases(structs.replace(job.variant, requires=requires)) == cases


def test_fewer_blocks_are_traced_if_the_accesses_do_not_fit(tmp_path):
    (job,) = checked(tmp_path, {"right": RIGHT})
    small = replace(job, settings=structs.replace(SETTINGS, most_entries=3 * THREADS + 5))
    (kernel,) = traced(tmp_path, [small])["right"].cases[0].kernels
    assert (kernel.traced_blocks, kernel.entries, kernel.lost) == (3, 3 * THREADS, 0)


def test_a_variant_that_dies_under_the_tracer_costs_the_others_nothing(tmp_path):
    dies = f"{RIGHT} if ({UNDER_THE_TRACER}) raise(SIGSEGV);"
    found = traced(tmp_path, checked(tmp_path, {"first": RIGHT, "dies": dies, "last": RIGHT}))
    assert {name: record.status for name, record in found.items()} == {
        "first": "ok",
        "dies": "crashed",
        "last": "ok",
    }
    assert "SIGSEGV" in found["dies"].reason


def test_a_variant_that_hangs_under_the_tracer_times_out(tmp_path):
    hangs = f"{RIGHT} if ({UNDER_THE_TRACER}) pause();"
    jobs = checked(tmp_path, {"hangs": hangs, "last": RIGHT})
    quick = [replace(job, settings=structs.replace(SETTINGS, timeout_s=1.0)) for job in jobs]
    found = traced(tmp_path, quick)
    assert [found[name].status for name in ("hangs", "last")] == ["timeout", "ok"]


def test_wrong_results_under_the_tracer_are_no_accesses(tmp_path):
    wrong = f"{RIGHT} if ({UNDER_THE_TRACER}) a->y[0] += 1;"
    record = traced(tmp_path, checked(tmp_path, {"wrong": wrong}))["wrong"]
    assert record.status == "wrong"
    assert record.reason.startswith("with the tracer: y: 1 of 64 elements are outside the tolerance")
    assert record.cases[0].instructions is None


def test_a_launch_that_cannot_be_traced_says_why(tmp_path):
    tracer = make_tracer(tmp_path / "tracer.so", why="it launches a CUDA graph")
    record = traced(tmp_path, checked(tmp_path, {"right": RIGHT}), tracer)["right"]
    assert (record.status, record.reason) == ("unsupported", "it launches a CUDA graph")


def test_a_variant_that_failed_its_check_is_not_traced(tmp_path):
    record = traced(tmp_path, checked(tmp_path, {"wrong": RIGHT.replace("factor *", "factor +")}))["wrong"]
    assert record.status == "skipped"
    assert record.reason.startswith("its check has status wrong")


def test_a_fresh_entry_is_kept_until_the_tracer_or_the_counters_change(tmp_path, monkeypatch):
    jobs = checked(tmp_path, {"right": RIGHT})
    first = traced(tmp_path, jobs)["right"]
    with monkeypatch.context() as nothing_runs:
        nothing_runs.setattr(accesses, "run_cases", None)
        assert traced(tmp_path, jobs)["right"] == first
    other = make_tracer(tmp_path / "other.so", stride=128)
    again = traced(tmp_path, jobs, other)["right"]
    assert again.cases[0].instructions[0].sectors == THREADS * GRID
    assert traced(tmp_path, jobs, other, Tool("ncu", None, "2", "install it"))["right"] != again


class Counting:
    """Replaces run_cases: traces for real, and stands in for the sessions of ncu, which leave a report or a log.

    Attributes:
        sessions: the variants of each.
        breaks: variants that break their session.
        log: what a session says that fails.
    """

    def __init__(self):
        self.real, self.sessions, self.breaks, self.log = accesses.run_cases, [], (), ""

    def __call__(self, task, timeout_s, show, stop_at=(), stop_all=False):
        if task.work.tracer:
            return self.real(task, timeout_s, show, stop_at, stop_all)
        self.sessions.append([run.variant for run in task.runs])
        if self.log:
            Path(task.folder).mkdir()
            (Path(task.folder) / "worker.log").write_text(self.log)
            raise WarplogError("the profiler failed")
        report = Path(f"{task.wrapper[task.wrapper.index('-o') + 1]}.ncu-rep")
        write_ncu(report, [Launch("made", {}, (f"case:{run}",)) for run in task.runs])
        statuses = {run: "crashed" if run.variant in self.breaks else "ok" for run in task.runs}
        return [Result(run=run, status=status) for run, status in statuses.items()], Session()


@pytest.fixture
def counting(monkeypatch):
    counting = Counting()
    monkeypatch.setattr(accesses, "run_cases", counting)
    return counting


def test_denied_counters_are_no_error_of_the_trace(tmp_path, counting):
    counting.log = "==ERROR== ERR_NVGPUCTRPERM"
    record = traced(tmp_path, checked(tmp_path, {"right": RIGHT}), ncu=NCU)["right"]
    (case,) = record.cases
    assert (record.status, case.counted) == ("ok", "denied")
    assert case.counted_reason.startswith("counters are not permitted")
    assert case.instructions


def test_a_variant_that_breaks_the_session_of_ncu_is_left_out_of_the_next(tmp_path, counting):
    counting.breaks = ("breaks",)
    found = traced(tmp_path, checked(tmp_path, {"breaks": RIGHT, "right": RIGHT}), ncu=NCU)
    assert counting.sessions == [["breaks", "right"], ["right"]]
    assert found["breaks"].cases[0].counted == "crashed"
    assert found["right"].cases[0].counted == "ok"


def test_a_family_that_ncu_cannot_observe_is_traced_and_not_counted(tmp_path, counting):
    (job,) = checked(tmp_path, {"right": RIGHT})
    measuring = structs.replace(job.family.measuring, profilers=("nsys",))
    job = replace(job, family=structs.replace(job.family, measuring=measuring))
    (case,) = traced(tmp_path, [job], ncu=NCU)["right"].cases
    assert (case.counted, counting.sessions) == ("skipped", [])
    assert case.counted_reason == "n/a: ncu cannot observe what this family measures"
