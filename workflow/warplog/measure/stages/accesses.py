"""Stage accesses: traces every memory access of one launch of each variant, and counts the same launch with ncu."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

from msgspec import structs

from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_file
from warplog.extract import accesses
from warplog.extract.accesses import ArrayPlace
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal
from warplog.measure.progress import show_results
from warplog.measure.results import Accessed, Result
from warplog.measure.stages.capture import diagnose, unobservable
from warplog.measure.stages.family_stage import AfterCheck, Part, family_task, measured
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import AccessWork, CaseRun
from warplog.measure.worker.access_case import trace_of
from warplog.measure.worker.encoding import stored_dtype
from warplog.metrics.occupancy import LIMITS, theoretical
from warplog.parsers import access_trace
from warplog.parsers.access_trace import TracedKernel
from warplog.parsers.ncu.source import ACCESS_COUNTERS
from warplog.records.config import AccessSettings
from warplog.records.measured import Session
from warplog.records.requested.accesses import AccessCase, Accesses


@dataclass(frozen=True)
class AccessStage(AfterCheck[AccessSettings, AccessCase, Accesses]):
    """One launch of each variant on small cases; see `trace_accesses`."""

    tracer: Path
    ncu: Tool | None
    name = "accesses"
    kind = Accesses
    any_board = True

    @cached_property
    def _tracer_sha256(self) -> str:
        return sha256_file(self.tracer)

    def part(self, job: Job[AccessSettings]) -> Part[AccessSettings]:
        """Returns what is done with a variant: its traced cases, unless its check failed."""
        cases, refusal = job.family.traced_cases(job.variant), self.refuse(job)
        if not refusal and not job.fitting(cases):
            refusal = "unsupported", job.misfit(cases[0])
        counted_by = self.ncu and self.ncu.version
        return self._part(job, cases, refusal, cases, refusal, self._tracer_sha256, counted_by)

    def measure(self, parts: Sequence[Part[AccessSettings]]) -> Iterator[list[Accesses]]:
        """Traces all variants in one process, or several if some break theirs; then counts those that were traced."""
        first, job_of = parts[0].job, {part.variant: part.job for part in parts}
        work = AccessWork(
            tracer=str(self.tracer.absolute()),
            tracer_sha256=self._tracer_sha256,
            most_entries=first.settings.most_entries,
        )
        task = family_task(parts, work)
        environment = {**task.environment, "CUDA_INJECTION64_PATH": work.tracer}
        task, folder = structs.replace(task, environment=environment), Path(task.folder)
        discard(
            folder
        )  # traces are read as soon as they are complete, so an interrupted run cannot be resumed
        show = show_results(self.name, first, len(task.runs))
        cases: dict[CaseRun, AccessCase] = {}

        def read_and_show(result: Result) -> None:
            cases[result.run] = case = _with_trace(job_of[result.run.variant], result, folder)
            show(structs.replace(result, status=case.status, reason=case.reason))

        _, session = run_cases(task, first.settings.timeout_s, read_and_show, BREAKS)
        discard(folder)
        self._count(parts, cases)
        for part in parts:
            ran = {run.case: case for run, case in cases.items() if run.variant == part.variant}
            yield [self.entry(part, ran, session)]

    def entry(self, part: Part[AccessSettings], ran: Mapping[str, AccessCase], session: Session) -> Accesses:
        """Returns the accesses of a variant."""
        cases = part.all_cases(AccessCase, ran)
        outcome = (cases[0].status, cases[0].reason) if len(cases) == 1 else part.outcome(cases)
        return Accesses(
            **part.job.head(session, outcome, part.inputs_sha256),
            tracer_sha256=self._tracer_sha256,
            cases=cases,
            session=session,
            settings=part.job.settings,
        )

    def _count(self, parts: Sequence[Part[AccessSettings]], cases: dict[CaseRun, AccessCase]) -> None:
        """Adds to the traced cases what ncu counted, or why it did not.

        All are in one session. Without a variant that breaks it, the others are counted in the next.
        """
        why_not = {part.variant: self._not_counted(part.job) for part in parts}
        left = []
        for run in [run for run, case in cases.items() if case.status == "ok"]:
            if refusal := why_not[run.variant]:
                cases[run] = _without_counters(cases[run], refusal)
            else:
                left.append(run)
        first = parts[0].job
        report = first.scratch.with_name(f".{first.family.name}.{self.name}.ncu-rep")
        while left:
            outcomes = self._session(parts, left, report)
            broken = {run.variant for run, (status, _) in outcomes.items() if status in BREAKS}
            done = [run for run in left if not broken or run.variant in broken]
            for run in done:
                cases[run] = _with_counters(cases[run], run, outcomes[run], report)
            left = [run for run in left if run not in done]
            report.unlink(missing_ok=True)

    def _not_counted(self, job: Job[AccessSettings]) -> Refusal | None:
        """Returns status and reason for not counting a variant; None if it is counted."""
        if self.ncu is None:
            return "skipped", "config: profile.ncu is off"
        if self.ncu.path is None:
            return "missing", f"ncu was not found; {self.ncu.remedy}"
        return unobservable("ncu", job)

    def _session(
        self, parts: Sequence[Part[AccessSettings]], runs: Sequence[CaseRun], report: Path
    ) -> dict[CaseRun, Refusal]:
        """Runs one session of ncu; returns status and reason of each case."""
        first = parts[0].job
        task = family_task(parts, AccessWork(), runs, wrapper=self._command(report))
        folder = Path(task.folder).with_name(f".{first.family.name}.{self.name}.ncu.work")
        task = structs.replace(task, folder=str(folder))
        discard(folder)
        try:
            results, _ = run_cases(task, first.settings.timeout_s, lambda _: None, BREAKS, stop_all=True)
        except (WarplogError, OSError) as error:
            return dict.fromkeys(runs, diagnose(folder / "worker.log", str(error)))
        finally:
            discard(folder)
        return {result.run: (result.status, result.reason) for result in results}

    def _command(self, report: Path) -> tuple[str, ...]:
        """Returns the ncu command: the counters of accesses by instruction, and no more."""
        assert self.ncu is not None
        options = {
            "--config-file": "off",
            "--target-processes": "application-only",
            "--profile-from-start": "off",
            "--clock-control": "none",
            "--cache-control": "none",
            "--import-source": "no",
            "--metrics": ",".join(ACCESS_COUNTERS),
        }
        words = [word for pair in options.items() for word in pair]
        return (str(self.ncu.path), "-f", "--nvtx", *words, "-o", str(report.with_suffix("")))


def trace_accesses(jobs: Sequence[Job[AccessSettings]], check: Path, tracer: Path, ncu: Tool | None) -> None:
    """Traces the memory accesses of the variants of one family whose checks passed; see `FamilyStage.run`.

    Args:
        jobs: the variants of one family.
        check: the family's check records.
        tracer: the library that traces.
        ncu: counts the same launches; None if the configuration does without counters.
    """
    AccessStage(check, tracer, ncu).run(jobs)


def _with_trace(job: Job[AccessSettings], result: Result, folder: Path) -> AccessCase:
    """Returns what the entry says of the case, with what its trace shows; deletes the trace."""
    trace = trace_of(folder, result.run)
    cubins = sorted(folder.glob(f"{trace.name}.*.cubin"))
    try:
        if result.status != "ok":
            return measured(AccessCase, result)
        assert isinstance(result.found, Accessed)
        sources = [job.variant.file, *job.variant.headers()]
        arrays = _arrays(job, result.run.case, result.found)
        kernels = access_trace.read(trace)
        traced = accesses.read(kernels, arrays, cubins, sources, _wave_blocks(job, kernels))
    except WarplogError as error:
        return measured(AccessCase, structs.replace(result, status="error", reason=str(error), found=None))
    finally:
        for file in (trace, *cubins):
            file.unlink(missing_ok=True)
    return AccessCase(
        case=result.run.case,
        status="ok",
        reason="",
        seconds=result.seconds,
        max_error_over_tolerance=result.found.max_error_over_tolerance,
        kernels=traced.kernels,
        instructions=traced.instructions,
        owners=traced.owners,
    )


def _arrays(job: Job[AccessSettings], case: str, found: Accessed) -> list[ArrayPlace]:
    family, values = job.family, job.family.case(case)
    return [
        ArrayPlace(
            name=argument.name,
            address=found.addresses[argument.name],
            shape=family.shape(argument, values),
            itemsize=stored_dtype(family.dtype(argument, values)).itemsize,
            is_output=argument.kind in ("output", "inout"),
        )
        for argument in family.arguments
        if argument.kind != "scalar"
    ]


def _wave_blocks(job: Job[AccessSettings], kernels: Sequence[TracedKernel]) -> dict[str, int]:
    """Returns how many blocks of each kernel of the build are on the GPU at once."""
    limits = LIMITS.get(job.gpu.compute_capability)
    if limits is None or not job.gpu.sms:
        return {}
    threads = {kernel.mangled: prod(kernel.block) for kernel in kernels}
    dynamic = job.variant.dynamic_shared_bytes(limits)
    return {
        kernel.mangled: job.gpu.sms
        * theoretical(
            kernel.registers_per_thread,
            threads[kernel.mangled],
            kernel.static_shared_bytes + (kernel.dynamic_shared_bytes or dynamic),
            job.gpu.compute_capability,
        ).blocks_per_sm
        for kernel in job.build.kernels
        if kernel.mangled in threads
    }


def _with_counters(case: AccessCase, run: CaseRun, outcome: Refusal, report: Path) -> AccessCase:
    if outcome[0] != "ok":
        return _without_counters(case, outcome)
    try:
        counted = accesses.with_counters(case.instructions or (), report, run.variant, run.case)
    except WarplogError as error:
        return _without_counters(case, ("error", str(error)))
    return structs.replace(case, instructions=counted, counted="ok")


def _without_counters(case: AccessCase, why_not: Refusal) -> AccessCase:
    status, reason = why_not
    return structs.replace(case, counted=status, counted_reason=reason)
