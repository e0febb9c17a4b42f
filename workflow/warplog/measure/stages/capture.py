"""Stage profile: one ncu and one nsys session per family, each over the captured cases of all its variants."""

import shutil
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from msgspec import structs

from warplog.core import paths
from warplog.core.errors import TEMPORARY, WarplogError, fullest
from warplog.core.hashing import sha256_of
from warplog.core.process import explain_exit, minimal_env, run
from warplog.machine import wsl
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, Refusal
from warplog.measure.progress import show_results, show_variant
from warplog.measure.stages.family_stage import AfterCheck, Part, by_case, family_task
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import CaptureWork
from warplog.metrics import counters_to_collect
from warplog.parsers.ncu.source import SAMPLING
from warplog.records import fields
from warplog.records.config import ProfileSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Session
from warplog.records.profile import CapturedCase, Profile

_EXPORT_S = 300
_DENIED = "ERR_NVGPUCTRPERM"
_BUSY = "driver resource was unavailable"
_OR_BUSY = ", or another tool such as DCGM is using them (`dcgmi profile --pause`)"
_DENIED_REMEDY = "run as root or set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module"


@dataclass(frozen=True)
class CaptureStage(AfterCheck[ProfileSettings, CapturedCase, Profile]):
    """Sessions of a profiler over all variants; its reports are in a folder beside the records (paths.captures)."""

    tool: Tool
    captured: Mapping[str, Sequence[str]]
    name: ClassVar[fields.Tool]
    suffix: ClassVar[str]
    kind = Profile

    @abstractmethod
    def command(self, job: Job[ProfileSettings]) -> tuple[str, ...]:
        """Returns the command of the profiler, to put in front of the worker's command; its output is the last word."""

    def finish(self, output: Path) -> Path:
        """Turns the output of the profiler into the report to keep and returns its path."""
        return output

    def part(self, job: Job[ProfileSettings]) -> Part[ProfileSettings]:
        """Returns what is done with a variant: its captured cases, if the profiler is there and can observe them."""
        cases, refusal = tuple(self.captured[job.variant.name]), self.refuse(job)
        outcome = refusal or ("ok", "")
        made_by = self.tool.version, self.command(job)[:-1], dict(job.variant.memory)
        return self._part(job, cases, refusal, cases, (*outcome, *made_by))

    def refuse(self, job: Job[ProfileSettings]) -> Refusal | None:
        """Returns status and reason for not capturing a variant; None if it is captured."""
        if refusal := super().refuse(job):
            return refusal
        if refusal := unobservable(self.name, job):
            return refusal
        if not getattr(job.settings, self.name):
            return "skipped", f"config: profile.{self.name} is off"
        if self.tool.path is None:
            return "missing", f"{self.name} was not found; {self.tool.remedy}"
        cases = self.captured[job.variant.name]
        if not job.fitting(cases):
            return "unsupported", job.misfit(cases[0]) if cases else "no cases to capture"
        return None

    def files(self, job: Job[ProfileSettings], entry: Profile) -> Sequence[Path]:
        """Returns the report of an entry."""
        return [paths.captures(job.record) / entry.report] if entry.report else []

    def refused(self, part: Part[ProfileSettings]) -> Profile:
        """Returns the entry of a variant of which nothing is captured, and prints why."""
        entry = super().refused(part)
        show_variant(self.name, part.job.family, part.variant, entry.status, entry.reason)
        return entry

    def run(self, jobs: Sequence[Job[ProfileSettings]]) -> None:
        """Brings the entries up to date, then deletes reports that no entry refers to."""
        record, folder = jobs[0].record, paths.captures(jobs[0].record)
        folder.mkdir(parents=True, exist_ok=True)
        super().run(jobs)
        named = {entry.report for entry in FamilyRecord.read(record, Profile).variants.values()}
        for report in folder.glob(f"session-*{self.suffix}"):
            if report.name not in named:
                report.unlink()

    def measure(self, parts: Sequence[Part[ProfileSettings]]) -> Iterator[list[Profile]]:
        """Captures all variants in one session; without those that broke it, the others are captured in the next."""
        left = list(parts)
        while left:
            entries = self._session(left)
            yield entries
            done = [entry.variant for entry in entries]
            left = [part for part in left if part.variant not in done]

    def _session(self, parts: Sequence[Part[ProfileSettings]], again: bool = True) -> list[Profile]:
        """Runs one session; returns the entries of all variants or, if some broke it, of these.

        nsys was seen to end without a report, once in hundreds of sessions; the session is then repeated once.
        """
        first = parts[0].job
        work = CaptureWork(tool=self.name, launches=first.settings.launches)
        task = family_task(parts, work, wrapper=self.command(first))
        # One folder per profiler, since both captures of a family may run, one of them waiting for the GPU.
        place = Path(task.folder).with_name(f".{first.family.name}.{self.name}.work")
        task = structs.replace(task, folder=str(place))
        discard(place)  # an interrupted capture cannot be resumed
        output = self.output(first)
        output.unlink(missing_ok=True)  # else its report could be taken for this session's
        report = output.with_name(f"session-{sha256_of([p.inputs_sha256 for p in parts])[:12]}{self.suffix}")
        try:
            show = show_results(self.name, first, len(task.runs))
            results, session = run_cases(task, first.settings.timeout_s, show, BREAKS, stop_all=True)
            broken = {result.run.variant for result in results if result.status in BREAKS}
            if not broken:
                if not output.is_file():
                    if again:
                        return self._session(parts, again=False)
                    raise WarplogError(f"{self.name} ended without a report")
                shutil.move(self.finish(output), report)
        except (WarplogError, OSError) as error:
            status, reason = diagnose(place / "worker.log", str(error))
            show_variant(self.name, first.family, parts[0].variant, status, reason)
            return [self.entry(replace(part, refusal=(status, reason)), {}, Session()) for part in parts]
        finally:
            discard(place)
        entries = [
            self.entry(part, by_case(results, CapturedCase, part.variant), session)
            for part in parts
            if not broken or part.variant in broken
        ]
        if broken:
            return entries
        return [structs.replace(e, report=report.name) if e.status == "ok" else e for e in entries]

    def output(self, job: Job[ProfileSettings]) -> Path:
        """Returns the file that the profiler writes."""
        return paths.captures(job.record) / f".part.{self.name}-rep"

    def entry(
        self, part: Part[ProfileSettings], ran: Mapping[str, CapturedCase], session: Session
    ) -> Profile:
        """Returns the capture of a variant: ok if any case was captured, since each case has its own status."""
        cases = part.all_cases(CapturedCase, ran)
        captured = any(case.status == "ok" for case in cases)
        outcome: Refusal = ("ok", "") if captured else part.outcome(cases)
        program, *options = self.command(part.job)
        return Profile(
            **part.job.head(session, outcome, part.inputs_sha256),
            tool=self.name,
            tool_version=self.tool.version or "",
            command=(Path(program).name, *options),
            cases=cases,
            session=session,
        )


class NcuStage(CaptureStage):
    """Nsight Compute captures the counters of one launch per case."""

    name = "ncu"
    suffix = ".ncu-rep"

    def command(self, job: Job[ProfileSettings]) -> tuple[str, ...]:
        """Returns the ncu command: clocks unchanged, caches flushed before every pass.

        It collects the set of counters that the configuration names: `lean`, `all`, or `sections` (all, and ncu's full
        section set). The oracle has many cases, and none of its probes needs expensive counters or source lines.
        """
        metrics = "tensor" if job.family.probes else job.settings.metrics
        counters = counters_to_collect(
            metrics if metrics in ("lean", "tensor") else "full", job.gpu.compute_capability
        )
        options = {
            "--config-file": "off",
            "--target-processes": "application-only",
            "--profile-from-start": "off",
            "--clock-control": "none",
            "--cache-control": "all",
            "--import-source": "yes" if metrics == "sections" else "no",
            "--metrics": ",".join(counters if metrics == "tensor" else (*counters, SAMPLING)),
            **({"--set": "full"} if metrics == "sections" else {}),
        }
        words = [word for pair in options.items() for word in pair]
        return (str(self.tool.path), "-f", "--nvtx", *words, "-o", str(self.output(job).with_suffix("")))


class NsysStage(CaptureStage):
    """Nsight Systems traces back-to-back launches: CUDA and NVTX only."""

    name = "nsys"
    suffix = ".nsys.sqlite"

    def command(self, job: Job[ProfileSettings]) -> tuple[str, ...]:
        """Returns the nsys command."""
        options = ("-t", "cuda,nvtx", "-s", "none", "--cpuctxsw=none", "-f", "true")
        return (str(self.tool.path), "profile", *options, "-o", str(self.output(job)))

    def finish(self, output: Path) -> Path:
        """Exports the output as a database."""
        database = output.with_suffix(".sqlite")
        options = ("-t", "sqlite", "-f", "true")
        command = [str(self.tool.path), "export", *options, "-o", str(database), str(output)]
        done = run(command, timeout_s=_EXPORT_S, env=minimal_env())
        output.unlink(missing_ok=True)
        if not done.ok or not database.is_file():
            tail = " ".join(done.output_tail.split())[-300:]
            raise WarplogError(f"nsys export failed ({explain_exit(done)}): {tail}")
        return database


def capture_ncu(
    jobs: Sequence[Job[ProfileSettings]], check: Path, tool: Tool, cases: Mapping[str, Sequence[str]]
) -> None:
    """Captures the counters of one launch per case, all variants in one session; see `FamilyStage.run`.

    A session that fails becomes entries with the reason, too.

    Args:
        jobs: the variants of one family.
        check: the family's check records.
        tool: ncu; if it was not found, the entries have status 'missing'.
        cases: names of the cases to capture, by variant.
    """
    NcuStage(check, tool, cases).run(jobs)


def capture_nsys(
    jobs: Sequence[Job[ProfileSettings]], check: Path, tool: Tool, cases: Mapping[str, Sequence[str]]
) -> None:
    """Traces back-to-back launches, all variants in one session; see `capture_ncu`."""
    NsysStage(check, tool, cases).run(jobs)


def unobservable(profiler: fields.Tool, job: Job[Any]) -> Refusal | None:
    """Returns status and reason if family.yaml says that a profiler cannot observe the variant; None if it can."""
    if profiler not in job.family.measuring.profilers:
        return "skipped", f"n/a: {profiler} cannot observe what this family measures"
    if profiler not in (job.variant.profilers or (profiler,)):
        return "skipped", f"n/a: {profiler} cannot observe what this variant launches"
    return None


def diagnose(log: Path, error: str) -> Refusal:
    """Returns status and reason of a session of ncu or nsys that failed, from its log.

    Raises:
        WarplogError: The disk is full.
    """
    text = log.read_text(errors="replace") if log.is_file() else ""
    if "No space left on device" in text + error:
        raise WarplogError(f"{log}: the disk is full ({fullest(log, TEMPORARY)}); free space and run again")
    if _DENIED in text or _DENIED in error:
        remedy = wsl.COUNTERS_REMEDY if wsl.is_wsl() else _DENIED_REMEDY
        or_busy = _OR_BUSY if _BUSY in text else ""
        return "denied", f"counters are not permitted; {remedy} (`warplog doctor` shows how){or_busy}"
    errors = [w.strip() for w in text.splitlines() if "==ERROR==" in w and "application returned" not in w]
    return "error", " ".join((errors[0] if errors else error).split())[:500]
