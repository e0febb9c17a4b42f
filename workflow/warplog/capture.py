"""Stage profile: one ncu session and one nsys session a variant, each over all its captured cases."""

import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplog.errors import WarplogError
from warplog.gpu_lock import hold
from warplog.jobs import Job, refuse_unproven
from warplog.metrics import counters_to_collect
from warplog.parsers.ncu_source import SAMPLING
from warplog.process import explain_exit, minimal_env, run
from warplog.records import Record, read_json, worst, write_json
from warplog.supervise import discard, run_cases
from warplog.toolchain import Tool

_EXPORT_S = 300
_DENIED = "ERR_NVGPUCTRPERM"
_DENIED_REMEDY = (
    "counters are not permitted; as root, or with NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module"
    " (`warplog doctor` says how)"
)


@dataclass(frozen=True)
class _Profiler:
    """A profiler at work: its command before the worker's, and what makes its output the wanted file."""

    name: str
    tool: Tool
    wrapper: tuple[str, ...]
    finish: Callable[[], Path]


def capture_ncu(job: Job, check_record: Path, tool: Tool, report: Path, cases: tuple[str, ...]) -> Record:
    """Counters of one launch per case into `report` (.ncu-rep); the file is empty where there is none."""
    partial = report.with_name(f".{report.stem}.part.ncu-rep")
    # No probe of the oracle needs the dear counters, and it has many cases.
    metrics = "tensor" if job.family.probes else job.settings["metrics"]
    command = ncu_command(tool, partial, metrics, job.gpu.compute_capability)
    return _capture(job, check_record, _Profiler("ncu", tool, tuple(command), lambda: partial), report, cases)


def capture_nsys(job: Job, check_record: Path, tool: Tool, report: Path, cases: tuple[str, ...]) -> Record:
    """The timeline of back-to-back launches into `report` (SQLite); the file is empty where there is none."""
    partial = report.with_name(f".{report.stem}.part.nsys-rep")

    def export() -> Path:
        database = partial.with_suffix(".sqlite")
        command = [str(tool.path), "export", "-t", "sqlite", "-f", "true", "-o", str(database), str(partial)]
        done = run(command, timeout_s=_EXPORT_S, env=minimal_env())
        partial.unlink(missing_ok=True)
        if not done.ok or not database.is_file():
            words = " ".join(done.output_tail.split())[-300:]
            raise WarplogError(f"nsys export failed ({explain_exit(done)}): {words}")
        return database

    profiler = _Profiler("nsys", tool, tuple(nsys_command(tool, partial)), export)
    return _capture(job, check_record, profiler, report, cases)


def ncu_command(tool: Tool, output: Path, metrics: str, compute_capability: tuple[int, int]) -> list[str]:
    """ncu with clocks and caches as measuring wants them: clocks untouched, every pass from a cold L2."""
    wanted = counters_to_collect(metrics if metrics in ("lean", "tensor") else "full", compute_capability)
    sections = metrics == "sections"
    options = {
        "--config-file": "off",
        "--target-processes": "application-only",
        "--profile-from-start": "off",
        "--clock-control": "none",
        "--cache-control": "all",
        "--import-source": "yes" if sections else "no",
        "--metrics": ",".join((*wanted, SAMPLING)),
        "-o": str(output.with_suffix("")),
    }
    flat = [word for pair in options.items() for word in pair]
    return [str(tool.path), "-f", "--nvtx", *flat, *(["--set", "full"] if sections else [])]


def nsys_command(tool: Tool, output: Path) -> list[str]:
    """nsys for CUDA and NVTX only."""
    options = ["-t", "cuda,nvtx", "-s", "none", "--cpuctxsw=none", "-f", "true", "-o", str(output)]
    return [str(tool.path), "profile", *options]


def _capture(
    job: Job, check_record: Path, profiler: _Profiler, report: Path, cases: tuple[str, ...]
) -> Record:
    name = profiler.name
    build = job.build
    status, reason = _may_capture(job, profiler, read_json(check_record, "record"), build)
    results: list[Record] = []
    session: Record = {}
    report.parent.mkdir(parents=True, exist_ok=True)
    if status == "ok":
        status, reason, results, session = _run(job, profiler, report, cases)
    if status != "ok":
        report.write_bytes(b"")
        print(
            f"  {name:7} {job.family.name}/{job.variant.name}  {status}  {reason}",
            file=sys.stderr,
            flush=True,
        )
    record = {
        **job.head("profile", build, session),
        "tool": name,
        "tool_version": profiler.tool.version or "",
        "command": [Path(w).name if i == 0 else w for i, w in enumerate(profiler.wrapper)],
        "status": status,
        "reason": reason,
        "cases": results or [{"case": c, "status": status, "reason": reason} for c in cases],
    }
    write_json(job.record, record, "record")
    return record


def _may_capture(job: Job, profiler: _Profiler, check: Record, build: Record) -> tuple[str, str]:
    refusal = refuse_unproven(check, build)
    if refusal is not None:
        return refusal
    if not job.settings[profiler.name]:
        return "skipped", f"config: profile.{profiler.name} is off"
    if profiler.tool.path is None:
        return "missing", f"{profiler.name} was not found; {profiler.tool.remedy}"
    return "ok", ""


def _run(
    job: Job, profiler: _Profiler, report: Path, cases: tuple[str, ...]
) -> tuple[str, str, list[Record], Record]:
    """Status, reason, the cases' results and the worker's notes; `report` holds the capture where it is ok."""
    settings = {"tool": profiler.name, "launches": job.settings["launches"]}
    fitting = job.fitting(cases)
    if not fitting:
        return "unsupported", job.misfit(cases[0]), [], {}
    task = job.task("capture", fitting, settings, wrapper=profiler.wrapper)
    discard(task.folder)  # a cut capture cannot be continued: it starts afresh
    try:
        with hold(job.gpu.uuid):
            say = job.progress(profiler.name, len(fitting))
            found, session = run_cases(task, job.settings["timeout_s"], say, ("crashed", "timeout"))
            shutil.move(profiler.finish(), report)
    except (WarplogError, OSError) as error:
        return *_diagnose(task.folder / "worker.log", str(error)), [], {}
    finally:
        discard(task.folder)
    results = {r["case"]: r for r in found}
    return *_over_cases(found), [job.entry(c, results, None) for c in cases], session


def _over_cases(results: Sequence[Record]) -> tuple[str, str]:
    """ok where any case was captured: the others say in their own entries what went wrong."""
    bad = [r for r in results if r["status"] != "ok"]
    if len(bad) < len(results):
        return "ok", ""
    return worst(r["status"] for r in bad), f"case {bad[0]['case']}: {bad[0]['reason']}"


def _diagnose(log: Path, error: str) -> tuple[str, str]:
    text = log.read_text(errors="replace") if log.is_file() else ""
    if _DENIED in text or _DENIED in error:
        return "denied", _DENIED_REMEDY
    said = [line.strip() for line in text.splitlines() if "==ERROR==" in line]
    return "error", " ".join((said[0] if said else error).split())[:500]
