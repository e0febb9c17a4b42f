"""Measuring jobs: each is one stage of one variant on this machine's GPU; a family's jobs share a worker."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

from msgspec.structs import asdict

from warplog.catalog.family import Family, Variant, load_family
from warplog.core import paths
from warplog.core.errors import WarplogError, progress
from warplog.core.files import state_of
from warplog.core.hashing import sha256_of
from warplog.core.numbers import rate_unit
from warplog.measure import provenance
from warplog.measure.family_board import board_of
from warplog.measure.results import AtRest, Captured, Checked, Marked, Result, Sustained
from warplog.measure.task import CaseRun, Task, Work
from warplog.measure.worker.case_data import SHARED_DATA
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Campaign, Gpu
from warplog.records.check import Check
from warplog.records.family_file import FamilyRecord
from warplog.records.fields import Status
from warplog.records.measured import Case, Provenance, Session
from warplog.records.profile import Profile
from warplog.records.sanitize import Sanitize
from warplog.records.time import Time
from warplog.records.timeline import Timeline

Refusal = tuple[Status, str]  # status and reason
Settings = TypeVar("Settings")
Entry = TypeVar("Entry", Check, Sanitize, Time, Profile, Timeline)
OfCase = TypeVar("OfCase", bound=Case)


class Proof(NamedTuple):
    """What a variant's check says; status 'missing' if there is none."""

    status: Status
    reason: str
    library_sha256: str = ""


class Head(TypedDict):
    """What the records of all measuring stages share."""

    family: str
    variant: str
    gpu: str
    origin: Literal["live"]
    source_sha256: str
    library_sha256: str
    provenance: Provenance


def refuse_build(build: Build) -> Refusal | None:
    """Returns status and reason for not running a build; None if it can be run."""
    if build.status == "ok":
        return None
    status: Status = "unsupported" if build.status == "unsupported" else "skipped"
    return status, f"its build has status {build.status}: {build.reason}"


def refuse_unproven(proof: Proof, build: Build) -> Refusal | None:
    """Returns status and reason for not timing or capturing a variant; None if this build passed its check."""
    if proof.status in ("unsupported", "skipped"):
        return proof.status, proof.reason
    if proof.status != "ok":
        return "skipped", f"its check has status {proof.status}: {proof.reason}"
    if proof.library_sha256 != build.library_sha256:
        return "skipped", "its check belongs to another build; run the check again"
    return refuse_build(build)


def proofs(check: Path, jobs: Sequence["Job[Any]"]) -> list[Proof]:
    """Returns what the family's check record says of each job's variant.

    Raises:
        WarplogError: The file is missing or damaged.
    """
    checked = FamilyRecord.read(check, Check).variants
    found = (checked.get(job.variant.name) for job in jobs)
    missing = Proof("missing", f"not in {check}")
    return [Proof(one.status, one.reason, one.library_sha256) if one else missing for one in found]


@dataclass(frozen=True)
class Job(Generic[Settings]):
    """One stage of one variant on one GPU.

    Attributes:
        build_folder: contains the variant's kernel.so and build record.
        record: file with the family's records of this stage; the jobs of all its variants share it.
        scratch: folder of the journal while the job runs.
        settings: the stage's settings.
        tools: versions by tool, for the provenance.
        commit: commit of the checkout, for the provenance.
        campaign: name of the campaign.
        content_sha256: hash of code, kernels and configuration, for the provenance.
        backend: array library of the worker, see worker.backend.
        inputs_sha256: hash of the inputs besides the build; "" if unknown: then the variant is always measured.
    """

    family: Family
    variant: Variant
    gpu: Gpu
    build_folder: Path
    record: Path
    scratch: Path
    settings: Settings
    tools: Mapping[str, str | None]
    commit: str
    content_sha256: str
    backend: str = "cupy"
    inputs_sha256: str = ""
    campaign: str = ""

    @cached_property
    def build(self) -> Build:
        """The build record.

        Raises:
            WarplogError: It is missing or invalid.
        """
        return door.read(self.build_folder / "record.json", Build)

    @property
    def library(self) -> Path:
        """What the worker loads: the compiled library, or the module of a Python variant.

        Raises:
            WarplogError: The module differs from the one that was built.
        """
        if not self.variant.is_python:
            return self.build_folder / "kernel.so"
        if self.build.source_sha256 != self.variant.fingerprint():
            raise WarplogError(f"{self.variant.file}: it or a module that it imports changed; run again")
        return self.variant.file

    def misfit(self, case: str) -> str:
        """Returns why the variant does not support a case; '' if it does."""
        return self.variant.requires.why_not_case(self.family.case(case))

    def fitting(self, cases: Iterable[str]) -> tuple[str, ...]:
        """Returns the cases that the variant supports."""
        return tuple(c for c in cases if not self.misfit(c))

    def not_run(self, kind: type[OfCase], case: str, refusal: Refusal | None) -> OfCase | None:
        """Returns a record's entry for a case that is not run, with the reason; None if it is run."""
        if refusal is not None:
            return kind(case=case, status=refusal[0], reason=refusal[1])
        if misfit := self.misfit(case):
            limits = self.variant.requires.own_limits(self.family.case(case))
            return kind(case=case, status="unsupported", reason=misfit, own_limits=limits)
        return None

    def former(self, kind: type[Entry]) -> Entry | None:
        """Returns the variant's existing record; None if there is none."""
        return _records(self.record, kind, state_of(self.record)).get(self.variant.name)

    def is_fresh(self, kind: type[Entry], inputs_sha256: str, any_board: bool = False) -> bool:
        """Returns whether the existing record has these inputs and, unless `any_board`, is from this job's board.

        It is not if the job's inputs are unknown. Since a family's ratios must not compare two boards, a family that
        moves to another board is measured again as a whole.
        """
        former = self.former(kind)
        if former is None or not self.inputs_sha256 or former.inputs_sha256 != inputs_sha256:
            return False
        return any_board or former.provenance.gpu_uuid == self.gpu.uuid

    def head(self, session: Session, source_sha256: str = "") -> Head:
        """Returns what the records of all measuring stages share.

        Args:
            session: holds the worker's versions.
            source_sha256: the source, if the record is not about one build.
        """
        return {
            "family": self.family.name,
            "variant": self.variant.name,
            "gpu": self.gpu.slug,
            "origin": "live",
            "source_sha256": source_sha256 or self.build.source_sha256,
            "library_sha256": "" if source_sha256 else self.build.library_sha256,
            "provenance": provenance.of_job(self.gpu, self.tools, self.commit, self.content_sha256, session),
        }

    def progress(self, mode: str, total: int) -> Callable[[Result], None]:
        """Returns a function that prints a line per finished case: `check   sgemm/naive  4096  ok  ...  (6/7)`."""
        done = 0

        def show(result: Result) -> None:
            nonlocal done
            done += 1
            outcome = result.reason if result.status != "ok" else self._headline(result)
            line = f"  {mode:7} {self.family.name}/{result.run.variant}  {result.run.case}  {result.status}  {outcome}"
            progress(f"{line.rstrip()}  ({done}/{total})", result.status)

        return show

    def _headline(self, result: Result) -> str:
        match result.found:
            case Checked(max_error_over_tolerance=error):
                return f"error {error or 0.0:.2f} of the tolerance"
            case Sustained(run=run):
                return f"{run.mean_us:.4g} us sustained"
            case Marked(overhead=overhead):
                return f"overhead of the marks {overhead.overhead_pct:.2f} %"
            case Captured(launches=launches):
                return f"{launches} launch{'es' if launches > 1 else ''}"
            case AtRest(cold=cold, hot=hot):
                of_hot = f", {hot.median_us:.4g} us hot" if hot else ""
                return (
                    f"{cold.median_us:.4g} us at rest{of_hot}, {self._rate(result.run.case, cold.median_us)}"
                )
        return ""

    def _rate(self, case: str, rest_us: float) -> str:
        values = self.family.cases[case]
        flops = self.family.value(self.family.work.flops, values)
        work, unit = (
            (flops, "GFLOP/s") if flops else (self.family.value(self.family.work.bytes, values), "GB/s")
        )
        rate = work / max(rest_us, 1e-3) / 1e3
        unit, factor = rate_unit(unit, [rate])
        return f"{rate * factor:.4g} {unit}"


def measured(kind: type[OfCase], result: Result) -> OfCase:
    """Returns a record's entry for a case that was run; `kind` has the fields of what was found."""
    found = asdict(result.found) if result.found else {}
    return kind(
        case=result.run.case, status=result.status, reason=result.reason, seconds=result.seconds, **found
    )


def family_task(
    parts: Sequence[tuple[Job[Any], Sequence[str]]],
    work: Work,
    timer: Path | None = None,
    wrapper: tuple[str, ...] = (),
) -> Task:
    """Returns one task for the given cases of several variants of a family.

    Variants that passed their checks (mode capture) run case by case, so that they share the inputs of a case. In
    other modes, a variant's cases run one after the other.
    """
    family = parts[0][0].family
    runs = [CaseRun(variant=job.variant.name, case=case) for job, cases in parts for case in cases]
    if work.mode in SHARED_DATA:
        order = [*family.cases, *family.check_cases]
        runs.sort(key=lambda run: order.index(run.case))
    return task_of([job for job, _ in parts], runs, work, timer, wrapper)


def task_of(
    jobs: Sequence[Job[Any]],
    runs: Sequence[CaseRun],
    work: Work,
    timer: Path | None = None,
    wrapper: tuple[str, ...] = (),
) -> Task:
    """Returns one task for several variants of a family.

    Args:
        jobs: the variants' jobs.
        runs: what to run, in order.
        work: what the worker does.
        timer: the compiled timing core; None if nothing is timed.
        wrapper: command to run the worker under, such as a profiler.
    """
    first = jobs[0]
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


def own_results(variant: str, results: Sequence[Result]) -> dict[str, Result]:
    """Returns a variant's results by case, from the results of a family's task."""
    return {one.run.case: one for one in results if one.run.variant == variant}


def make_jobs(
    *,
    family_file: Path,
    variants: Sequence[str],
    gpu: str,
    builds: Sequence[Path],
    campaign: Path,
    settings: Settings,
    record: Path,
    inputs_sha256: str = "",
) -> list[Job[Settings]]:
    """Returns the jobs of one stage for variants of a family, on the board that measures it.

    Args:
        family_file: the family.yaml.
        variants: names of the variants, in the order in which they are measured.
        gpu: slug of the campaign's GPU, such as "h200"; this machine's GPU must have the same.
        builds: record.json of each variant's build, in the same order; kernel.so is beside it.
        campaign: the campaign record; provides the tools' versions, and the commit if the configuration names one or
            outside of a git checkout; the family's board is noted in its results folder.
        settings: the stage's settings.
        record: the family's record file of this stage. Its records with unchanged inputs are kept. Folders for
            unfinished work are created beside it.
        inputs_sha256: hash of the inputs that all variants share, such as settings, contract, campaign and code; a
            job's hash includes its variant's memory, too. "" if unknown: then all variants are measured.

    Raises:
        WarplogError: This machine has no GPU, another one or no free one, or family.yaml or the campaign record is
            invalid.
    """
    family = load_family(family_file)
    named = door.read(campaign, Campaign)
    found = board_of(family.name, gpu, campaign.parents[1])
    project = paths.project()
    commit = provenance.commit_in(named, project)
    content = provenance.content_sha256(project)
    return [
        Job(
            family=family,
            variant=family.variant(variant),
            gpu=found,
            build_folder=build.parent,
            record=record,
            scratch=record.with_name(f".{family.name}.{variant}.work"),
            settings=settings,
            tools=named.tools,
            commit=commit,
            content_sha256=content,
            campaign=named.campaign,
            inputs_sha256=inputs_sha256 and sha256_of(inputs_sha256, dict(family.variant(variant).memory)),
        )
        for variant, build in zip(variants, builds, strict=True)
    ]


def keep(job: Job[Any], kind: type[Entry], made: Iterable[Entry]) -> None:
    """Writes records of variants into the family's record file, `job.record`.

    Records of other variants stay in the file, unless the family no longer has the variant.

    Raises:
        WarplogError: A record does not fit its type, or the file is damaged or cannot be written.
    """
    together = FamilyRecord.read_if_there(job.record, kind)
    together.keep_only([variant.name for variant in job.family.variants])
    for one in made:
        together.put(one)
    together.write()


@lru_cache(maxsize=2)
def _records(path: Path, kind: type[Entry], _state: tuple[int, int]) -> Mapping[str, Entry]:
    """Returns the records in a file; cached until the file changes, since the jobs of all variants need it."""
    return FamilyRecord.read_if_there(path, kind).variants
