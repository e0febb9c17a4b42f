"""What all measuring stages share: which entries are kept, who is refused, and what an interrupted stage leaves."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from msgspec import structs
from stand_in_workers import Workers

from host_family import make_job, named
from warplog.catalog.contract import Requires
from warplog.core import paths
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job
from warplog.measure.stages import capture, check, sanitize, timeline, timing
from warplog.measure.stages.family_stage import FamilyStage
from warplog.records import door
from warplog.records.build import KernelCode
from warplog.records.config import (
    CheckSettings,
    ProfileSettings,
    SanitizeSettings,
    TimelineSettings,
    TimeSettings,
)
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import CHECK, MEASURING

NAMES = ("right", "broken", "other")  # the second was not built
RUN = {"right", "other"}
CASES = dict.fromkeys(NAMES, ("64",))
TIMER, TOOL = Path("timer.so"), Tool("tool", Path("/opt/tool"), "1.0", "")
# Module, settings, and the stage in a place.
STAGES: dict[str, tuple[ModuleType, object, Callable[["Place"], FamilyStage]]] = {
    "check": (check, CheckSettings(), lambda _: check.CheckStage()),
    "time": (
        timing,
        TimeSettings(processes=1, most_processes=1),
        lambda place: timing.TimeStage(place.checked, TIMER, ("64",)),
    ),
    "ncu": (capture, ProfileSettings(), lambda place: capture.NcuStage(place.checked, TOOL, CASES)),
    "nsys": (capture, ProfileSettings(), lambda place: capture.NsysStage(place.checked, TOOL, CASES)),
    "sanitize": (sanitize, SanitizeSettings(tools=("memcheck",)), lambda _: sanitize.SanitizeStage(TOOL)),
    "timeline": (
        timeline,
        TimelineSettings(),
        lambda place: timeline.TimelineStage(place.checked, TIMER, place.marked),
    ),
}
AFTER_CHECK = ("time", "ncu", "nsys", "timeline")


TOO_LARGE = "cannot be launched: a block has at most 101 kB of shared memory"


def kernels(static: int, **more: int) -> tuple[KernelCode]:
    """Returns the code of a kernel with these bytes of static shared memory."""
    others = ("registers_per_thread", "constant_bytes", "stack_bytes", "barriers", "sass_instructions")
    spills = ("spill_store_bytes", "spill_load_bytes")
    zeros = dict.fromkeys((*others, *spills), 0)
    return (KernelCode(kernel="k", mangled="k", opcodes={}, static_shared_bytes=static, **zeros, **more),)


class Place:
    """A family of three variants in one stage, with stand-ins for the workers of this stage and of the check."""

    def __init__(self, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        module, settings, self._stage = STAGES[name]
        self.name, self.folder = name, folder
        self.checkers, self.workers = Workers(), Workers()
        monkeypatch.setattr(check, "run_cases", self.checkers)
        monkeypatch.setattr(module, "run_cases", self.workers)
        (stage,) = (stage for stage in MEASURING if stage.word == name)
        self.record = stage.at(folder, gpu="none", family="scale")
        self.checked = CHECK.at(folder, gpu="none", family="scale")
        self.marked = {variant: folder / variant / "record.json" for variant in NAMES}
        self._job = replace(make_job(folder, ""), settings=settings, record=self.record)

    def jobs(
        self,
        *names: str,
        inputs: str = "known",
        library: str = "b",
        board: str = "GPU-a",
        kernels: Sequence[KernelCode] = (),
        capability: tuple[int, int] = (9, 0),
    ) -> list[Job[Any]]:
        """Returns the jobs of variants; `library` is the digit of the hash of `other`."""
        jobs = []
        for job in named(self._job, *NAMES):
            variant, folder = job.variant.name, self.folder / job.variant.name
            digit = library if variant == "other" else "a"
            state = {"status": "ok", "reason": "", "library_sha256": digit * 64}
            if variant == "broken":
                state = {"status": "compile_error", "reason": "no such type", "library_sha256": ""}
            folder.mkdir(exist_ok=True)
            build = structs.replace(self._job.build, variant=variant, kernels=tuple(kernels), **state)
            door.write(folder / "record.json", build)
            family = structs.replace(job.family, timeline=dict.fromkeys(NAMES, "64"))
            gpu = structs.replace(job.gpu, uuid=board, compute_capability=capability)
            scratch = self.record.with_name(f".{variant}.work")
            more = {"family": family, "gpu": gpu, "build_folder": folder, "scratch": scratch}
            jobs.append(replace(job, inputs_sha256=inputs, **more))
        return [job for job in jobs if job.variant.name in (names or NAMES)]

    def stage(self) -> FamilyStage:
        return self._stage(self)

    def check(self, jobs: Sequence[Job[Any]]) -> None:
        """Checks these builds anew, for a stage that asks for that."""
        if self.name in AFTER_CHECK:
            checked = (replace(job, record=self.checked, inputs_sha256="") for job in jobs)
            check.check_family([replace(job, settings=CheckSettings()) for job in checked])

    def run(self, *names: str, **changes: str) -> set[str]:
        """Checks and runs the jobs; returns the variants that the stage ran."""
        jobs = self.jobs(*names, **changes)
        self.check(jobs)
        return self.measure(jobs)

    def measure(self, jobs: Sequence[Job[Any]]) -> set[str]:
        self.workers.tasks.clear()
        self.stage().run(jobs)
        return {variant for task in self.workers.variants() for variant in task}

    def entries(self) -> dict[str, Any]:
        return FamilyRecord.read(self.record, self.stage().kind).variants


@pytest.fixture
def export(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for `nsys export`."""

    def exported(command: Sequence[str], **_: object) -> SimpleNamespace:
        Path(command[command.index("-o") + 1]).write_text("a database")
        return SimpleNamespace(ok=True)

    monkeypatch.setattr(capture, "run", exported)


@pytest.fixture(params=STAGES)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, export: None
) -> Place:
    return Place(request.param, tmp_path, monkeypatch)


def test_entries_with_unchanged_inputs_are_kept_and_the_file_is_newer_than_its_inputs(place: Place) -> None:
    assert place.run() == RUN
    first = place.entries()
    assert [first[name].status for name in ("right", "other")] == ["ok", "ok"]
    os.utime(place.record, (0, 0))
    assert place.run() == set()
    assert place.entries() == first
    assert place.record.stat().st_mtime > 1  # for Snakemake
    assert not list(place.record.parent.glob(".*")), "working files are left behind"


def test_a_variant_that_was_built_anew_is_measured_again_and_no_other(place: Place) -> None:
    place.run()
    first = place.entries()
    assert place.run(library="c") == {"other"}
    second = place.entries()
    assert second["right"] == first["right"]
    assert second["other"].library_sha256 == "c" * 64


def test_with_other_or_unknown_inputs_everything_is_measured_again(place: Place) -> None:
    place.run()
    assert place.run(inputs="another policy") == RUN
    for _ in range(2):
        assert place.run(inputs="") == RUN


def test_a_family_that_moves_to_another_board_is_measured_again_unless_entries_hold_on_every_board(
    place: Place,
) -> None:
    place.run("right")
    assert place.run() == {"other"}
    first = place.entries()
    moved = place.run(board="GPU-b")
    assert moved == (set() if place.name in ("check", "sanitize") else RUN)
    boards = {entry.provenance.gpu_uuid for entry in place.entries().values()}
    assert boards == {"GPU-b" if moved else "GPU-a"}
    assert (place.entries() == first) is not bool(moved)


def test_a_variant_that_was_not_built_gets_an_entry_with_the_reason(place: Place) -> None:
    place.run()
    broken = place.entries()["broken"]
    assert broken.status == "skipped"
    assert broken.reason.endswith("its build has status compile_error: no such type")


@pytest.mark.parametrize(
    ("static", "dynamic", "capability", "fits"),
    [
        (1024, 98 * 1024, (8, 9), True),
        (1025, 98 * 1024, (8, 9), False),
        (1025, 98 * 1024, (99, 0), True),  # of which nothing is known
    ],
)
def test_a_block_that_is_too_large_for_the_gpu_is_never_launched(
    place: Place, static: int, dynamic: int, capability: tuple[int, int], fits: bool
) -> None:
    jobs = place.jobs("right", "other", kernels=kernels(static), capability=capability)
    requires = Requires(dynamic_shared_bytes=f"{dynamic // 1024} * KIB")
    variant = structs.replace(jobs[0].variant, requires=requires, parameters={"KIB": 1024})
    jobs[0] = replace(jobs[0], variant=variant)
    place.check(jobs)
    assert place.measure(jobs) == ({"right", "other"} if fits else {"other"})
    entry = place.entries()["right"]
    assert entry.status == ("ok" if fits else "unsupported")
    assert entry.reason.endswith("" if fits else TOO_LARGE)


def test_a_variant_that_supports_no_case_is_unsupported_with_the_reason(place: Place) -> None:
    jobs = place.jobs("right", "other")
    jobs[0] = replace(
        jobs[0], variant=structs.replace(jobs[0].variant, requires=Requires(where=("N > 10**6",)))
    )
    place.check(jobs)
    assert place.measure(jobs) == {"other"}
    entry = place.entries()["right"]
    assert entry.status == "unsupported"
    assert "supports no" in entry.reason


def test_what_triton_requests_counts_as_what_family_yaml_states(place: Place) -> None:
    jobs = place.jobs("right", kernels=kernels(0, dynamic_shared_bytes=100 * 1024), capability=(8, 9))
    place.check(jobs)
    assert place.measure(jobs) == set()
    assert place.entries()["right"].reason.endswith(TOO_LARGE)


def test_ctrl_c_keeps_what_is_written_and_the_next_run_does_the_rest(place: Place) -> None:
    place.run("right")
    first = place.entries()
    jobs = place.jobs()
    place.check(jobs)
    place.workers.interrupted = True
    with pytest.raises(KeyboardInterrupt):
        place.measure(jobs)
    assert place.entries().keys() == {"right", "broken"}
    assert place.entries()["right"] == first["right"]
    place.workers.interrupted = False
    assert place.run() == {"other"}
    assert tuple(place.entries()) == NAMES, "in the order of the family"


def test_variants_that_the_family_no_longer_has_are_removed(place: Place) -> None:
    place.run()
    (job,) = place.jobs("right")
    family = structs.replace(job.family, variants=(job.variant,))
    assert place.measure([replace(job, family=family)]) == set()
    assert place.entries().keys() == {"right"}


def test_the_key_of_an_entry_is_known_without_running_anything(place: Place) -> None:
    jobs = place.jobs()
    place.check(jobs)
    parts = [place.stage().part(job) for job in jobs]
    assert place.workers.tasks == []
    assert [bool(part.runnable) for part in parts] == [True, False, True]
    place.measure(jobs)
    keys = {name: entry.inputs_sha256 for name, entry in place.entries().items()}
    assert {part.variant: part.inputs_sha256 for part in parts} == keys


@pytest.mark.parametrize("place", AFTER_CHECK, indirect=True)
def test_without_a_passed_check_of_this_build_a_variant_is_skipped_with_the_reason(place: Place) -> None:
    place.checkers.statuses = {"other": "wrong"}
    assert place.run() == {"right"}
    other = place.entries()["other"]
    assert (other.status, other.reason) == ("skipped", "its check has status wrong: case odd: wrong")
    assert {case.status for case in other.cases} == {"skipped"}
    place.checkers.statuses = {}
    assert place.run() == {"other"}
    assert place.measure(place.jobs(library="c")) == set()
    reason = "its check belongs to another build; run the check again"
    assert place.entries()["other"].reason == reason
    place.checked.unlink()
    place.check(place.jobs("right"))
    assert place.measure(place.jobs()) == set()
    missing = f"its check has status missing: not in {place.checked}"
    assert place.entries()["other"].reason == missing


@pytest.mark.parametrize("place", ["ncu", "nsys", "timeline"], indirect=True)
def test_an_entry_whose_report_or_trace_is_gone_is_not_kept(place: Place) -> None:
    place.run()
    files = list(paths.captures(place.record).iterdir())
    assert files
    for file in files:
        file.unlink()
    assert place.run() == RUN
    assert list(paths.captures(place.record).iterdir()) == files
