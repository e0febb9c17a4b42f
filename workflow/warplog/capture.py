"""Stage profile: one ncu session and one nsys session a variant, each over all its captured cases."""

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from warplog import provenance
from warplog.errors import WarplogError
from warplog.gpu_lock import hold
from warplog.measure import Job, progress, refuse
from warplog.metrics import counters_to_collect
from warplog.process import Completed, explain_exit, minimal_env, run
from warplog.records import SCHEMA_VERSION, Record, read_json, worst, write_json
from warplog.supervise import Task, discard, run_cases
from warplog.toolchain import Tool

_DENIED = "ERR_NVGPUCTRPERM"
_DENIED_REMEDY = (
    "counters are not permitted; as root, or with NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module"
    " (`warplog doctor` says how)"
)


def capture_ncu(job: Job, check_record: Path, tool: Tool, report: Path, cases: tuple[str, ...]) -> Record:
    """Counters of one launch per case into `report` (.ncu-rep); the file is empty where there is none."""
    partial = report.with_name(f".{report.stem}.part.ncu-rep")
    wrapper = ncu_command(tool, partial, job.settings["metrics"], job.gpu.compute_capability)
    return _capture(job, check_record, tool, "ncu", wrapper, partial, report, cases, lambda: partial)


def capture_nsys(job: Job, check_record: Path, tool: Tool, report: Path, cases: tuple[str, ...]) -> Record:
    """The timeline of back-to-back launches into `report` (SQLite); the file is empty where there is none."""
    partial = report.with_name(f".{report.stem}.part.nsys-rep")
    wrapper = nsys_command(tool, partial)

    def export() -> Path:
        database = partial.with_suffix(".sqlite")
        command = [str(tool.path), "export", "-t", "sqlite", "-f", "true", "-o", str(database), str(partial)]
        done = run(command, timeout_s=300, env=minimal_env())
        partial.unlink(missing_ok=True)
        if not done.ok or not database.is_file():
            raise WarplogError(f"nsys export failed ({explain_exit(done)}): {_end(done)}")
        return database

    return _capture(job, check_record, tool, "nsys", wrapper, partial, report, cases, export)


def ncu_command(tool: Tool, output: Path, metrics: str, compute_capability: tuple[int, int]) -> list[str]:
    """ncu with clocks and caches as measuring wants them: clocks untouched, every pass from a cold L2."""
    what = ["--set", "full"] if metrics == "full" else []
    what += ["--metrics", ",".join(counters_to_collect(compute_capability=compute_capability))]
    return [
        str(tool.path),
        "--config-file",
        "off",
        "-f",
        "-o",
        str(output.with_suffix("")),
        "--target-processes",
        "application-only",
        "--profile-from-start",
        "off",
        "--nvtx",
        "--clock-control",
        "none",
        "--cache-control",
        "all",
        "--import-source",
        "yes" if metrics == "full" else "no",
        *what,
    ]


def nsys_command(tool: Tool, output: Path) -> list[str]:
    """nsys for CUDA and NVTX only, between cudaProfilerStart and the process's end."""
    return [
        str(tool.path),
        "profile",
        "-t",
        "cuda,nvtx",
        "-s",
        "none",
        "--cpuctxsw=none",
        "-f",
        "true",
        "-o",
        str(output),
    ]


def _capture(
    job: Job,
    check_record: Path,
    tool: Tool,
    name: str,
    wrapper: Sequence[str],
    partial: Path,
    report: Path,
    cases: tuple[str, ...],
    finish: Callable[[], Path],
) -> Record:
    build = read_json(job.build_folder / "record.json", "record")
    status, reason = _may_capture(job, tool, name, read_json(check_record, "record"), build)
    results: list[Record] = []
    report.parent.mkdir(parents=True, exist_ok=True)
    partial.unlink(missing_ok=True)
    session: Record = {}
    if status == "ok":
        task = _task(job, name, wrapper, build, cases)
        discard(task.folder)  # a cut capture cannot be continued: it starts afresh
        try:
            with hold(job.gpu.uuid):
                limit, tell = job.settings["timeout_s"], progress(job, name, len(cases))
                results, session = run_cases(task, limit, tell, ("crashed", "timeout"))
                shutil.move(finish(), report)
        except (WarplogError, OSError) as error:
            status, reason = _diagnose(task.folder / "worker.log", str(error))
        else:
            status = worst(r["status"] for r in results)
            reason = next((f"case {r['case']}: {r['reason']}" for r in results if r["status"] == status != "ok"), "")
        discard(task.folder)
    if status != "ok":
        report.write_bytes(b"")
        print(f"  {name:7} {job.family.name}/{job.variant.name}  {status}  {reason}", file=sys.stderr, flush=True)
    record = {
        "schema": SCHEMA_VERSION,
        "stage": "profile",
        "family": job.family.name,
        "variant": job.variant.name,
        "gpu": job.gpu.slug,
        "tool": name,
        "tool_version": tool.version or "",
        "command": [Path(wrapper[0]).name, *wrapper[1:]],
        "status": status,
        "reason": reason,
        "origin": "live",
        "source_sha256": build["source_sha256"],
        "library_sha256": build.get("library_sha256", ""),
        "provenance": provenance.of_job(job.gpu, job.tools, job.commit, job.content_sha256, session),
        "cases": results or [{"case": c, "status": status, "reason": reason} for c in cases],
    }
    write_json(job.record, record, "record")
    return record


def _may_capture(job: Job, tool: Tool, name: str, check: Record, build: Record) -> tuple[str, str]:
    refusal = refuse(check, build)
    if refusal is not None:
        return refusal
    if not job.settings[name]:
        return "skipped", f"config: profile.{name} is off"
    if tool.path is None:
        return "missing", f"{name} was not found; {tool.remedy}"
    return "ok", ""


def _task(job: Job, name: str, wrapper: Sequence[str], build: Record, cases: tuple[str, ...]) -> Task:
    return Task(
        mode="capture",
        backend=job.backend,
        family_file=job.family.file,
        library=job.build_folder / "kernel.so",
        library_sha256=build["library_sha256"],
        cases=cases,
        folder=job.scratch,
        settings={"tool": name, "launches": job.settings["launches"]},
        wrapper=tuple(wrapper),
    )


def _diagnose(log: Path, error: str) -> tuple[str, str]:
    text = log.read_text(errors="replace") if log.is_file() else ""
    if _DENIED in text or _DENIED in error:
        return "denied", _DENIED_REMEDY
    said = [line.strip() for line in text.splitlines() if "==ERROR==" in line]
    return "error", " ".join((said[0] if said else error).split())[:500]


def _end(done: Completed) -> str:
    return " ".join(done.output_tail.split())[-300:]
