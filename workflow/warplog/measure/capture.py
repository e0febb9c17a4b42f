"""Stage profile: one ncu and one nsys session per family, each over the captured cases of all its variants."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from warplog.core import paths
from warplog.core.errors import TEMPORARY, WarplogError, fullest, progress
from warplog.core.hashing import sha256_of
from warplog.core.process import explain_exit, minimal_env, run
from warplog.machine.toolchain import Tool
from warplog.measure.job import (
    Job,
    Proof,
    Refusal,
    family_task,
    keep,
    measured,
    own_results,
    proofs,
    refuse_unproven,
)
from warplog.measure.results import Result
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import CaptureWork
from warplog.metrics import counters_to_collect
from warplog.parsers.ncu.source import SAMPLING
from warplog.records import door, fields
from warplog.records.config import ProfileSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.measured import Session, worst
from warplog.records.profile import CapturedCase, Profile

_EXPORT_S = 300
_DENIED = "ERR_NVGPUCTRPERM"
_BUSY = "driver resource was unavailable"
_OR_BUSY = ", or another tool such as DCGM is using them (`dcgmi profile --pause`)"
_DENIED_REMEDY = (
    "counters are not permitted; run as root or set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module"
    " (`warplog doctor` shows how)"
)


@dataclass(frozen=True)
class _Profiler:
    """A profiler for one session.

    Attributes:
        suffix: of the report that is kept.
        wrapper: command of the profiler, in front of the worker's.
        partial: the profiler's output file.
        finish: turns the output into the report to keep and returns its path.
    """

    name: fields.Tool
    tool: Tool
    suffix: str
    wrapper: tuple[str, ...]
    partial: Path
    finish: Callable[[], Path]


class _Capture:
    """One variant in a session: its cases, and the status and reason if it cannot be captured."""

    def __init__(
        self, job: Job[ProfileSettings], profiler: _Profiler, proof: Proof, cases: Sequence[str]
    ) -> None:
        self.job, self.cases = job, tuple(cases)
        self.fitting = job.fitting(cases)  # the cases that the variant supports
        self.status, self.reason = _may_capture(job, profiler, proof)
        if self.status == "ok" and not self.fitting:
            self.status, self.reason = (
                "unsupported",
                job.misfit(self.cases[0]) if cases else "no cases to capture",
            )
        made_by = profiler.tool.version, profiler.wrapper[:-1]
        inputs = (self.status, self.reason, *made_by, dict(job.variant.memory))
        build = door.plain(job.build)
        self.inputs_sha256 = sha256_of(profiler.name, job.inputs_sha256, build, self.cases, inputs)

    def is_fresh(self, folder: Path) -> bool:
        """Returns whether the existing record has these inputs and its report exists in `folder`."""
        former = self.job.former(Profile)
        if former is None or not self.job.is_fresh(Profile, self.inputs_sha256):
            return False
        return not former.report or (folder / former.report).is_file()


def capture_ncu(
    jobs: Sequence[Job[ProfileSettings]], check: Path, tool: Tool, cases: Mapping[str, Sequence[str]]
) -> None:
    """Captures the counters of one launch per case, all variants in one session; failures become records.

    The reports are stored in a folder beside the family's record file (paths.captures).

    Args:
        jobs: the variants of one family.
        check: the family's check records.
        tool: ncu; if it was not found, the records have status 'missing'.
        cases: names of the cases to capture, by variant.

    Raises:
        WarplogError: A check or build record is missing.
    """
    partial = paths.captures(jobs[0].record) / ".part.ncu-rep"
    # The oracle has many cases, and none of its probes needs the expensive counters or source lines.
    metrics = "tensor" if jobs[0].family.probes else jobs[0].settings.metrics
    command = ncu_command(tool, partial, metrics, jobs[0].gpu.compute_capability)
    profiler = _Profiler("ncu", tool, ".ncu-rep", tuple(command), partial, lambda: partial)
    _capture_family(jobs, check, profiler, cases)


def capture_nsys(
    jobs: Sequence[Job[ProfileSettings]], check: Path, tool: Tool, cases: Mapping[str, Sequence[str]]
) -> None:
    """Captures the timeline of back-to-back launches, all variants in one session; see `capture_ncu`."""
    partial = paths.captures(jobs[0].record) / ".part.nsys-rep"

    def export() -> Path:
        database = partial.with_suffix(".sqlite")
        command = [str(tool.path), "export", "-t", "sqlite", "-f", "true", "-o", str(database), str(partial)]
        done = run(command, timeout_s=_EXPORT_S, env=minimal_env())
        partial.unlink(missing_ok=True)
        if not done.ok or not database.is_file():
            output = " ".join(done.output_tail.split())[-300:]
            raise WarplogError(f"nsys export failed ({explain_exit(done)}): {output}")
        return database

    command = tuple(nsys_command(tool, partial))
    profiler = _Profiler("nsys", tool, ".nsys.sqlite", command, partial, export)
    _capture_family(jobs, check, profiler, cases)


def ncu_command(tool: Tool, output: Path, metrics: str, compute_capability: tuple[int, int]) -> list[str]:
    """Returns the ncu command: clocks unchanged, caches flushed before every pass, counters for `metrics`.

    Args:
        tool: ncu.
        output: the report to write.
        metrics: set of counters: "lean", "tensor", "all", or "sections" (all, and ncu's full section set).
        compute_capability: decides which counters exist.
    """
    counters = counters_to_collect(metrics if metrics in ("lean", "tensor") else "full", compute_capability)
    sections = metrics == "sections"
    options = {
        "--config-file": "off",
        "--target-processes": "application-only",
        "--profile-from-start": "off",
        "--clock-control": "none",
        "--cache-control": "all",
        "--import-source": "yes" if sections else "no",
        "--metrics": ",".join(counters if metrics == "tensor" else (*counters, SAMPLING)),
        "-o": str(output.with_suffix("")),
    }
    flat = [word for pair in options.items() for word in pair]
    return [str(tool.path), "-f", "--nvtx", *flat, *(["--set", "full"] if sections else [])]


def nsys_command(tool: Tool, output: Path) -> list[str]:
    """Returns the nsys command, which traces CUDA and NVTX only."""
    options = ["-t", "cuda,nvtx", "-s", "none", "--cpuctxsw=none", "-f", "true", "-o", str(output)]
    return [str(tool.path), "profile", *options]


def _capture_family(
    jobs: Sequence[Job[ProfileSettings]],
    check: Path,
    profiler: _Profiler,
    cases: Mapping[str, Sequence[str]],
) -> None:
    """Captures every variant whose inputs changed, then deletes reports that no record refers to."""
    folder = paths.captures(jobs[0].record)
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Profile] = []
    stale = []
    for job, proof in zip(jobs, proofs(check, jobs), strict=True):
        one = _Capture(job, profiler, proof, cases[job.variant.name])
        if one.is_fresh(folder):
            continue
        if one.status == "ok":
            stale.append(one)
        else:
            _show(one.job, profiler, one.status, one.reason)
            made.append(_record(one, profiler, (one.status, one.reason), {}, Session()))
    keep(jobs[0], Profile, made)
    while stale:
        records, stale = _session(stale, profiler, folder)
        keep(jobs[0], Profile, records)
    named = {record.report for record in FamilyRecord.read(jobs[0].record, Profile).variants.values()}
    for report in folder.glob(f"session-*{profiler.suffix}"):
        if report.name not in named:
            report.unlink()


def _may_capture(job: Job[ProfileSettings], profiler: _Profiler, proof: Proof) -> Refusal:
    refusal = refuse_unproven(proof, job.build)
    if refusal is not None:
        return refusal
    if profiler.name not in job.family.measuring.profilers:
        return "skipped", f"n/a: {profiler.name} cannot observe what this family measures"
    if not (job.settings.ncu if profiler.name == "ncu" else job.settings.nsys):
        return "skipped", f"config: profile.{profiler.name} is off"
    if profiler.tool.path is None:
        return "missing", f"{profiler.name} was not found; {profiler.tool.remedy}"
    return "ok", ""


def _session(
    parts: Sequence[_Capture], profiler: _Profiler, folder: Path
) -> tuple[list[Profile], list[_Capture]]:
    """Runs one session; returns records, and if a variant broke the session, the other parts to capture again."""
    first = parts[0].job
    work = CaptureWork(tool=profiler.name, launches=first.settings.launches)
    task = family_task([(part.job, part.fitting) for part in parts], work, wrapper=profiler.wrapper)
    # One folder per profiler, since both captures of a family may run, one of them waiting for the GPU.
    place = Path(task.folder).with_name(f".{first.family.name}.{profiler.name}.work")
    task = replace(task, folder=str(place))
    discard(place)  # an interrupted capture cannot be resumed
    profiler.partial.unlink(missing_ok=True)  # else its report could be taken for this session's
    digest = sha256_of([part.inputs_sha256 for part in parts])[:12]
    report = folder / f"session-{digest}{profiler.suffix}"
    try:
        show = first.progress(profiler.name, len(task.runs))
        found, session = run_cases(task, first.settings.timeout_s, show, BREAKS, stop_all=True)
        results = {part.job.variant.name: own_results(part.job.variant.name, found) for part in parts}
        broken = [part for part in parts if _is_broken(results[part.job.variant.name])]
        if not broken:
            shutil.move(profiler.finish(), report)
    except (WarplogError, OSError) as error:
        status, reason = _diagnose(place / "worker.log", str(error))
        _show(first, profiler, status, reason)
        return [_record(one, profiler, (status, reason), {}, Session()) for one in parts], []
    finally:
        discard(place)
    name = "" if broken else report.name
    records = [
        _record(one, profiler, None, results[one.job.variant.name], session, name) for one in broken or parts
    ]
    return records, [one for one in parts if one not in broken] if broken else []


def _is_broken(results: Mapping[str, Result]) -> bool:
    return any(one.status in BREAKS for one in results.values())


def _record(
    one: _Capture,
    profiler: _Profiler,
    refusal: Refusal | None,
    results: Mapping[str, Result],
    session: Session,
    report: str = "",
) -> Profile:
    """Returns the record of a variant: that it is refused, or its results by case."""
    job, (status, reason) = one.job, refusal or _over_cases(results)
    return Profile(
        **job.head(session),
        status=status,
        reason=reason,
        inputs_sha256=one.inputs_sha256,
        tool=profiler.name,
        tool_version=profiler.tool.version or "",
        command=(Path(profiler.wrapper[0]).name, *profiler.wrapper[1:]),
        report=report if status == "ok" else "",
        cases=tuple(
            job.not_run(CapturedCase, case, refusal) or measured(CapturedCase, results[case])
            for case in one.cases
        ),
        session=session,
    )


def _show(job: Job[ProfileSettings], profiler: _Profiler, status: str, reason: str) -> None:
    label = f"{job.family.name}/{job.variant.name}"
    progress(f"  {profiler.name:7} {label}  {status}  {reason}", status)


def _over_cases(results: Mapping[str, Result]) -> Refusal:
    """Returns status and reason of a record: ok if any case was captured; each case has its own status."""
    bad = [one for one in results.values() if one.status != "ok"]
    if len(bad) < len(results):
        return "ok", ""
    return worst(one.status for one in bad), f"case {bad[0].run.case}: {bad[0].reason}"


def _diagnose(log: Path, error: str) -> Refusal:
    text = log.read_text(errors="replace") if log.is_file() else ""
    if "No space left on device" in text + error:
        raise WarplogError(f"{log}: the disk is full ({fullest(log, TEMPORARY)}); free space and run again")
    if _DENIED in text or _DENIED in error:
        return "denied", _DENIED_REMEDY + (_OR_BUSY if _BUSY in text else "")
    errors = [w.strip() for w in text.splitlines() if "==ERROR==" in w and "application returned" not in w]
    return "error", " ".join((errors[0] if errors else error).split())[:500]
