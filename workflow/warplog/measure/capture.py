"""Stage profile: one ncu and one nsys session per family, each over the captured cases of all its variants."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warplog.core import paths
from warplog.core.errors import TEMPORARY, WarplogError, fullest, progress
from warplog.core.hashing import sha256_of
from warplog.core.process import explain_exit, minimal_env, run
from warplog.core.records import FamilyRecord, Record, worst
from warplog.machine.toolchain import Tool
from warplog.measure.job import Job, family_task, keep, own_results, proofs, refuse_unproven
from warplog.measure.supervise import discard, run_cases
from warplog.metrics import counters_to_collect
from warplog.parsers.ncu.source import SAMPLING

_EXPORT_S = 300
_BREAKS = ("crashed", "timeout")
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

    name: str
    tool: Tool
    suffix: str
    wrapper: tuple[str, ...]
    partial: Path
    finish: Callable[[], Path]


class _Capture:
    """One variant in a session: its cases, and the status and reason if it cannot be captured."""

    def __init__(self, job: Job, profiler: _Profiler, check: Record, cases: Sequence[str]) -> None:
        self.job, self.cases = job, tuple(cases)
        self.status, self.reason = _may_capture(job, profiler, check)
        if self.status == "ok" and not self.fitting:
            self.status, self.reason = (
                "unsupported",
                job.misfit(self.cases[0]) if cases else "no cases to capture",
            )
        made_by = profiler.tool.version, profiler.wrapper[:-1]
        inputs = (self.status, self.reason, *made_by, dict(job.variant.memory))
        self.inputs_sha256 = sha256_of(profiler.name, job.inputs_sha256, job.build, self.cases, inputs)

    @property
    def fitting(self) -> tuple[str, ...]:
        """The cases that the variant supports."""
        return self.job.fitting(self.cases)

    def is_fresh(self, folder: Path) -> bool:
        """Returns whether the existing record has these inputs and its report exists in `folder`."""
        if not self.job.is_fresh(self.inputs_sha256):
            return False
        report = self.job.former.get("report", "")
        return not report or (folder / report).is_file()


def capture_ncu(jobs: Sequence[Job], check: Path, tool: Tool, cases: Mapping[str, Sequence[str]]) -> None:
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
    metrics = "tensor" if jobs[0].family.probes else jobs[0].settings["metrics"]
    command = ncu_command(tool, partial, metrics, jobs[0].gpu.compute_capability)
    profiler = _Profiler("ncu", tool, ".ncu-rep", tuple(command), partial, lambda: partial)
    _capture_family(jobs, check, profiler, cases)


def capture_nsys(jobs: Sequence[Job], check: Path, tool: Tool, cases: Mapping[str, Sequence[str]]) -> None:
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
    jobs: Sequence[Job],
    check: Path,
    profiler: _Profiler,
    cases: Mapping[str, Sequence[str]],
) -> None:
    """Captures every variant whose inputs changed, then deletes reports that no record refers to."""
    folder = paths.captures(jobs[0].record)
    folder.mkdir(parents=True, exist_ok=True)
    made: list[Record] = []
    stale = []
    for job, proof in zip(jobs, proofs(check, jobs), strict=True):
        one = _Capture(job, profiler, proof, cases[job.variant.name])
        if one.is_fresh(folder):
            continue
        if one.status == "ok":
            stale.append(one)
        else:
            _show(one.job, profiler, one.status, one.reason)
            made.append(_record(one, profiler, one.status, one.reason))
    keep(jobs[0], made)
    while stale:
        records, stale = _session(stale, profiler, folder)
        keep(jobs[0], records)
    named = {record.get("report") for record in FamilyRecord.read(jobs[0].record).variants.values()}
    for report in folder.glob(f"session-*{profiler.suffix}"):
        if report.name not in named:
            report.unlink()


def _may_capture(job: Job, profiler: _Profiler, check: Record) -> tuple[str, str]:
    refusal = refuse_unproven(check, job.build)
    if refusal is not None:
        return refusal
    if profiler.name not in job.family.measuring.profilers:
        return "skipped", f"n/a: {profiler.name} cannot observe what this family measures"
    if not job.settings[profiler.name]:
        return "skipped", f"config: profile.{profiler.name} is off"
    if profiler.tool.path is None:
        return "missing", f"{profiler.name} was not found; {profiler.tool.remedy}"
    return "ok", ""


def _session(
    parts: Sequence[_Capture], profiler: _Profiler, folder: Path
) -> tuple[list[Record], list[_Capture]]:
    """Runs one session; returns records, and if a variant broke the session, the other parts to capture again."""
    first = parts[0].job
    settings = {"tool": profiler.name, "launches": first.settings["launches"]}
    pairs = [(part.job, part.fitting) for part in parts]
    task = family_task(pairs, "capture", settings, wrapper=profiler.wrapper)
    # One folder per profiler, since both captures of a family may run, one of them waiting for the GPU.
    task = replace(task, folder=task.folder.with_name(f".{first.family.name}.{profiler.name}.work"))
    discard(task.folder)  # an interrupted capture cannot be resumed
    profiler.partial.unlink(missing_ok=True)  # else its report could be taken for this session's
    digest = sha256_of([part.inputs_sha256 for part in parts])[:12]
    report = folder / f"session-{digest}{profiler.suffix}"
    try:
        show = first.progress(profiler.name, len(task.cases))
        timeout_s = first.settings["timeout_s"]
        found, session = run_cases(task, timeout_s, show, ("crashed", "timeout"), stop_all=True)
        broken = [one for one in parts if any(r["status"] in _BREAKS for r in _of(one, found))]
        if not broken:
            shutil.move(profiler.finish(), report)
    except (WarplogError, OSError) as error:
        status, reason = _diagnose(task.folder / "worker.log", str(error))
        _show(first, profiler, status, reason)
        return [_record(one, profiler, status, reason) for one in parts], []
    finally:
        discard(task.folder)
    records = []
    for one in broken or parts:
        results = _of(one, found)
        records.append(
            _record(one, profiler, *_over_cases(results), results, session, "" if broken else report.name)
        )
    return records, [one for one in parts if one not in broken] if broken else []


def _of(one: _Capture, found: Sequence[Record]) -> list[Record]:
    return list(own_results(one.job.variant.name, found).values())


def _record(
    one: _Capture,
    profiler: _Profiler,
    status: str,
    reason: str,
    results: Sequence[Record] = (),
    session: Record | None = None,
    report: str = "",
) -> Record:
    job, by_case = one.job, {r["case"]: r for r in results}
    cases = [job.entry(c, by_case, None if by_case else (status, reason)) for c in one.cases]
    return {
        **job.head("profile", job.build, session or {}),
        "tool": profiler.name,
        "tool_version": profiler.tool.version or "",
        "command": [Path(w).name if i == 0 else w for i, w in enumerate(profiler.wrapper)],
        "status": status,
        "reason": reason,
        "report": report if status == "ok" else "",
        "session": session or {},
        "cases": cases,
        "inputs_sha256": one.inputs_sha256,
    }


def _show(job: Job, profiler: _Profiler, status: str, reason: str) -> None:
    label = f"{job.family.name}/{job.variant.name}"
    progress(f"  {profiler.name:7} {label}  {status}  {reason}", status)


def _over_cases(results: Sequence[Record]) -> tuple[str, str]:
    """Returns status and reason of a record: ok if any case was captured; each case has its own status."""
    bad = [r for r in results if r["status"] != "ok"]
    if len(bad) < len(results):
        return "ok", ""
    return worst(r["status"] for r in bad), f"case {bad[0]['case']}: {bad[0]['reason']}"


def _diagnose(log: Path, error: str) -> tuple[str, str]:
    text = log.read_text(errors="replace") if log.is_file() else ""
    if "No space left on device" in text + error:
        raise WarplogError(f"{log}: the disk is full ({fullest(log, TEMPORARY)}); free space and run again")
    if _DENIED in text or _DENIED in error:
        return "denied", _DENIED_REMEDY + (_OR_BUSY if _BUSY in text else "")
    errors = [w.strip() for w in text.splitlines() if "==ERROR==" in w and "application returned" not in w]
    return "error", " ".join((errors[0] if errors else error).split())[:500]
