"""Stages check and time on host functions: correct ones pass, and wrong ones are rejected with the right reason."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from host_family import make_job, named
from one_variant import check_variant, record_of
from warplog.catalog.contract import Requires
from warplog.measure.job import Job
from warplog.measure.journal import Begun, Note
from warplog.measure.results import Result
from warplog.measure.stages.check import check_family
from warplog.measure.stages.family_stage import Part, family_task
from warplog.measure.task import CaptureWork, CheckWork
from warplog.measure.worker.case_data import CaseData
from warplog.records import door
from warplog.records.check import Check
from warplog.records.config import CheckSettings
from warplog.records.time import TimeCase

CHECK, CAPTURE = CheckWork(rounds=1), CaptureWork(tool="ncu", launches=1)

RIGHT = "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];"


def test_right_function_passes_all_cases(tmp_path: Path) -> None:
    record = check_variant(make_job(tmp_path, RIGHT))
    assert (record.status, record.reason) == ("ok", "")
    assert [c.case for c in record.cases] == ["odd", "one", "even"]
    assert all(c.rounds == 2 and c.max_error_over_tolerance <= 1 for c in record.cases)
    assert not (tmp_path / "work").exists(), "working files are left behind"


def test_the_worker_puts_arrays_where_the_variant_says(tmp_path: Path) -> None:
    job = make_job(tmp_path, RIGHT)
    placed = replace(job, variant=structs.replace(job.variant, memory={"x": "pinned", "y": "pageable"}))
    assert check_variant(placed).status == "ok"
    assert family_task([Part(placed, ("odd",))], CHECK).memory == {"right": {"x": "pinned", "y": "pageable"}}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "for (int i = 0; i < a->N - 1; ++i) a->y[i] = a->factor * a->x[i];",
            "1 of 127 elements were never written",
        ),
        (RIGHT + "a->y[a->N] = 1.0f;", "wrote outside y: 4 bytes after its end"),
        (RIGHT + "a->y[-1] = 0.0f;", "wrote outside y: 4 bytes before its start"),
        (RIGHT + "((float*)a->x)[0] = 7.0f;", "changed its input x"),
        (RIGHT + "a->y[5 % a->N] = NAN;", "NaN or Inf"),
        ("for (int i = 0; i < a->N; ++i) a->y[i] = 0.0f;", "all zero"),
        ("for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i] * 1.0001f;", "outside the tolerance"),
        (
            "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i + 1];",
            "or come from reads outside an input",
        ),
    ],
)
def test_wrong_function_is_rejected_with_the_reason(tmp_path: Path, body: str, words: str) -> None:
    record = check_variant(make_job(tmp_path, body))
    assert record.status == "wrong"
    assert words in record.reason


def test_crash_ends_the_case_and_skips_the_rest(tmp_path: Path) -> None:
    record = check_variant(make_job(tmp_path, f"if (a->N == 1) raise(SIGSEGV); {RIGHT}"))
    assert [c.status for c in record.cases] == ["ok", "crashed", "skipped"]
    assert record.status == "crashed"
    assert "SIGSEGV" in record.reason


def test_a_case_whose_worker_was_killed_is_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    once = f'if (a->N == 1 && !fopen("{tmp_path}/killed", "r")) {{ fopen("{tmp_path}/killed", "w"); raise(SIGKILL); }}'
    record = check_variant(make_job(tmp_path, f"{once} {RIGHT}"))
    assert record.status == "ok"
    assert "the worker was killed; right:one is tried again" in capfd.readouterr().err


def test_a_case_whose_worker_is_killed_each_time_is_a_crash(tmp_path: Path) -> None:
    record = check_variant(make_job(tmp_path, f"if (a->N == 1) raise(SIGKILL); {RIGHT}"))
    assert [c.status for c in record.cases] == ["ok", "crashed", "skipped"]
    assert "killed by SIGKILL" in record.reason


def test_hang_is_a_timeout(tmp_path: Path) -> None:
    record = check_variant(make_job(tmp_path, f"if (a->N == 1) for (;;) sleep(1); {RIGHT}", timeout_s=1.0))
    assert [c.status for c in record.cases] == ["ok", "timeout", "skipped"]
    assert "no answer within 1 s" in record.reason


def test_error_code_is_a_crash_unless_it_means_out_of_memory(tmp_path: Path) -> None:
    record = check_variant(make_job(tmp_path, "if (a->N == 127) return 2; return 700;"))
    assert [c.status for c in record.cases][:2] == ["out_of_memory", "crashed"]


def test_interrupted_run_resumes_where_it_stopped(tmp_path: Path) -> None:
    job = make_job(
        tmp_path,
        f'if (a->N == 256 && access("{tmp_path}/go", F_OK)) {{ kill(getppid(), SIGKILL); sleep(20); }} {RIGHT}',
    )
    script = f"import sys; sys.path[:0] = {sys.path!r}\nimport pickle\n"
    (tmp_path / "job.pickle").write_bytes(pickle.dumps(job))
    pickled = str(tmp_path / "job.pickle")
    script += "from warplog.measure.stages.check import check_family\n"
    script += f"check_family([pickle.load(open({pickled!r}, 'rb'))])"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=60)
    assert done.returncode == -9
    assert not job.record.exists()
    lines = (tmp_path / ".scale.check.work" / "journal.jsonl").read_text().splitlines()
    notes = [door.decode(json.loads(line), Note, "") for line in lines]
    assert {n.run.case for n in notes if isinstance(n, Result)} == {"odd", "one"}
    (tmp_path / "go").touch()
    begun = sum(isinstance(n, Begun) for n in notes)
    record = check_variant(job)
    assert record.status == "ok"
    assert begun == 3


def test_a_case_beyond_a_limit_of_the_variant_states_the_limit_as_a_value(tmp_path: Path) -> None:
    job = make_job(tmp_path, "")
    small = replace(job, variant=structs.replace(job.variant, requires=Requires(at_most={"N": 64})))
    (found,) = Part(small, ("1000",)).all_cases(TimeCase, {})
    assert found == TimeCase(
        case="1000", status="unsupported", reason="needs N to be at most 64", own_limits={"N": 64}
    )


def family_of_two(folder: Path, second: str) -> list[Job[CheckSettings]]:
    """Returns jobs of `right` and `other`, whose launcher executes `second`."""
    jobs = []
    for name, body in (("right", RIGHT), ("other", second)):
        (folder / name).mkdir()
        own = next(
            job for job in named(make_job(folder / name, body), "right", "other") if job.variant.name == name
        )
        record = folder / "check" / "scale.json"
        jobs.append(replace(own, record=record, scratch=record.with_name(f".{name}.work")))
    return jobs


def test_a_family_is_measured_together_and_a_crash_only_affects_its_variant(tmp_path: Path) -> None:
    jobs = family_of_two(tmp_path, "if (a->N == 1) abort();" + RIGHT)
    check_family(jobs[::-1])
    statuses = [[case.status for case in record_of(job, Check).cases] for job in jobs]
    assert statuses == [["ok"] * 3, ["ok", "crashed", "skipped"]]
    assert not list((tmp_path / "check").glob(".*"))


def test_checked_variants_run_case_by_case_and_share_the_inputs(tmp_path: Path) -> None:
    """The inputs of a case are made once for checked kernels; unchecked kernels get their own."""
    jobs = family_of_two(tmp_path, RIGHT)
    parts = [Part(job, ("64", "1000")) for job in jobs]
    by_variant = ["right:64", "right:1000", "other:64", "other:1000"]
    assert [str(run) for run in family_task(parts, CHECK).runs] == by_variant
    by_case = ["right:64", "other:64", "right:1000", "other:1000"]
    assert [str(run) for run in family_task(parts, CAPTURE).runs] == by_case
    made = CaseData(np, jobs[0].family)
    one, other = jobs[0].family.case("64"), jobs[0].family.case("1000")
    first = made.inputs(one, 3)
    assert made.inputs(one, 3) is first
    assert made.answers(one, 3) is made.answers(one, 3)
    assert made.inputs(one, 4) is not first
    assert made.inputs(other, 3)["x"].shape != first["x"].shape
    again = made.inputs(one, 3)
    assert again is not first
    assert (again["x"] == first["x"]).all()
