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
from warplog.measure.task import AccessWork
from warplog.measure.worker.access_case import trace_of
from warplog.measure.worker.encoding import stored_dtype
from warplog.metrics.occupancy import LIMITS, theoretical
from warplog.parsers import access_trace
from warplog.parsers.ncu.source import ACCESS_COUNTERS
from warplog.records.config import AccessSettings
from warplog.records.measured import Session
from warplog.records.requested.accesses import AccessCase, Accesses


@dataclass(frozen=True)
class AccessStage(AfterCheck[AccessSettings, AccessCase, Accesses]):
    """One launch of each variant on a small case; see `trace_accesses`."""

    tracer: Path
    ncu: Tool | None
    name = "accesses"
    kind = Accesses
    any_board = True

    @cached_property
    def _tracer_sha256(self) -> str:
        return sha256_file(self.tracer)

    def part(self, job: Job[AccessSettings]) -> Part[AccessSettings]:
        """Returns what is done with a variant: one case, unless its check failed."""
        case, refusal = job.family.traced_case(job.variant), self.refuse(job)
        if not refusal and (misfit := job.misfit(case)):
            refusal = "unsupported", misfit
        counted_by = self.ncu and self.ncu.version
        return self._part(job, [case], refusal, case, refusal, self._tracer_sha256, counted_by)

    def measure(self, parts: Sequence[Part[AccessSettings]]) -> Iterator[list[Accesses]]:
        """Traces all variants in one process, or several if some break theirs; then counts those that were traced."""
        first = parts[0].job
        work = AccessWork(
            tracer=str(self.tracer.absolute()),
            tracer_sha256=self._tracer_sha256,
            most_entries=first.settings.most_entries,
        )
        task = family_task(parts, work)
        environment = {**task.environment, "CUDA_INJECTION64_PATH": work.tracer}
        task = structs.replace(task, environment=environment)
        folder, part_of = Path(task.folder), {part.variant: part for part in parts}
        discard(
            folder
        )  # traces are read as soon as they are complete, so an interrupted run cannot be resumed
        show = show_results(self.name, first, len(task.runs))
        cases: dict[str, AccessCase] = {}

        def read_and_show(result: Result) -> None:
            cases[result.run.variant] = case = _with_trace(part_of[result.run.variant], result, folder)
            show(structs.replace(result, status=case.status, reason=case.reason))

        _, session = run_cases(task, first.settings.timeout_s, read_and_show, BREAKS)
        discard(folder)
        for part, case in self._counted(
            [part for part in parts if cases[part.variant].status == "ok"], cases
        ):
            cases[part.variant] = case
        yield [self.entry(part, {part.cases[0]: cases[part.variant]}, session) for part in parts]

    def entry(self, part: Part[AccessSettings], ran: Mapping[str, AccessCase], session: Session) -> Accesses:
        """Returns the accesses of a variant."""
        (case,) = part.all_cases(AccessCase, ran)
        return Accesses(
            **part.job.head(session, (case.status, case.reason), part.inputs_sha256),
            tracer_sha256=self._tracer_sha256,
            cases=(case,),
            session=session,
            settings=part.job.settings,
        )

    def _counted(
        self, traced: Sequence[Part[AccessSettings]], cases: Mapping[str, AccessCase]
    ) -> Iterator[tuple[Part[AccessSettings], AccessCase]]:
        """Yields the traced variants with what ncu counted, or why it did not: all that can be in one session.

        Without a variant that breaks the session, the others are counted in the next.
        """
        left = []
        for part in traced:
            if why_not := self._not_counted(part.job):
                yield part, _without_counters(cases[part.variant], why_not)
            else:
                left.append(part)
        while left:
            report = left[0].job.scratch.with_name(f".{left[0].job.family.name}.accesses.ncu-rep")
            report.unlink(missing_ok=True)
            outcomes = self._session(left, report)
            whole = not any(outcome[0] in BREAKS for outcome in outcomes.values())
            for part in left if whole else [part for part in left if outcomes[part.variant][0] in BREAKS]:
                case, outcome = cases[part.variant], outcomes[part.variant]
                yield part, _with_counters(case, part.variant, outcome, report)
            left = [] if whole else [part for part in left if outcomes[part.variant][0] not in BREAKS]
            report.unlink(missing_ok=True)

    def _not_counted(self, job: Job[AccessSettings]) -> Refusal | None:
        """Returns status and reason for not counting a variant; None if it is counted."""
        if self.ncu is None:
            return "skipped", "config: profile.ncu is off"
        if self.ncu.path is None:
            return "missing", f"ncu was not found; {self.ncu.remedy}"
        return unobservable("ncu", job)

    def _session(self, parts: Sequence[Part[AccessSettings]], report: Path) -> dict[str, Refusal]:
        """Runs one session of ncu; returns status and reason of each variant."""
        first = parts[0].job
        task = family_task(parts, AccessWork(), wrapper=self._command(report))
        folder = Path(task.folder).with_name(f".{first.family.name}.{self.name}.ncu.work")
        task = structs.replace(task, folder=str(folder))
        discard(folder)
        try:
            results, _ = run_cases(task, first.settings.timeout_s, lambda _: None, BREAKS, stop_all=True)
        except (WarplogError, OSError) as error:
            return dict.fromkeys(
                (part.variant for part in parts), diagnose(folder / "worker.log", str(error))
            )
        finally:
            discard(folder)
        return {result.run.variant: (result.status, result.reason) for result in results}

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


def _with_trace(part: Part[AccessSettings], result: Result, folder: Path) -> AccessCase:
    """Returns what the entry says of the case, with what its trace shows; deletes the trace."""
    trace = trace_of(folder, part.variant)
    cubins = sorted(folder.glob(f"{trace.name}.*.cubin"))
    try:
        if result.status != "ok":
            return measured(AccessCase, result)
        assert isinstance(result.found, Accessed)
        sources = [part.job.variant.file, *part.job.variant.headers()]
        arrays = _arrays(part.job, result.run.case, result.found)
        traced = accesses.read(trace, arrays, cubins, sources, _wave_blocks(part.job, trace))
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
            kind="output" if argument.kind in ("output", "inout") else "input",
        )
        for argument in family.arguments
        if argument.kind != "scalar"
    ]


def _wave_blocks(job: Job[AccessSettings], trace: Path) -> dict[str, int]:
    """Returns how many blocks of each kernel of the build are on the GPU at once."""
    limits = LIMITS.get(job.gpu.compute_capability)
    if limits is None or not job.gpu.sms:
        return {}
    threads = {kernel.mangled: prod(kernel.block) for kernel in access_trace.read(trace)}
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


def _with_counters(case: AccessCase, variant: str, outcome: Refusal, report: Path) -> AccessCase:
    if outcome[0] != "ok":
        return _without_counters(case, outcome)
    try:
        counted = accesses.with_counters(case.instructions or (), report, variant, case.case)
    except WarplogError as error:
        return _without_counters(case, ("error", str(error)))
    return structs.replace(case, instructions=counted, counted="ok")


def _without_counters(case: AccessCase, why_not: Refusal) -> AccessCase:
    status, reason = why_not
    return structs.replace(case, counted=status, counted_reason=reason)
