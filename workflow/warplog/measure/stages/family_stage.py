"""What all measuring stages of a family share: fresh entries are kept, refused variants get a reason, others are run.

A stage says what differs: its cases, whom it refuses, what its entries depend on, and how variants are measured.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from msgspec.structs import asdict

from warplog.core.hashing import sha256_of
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal, Settings
from warplog.measure.results import Result
from warplog.measure.task import CaseRun, Task, Work
from warplog.measure.worker.case_data import SHARED_DATA
from warplog.metrics.occupancy import LIMITS, SmLimits
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.family_file import FamilyRecord
from warplog.records.fields import Status
from warplog.records.measured import Absent, Case, Measured, Session, worst

OfCase = TypeVar("OfCase", bound=Case)
Ran = TypeVar("Ran")
Entry = TypeVar("Entry", bound=Measured)


@dataclass(frozen=True)
class Part(Generic[Settings]):
    """What a stage does with one variant.

    Attributes:
        job: the variant's job.
        cases: names of its cases, including those that it does not support.
        refusal: status and reason if none of them is run.
        inputs_sha256: hash of everything that its entry depends on.
    """

    job: Job[Settings]
    cases: tuple[str, ...]
    refusal: Refusal | None = None
    inputs_sha256: str = ""

    @property
    def variant(self) -> str:
        """The variant's name."""
        return self.job.variant.name

    @cached_property
    def runnable(self) -> tuple[str, ...]:
        """The cases that a worker runs: the supported ones; none if the variant is refused."""
        return () if self.refusal else self.job.fitting(self.cases)

    def all_cases(self, kind: type[OfCase], ran: Mapping[str, OfCase]) -> tuple[OfCase, ...]:
        """Returns what the entry says of each case: of one that ran, its results; of another, why not."""
        return tuple(ran[c] if c in self.runnable else self._not_run(kind, c) for c in self.cases)

    def _not_run(self, kind: type[OfCase], case: str) -> OfCase:
        if self.refusal:
            return kind(case=case, status=self.refusal[0], reason=self.refusal[1])
        limits = self.job.variant.requires.own_limits(self.job.family.case(case))
        return kind(case=case, status="unsupported", reason=self.job.misfit(case), own_limits=limits)

    def outcome(self, cases: Sequence[Case]) -> Refusal:
        """Returns status and reason of the entry: those of the first supported case that is not ok.

        Skipped cases come last. Without a supported case, nothing is known of the variant, which then is unsupported.
        """
        if self.refusal:
            return self.refusal
        supported = [case for case in cases if case.status != "unsupported"]
        if cases and not supported:
            return "unsupported", f"it supports no case of this stage: {cases[0].case}: {cases[0].reason}"
        status = worst(case.status for case in supported)
        bad = next((case for case in supported if case.status == status != "ok"), None)
        return status, f"case {bad.case}: {bad.reason}" if bad else ""


class FamilyStage(ABC, Generic[Settings, Ran, Entry]):
    """A stage that measures variants of a family and writes an entry for each into the family's record file.

    Attributes:
        name: of the stage, or of its profiler.
        kind: type of the entries.
        any_board: whether an entry is valid on every board of the model. Otherwise a family that moves to another
            board is measured again as a whole, since ratios must not compare two boards.
    """

    name: ClassVar[str]
    kind: type[Entry]
    any_board: ClassVar[bool] = False

    @abstractmethod
    def part(self, job: Job[Settings]) -> Part[Settings]:
        """Returns what the stage does with the variant of a job, and runs nothing.

        Raises:
            WarplogError: A check or build record is missing or invalid.
        """

    @abstractmethod
    def measure(self, parts: Sequence[Part[Settings]]) -> Iterator[list[Entry]]:
        """Runs the parts and yields their entries, which are written before it goes on to remove its working files."""

    @abstractmethod
    def entry(self, part: Part[Settings], ran: Mapping[str, Ran], session: Session) -> Entry:
        """Returns the entry of a variant from what ran of it, by case (stage sanitize: by tool)."""

    def refused(self, part: Part[Settings]) -> Entry:
        """Returns the entry of a variant of which nothing is run."""
        return self.entry(part, {}, Session())

    def files(self, job: Job[Settings], entry: Entry) -> Sequence[Path]:
        """Returns the files beside the records that an entry refers to."""
        return ()

    def run(self, jobs: Sequence[Job[Settings]]) -> None:
        """Brings the entries of the jobs' variants up to date; those of other variants of the family are kept.

        Entries are written as soon as they are known, in the order of the family's variants.

        Raises:
            WarplogError: A record is missing, damaged or cannot be written, or a worker failed for a reason other than
                a kernel.
        """
        record = FamilyRecord.read_if_there(jobs[0].record, self.kind)
        parts = map(self.part, jobs)
        stale = [part for part in parts if not self.is_fresh(part, record.variants.get(part.variant))]
        refused = [self.refused(part) for part in stale if not part.runnable]
        runnable = [part for part in stale if part.runnable]
        names = [variant.name for variant in jobs[0].family.variants]
        for entries in chain([refused], self.measure(runnable) if runnable else ()):
            for entry in entries:
                record.put(entry)
            record.variants = {name: record.variants[name] for name in names if name in record.variants}
            record.write()

    def is_fresh(self, part: Part[Settings], entry: Entry | None) -> bool:
        """Returns whether the existing entry of a variant may be kept; it may not if the job's inputs are unknown."""
        job = part.job
        if entry is None or not job.inputs_sha256 or entry.inputs_sha256 != part.inputs_sha256:
            return False
        on_this_board = self.any_board or entry.provenance.gpu_uuid == job.gpu.uuid
        return on_this_board and all(file.is_file() for file in self.files(job, entry))

    def is_of(self, part: Part[Settings], entry: Entry) -> bool:
        """Returns whether an entry is about the same build, cases, settings and tool as a part; for `plan.rekey`."""
        job: Job[Settings] = part.job
        tool: Tool | None = getattr(self, "tool", None)
        cases = tuple(case if isinstance(case, str) else case.case for case in entry.cases)
        if (entry.source_sha256, entry.library_sha256, cases) != (*job.build.identity[:2], part.cases):
            return False
        if getattr(entry, "settings", job.settings) != job.settings:
            return False
        if part.refusal or entry.status in ("skipped", "missing"):
            return part.refusal == (entry.status, entry.reason)
        return tool is None or getattr(entry, "tool_version", "") == tool.version

    def _part(
        self, job: Job[Settings], cases: Sequence[str], refusal: Refusal | None, *own: object
    ) -> Part[Settings]:
        """Returns a part; `own` is what its entry depends on besides stage, build and the inputs of the job.

        By default: cases, refusal, and what family.yaml says of how the variant is measured.
        """
        own = own or (cases, refusal, (dict(job.variant.memory), job.family.measuring))
        key = sha256_of(self.name, job.inputs_sha256, job.build.identity, *own)
        return Part(job, tuple(cases), refusal, key)


@dataclass(frozen=True)
class AfterCheck(FamilyStage[Settings, Ran, Entry]):
    """A stage that runs variants which passed their check; `check` is the family's record of it."""

    check: Path

    @cached_property
    def _checks(self) -> Mapping[str, Check]:
        return FamilyRecord.read(self.check, Check).variants

    def check_of(self, job: Job[Settings]) -> Check | Absent:
        """Returns the check of the job's variant."""
        missing = Absent(status="missing", reason=f"not in {self.check}")
        return self._checks.get(job.variant.name, missing)

    def refuse(self, job: Job[Settings]) -> Refusal | None:
        """Returns status and reason for not running a variant; None if this build passed its check."""
        check = self.check_of(job)
        if check.status in ("unsupported", "skipped"):
            return check.status, check.reason
        if check.status != "ok" or isinstance(check, Absent):
            return "skipped", f"its check has status {check.status}: {check.reason}"
        if check.library_sha256 != job.build.library_sha256:
            return "skipped", "its check belongs to another build; run the check again"
        return refuse(job)


def refuse(job: Job[Any]) -> Refusal | None:
    """Returns status and reason for not running a variant; None if its build can be run on the job's GPU."""
    if refusal := refuse_build(job.build):
        return refusal
    limits = LIMITS.get(job.gpu.compute_capability)
    if limits is None or _shared_bytes(job, limits) <= limits.shared_bytes_per_block:
        return None
    most_kb = limits.shared_bytes_per_block / 1000
    return "unsupported", f"cannot be launched: a block has at most {most_kb:.3g} kB of shared memory"


def _shared_bytes(job: Job[Any], sm: SmLimits) -> int:
    """Returns the least shared memory that a block of the variant's largest kernel requests.

    Which kernel gets the dynamic shared memory of family.yaml is unknown; that of Triton's kernels is in the build.
    """
    kernels = job.build.kernels
    static = min((kernel.static_shared_bytes for kernel in kernels), default=0)
    own = [kernel.static_shared_bytes + (kernel.dynamic_shared_bytes or 0) for kernel in kernels]
    return max(static + job.variant.dynamic_shared_bytes(sm), *own, 0)


def refuse_build(build: Build) -> Refusal | None:
    """Returns status and reason for not running a build; None if it can be run."""
    if build.status == "ok":
        return None
    status: Status = "unsupported" if build.status == "unsupported" else "skipped"
    return status, f"its build has status {build.status}: {build.reason}"


def family_task(
    parts: Sequence[Part[Any]],
    work: Work,
    runs: Sequence[CaseRun] | None = None,
    timer: Path | None = None,
    wrapper: tuple[str, ...] = (),
) -> Task:
    """Returns one task for several variants of a family.

    Args:
        parts: the variants.
        work: what the worker does.
        runs: what to run, in order. By default, the runnable cases of one variant after the other or, if the variants
            share the inputs of a case, of all variants case by case.
        timer: the compiled timing core; None if nothing is timed.
        wrapper: command to run the worker under, such as a profiler.
    """
    first, jobs = parts[0].job, [part.job for part in parts]
    if runs is None:
        runs = [CaseRun(variant=part.variant, case=case) for part in parts for case in part.runnable]
        if work.mode in SHARED_DATA:
            order = [*first.family.cases, *first.family.check_cases]
            runs = sorted(runs, key=lambda run: order.index(run.case))
    return Task(
        work=work,
        backend=first.backend,
        family_file=str(first.family.file),
        libraries={job.variant.name: str(job.library) for job in jobs},
        library_sha256=sha256_of({job.variant.name: job.build.library_sha256 for job in jobs}),
        runs=tuple(runs),
        folder=str(first.scratch.with_name(f".{first.family.name}.{work.mode}.work")),
        memory={job.variant.name: dict(job.variant.memory) for job in jobs},
        timer=str(timer or ""),
        default_mhz=first.gpu.max_sm_mhz,
        wrapper=wrapper,
        environment=first.gpu.environment,
        gpu_lock=first.gpu.uuid,
    )


def by_case(results: Sequence[Result], kind: type[OfCase], variant: str) -> dict[str, OfCase]:
    """Returns what an entry says of the cases of a variant that ran."""
    return {result.run.case: measured(kind, result) for result in results if result.run.variant == variant}


def measured(kind: type[OfCase], result: Result, **more: Any) -> OfCase:
    """Returns what an entry says of a case that ran; `kind` has the fields of what was found, and `more`."""
    found = asdict(result.found) if result.found else {}
    case, status, reason = result.run.case, result.status, result.reason
    return kind(case=case, status=status, reason=reason, seconds=result.seconds, **found, **more)
