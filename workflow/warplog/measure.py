"""Stages check and time: they put a worker's case results into records and refuse what must not be measured."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog import device, provenance
from warplog.catalog import Family, Variant, load_family
from warplog.device import Gpu
from warplog.errors import WarplogError
from warplog.gpu_lock import hold
from warplog.provenance import commit_of
from warplog.records import SCHEMA_VERSION, Record, read_json, worst, write_json
from warplog.supervise import Task, discard, run_cases


@dataclass(frozen=True)
class Job:
    """One measuring job: what, on which GPU, from which build, into which record.

    Attributes:
        tools: versions by tool, for the provenance.
        scratch: folder of the journal while the job runs.
    """

    family: Family
    variant: Variant
    gpu: Gpu
    build_folder: Path
    record: Path
    scratch: Path
    settings: Mapping[str, Any]
    tools: dict[str, str]
    commit: str
    content_sha256: str
    backend: str = "cupy"


def make_job(
    *, family_file: Path, variant: str, gpu: str, build: Path, campaign: Path, settings: Mapping[str, Any], record: Path
) -> Job:
    """The job of one variant on this machine's GPU, which must be the one the campaign names.

    Raises:
        WarplogError: there is no GPU here, or another one.
    """
    family = load_family(family_file)
    named = read_json(campaign, "record")
    return Job(
        family=family,
        variant=family.variant(variant),
        gpu=this_gpu(gpu),
        build_folder=build.parent,
        record=record,
        scratch=record.with_name(f".{record.stem}.work"),
        settings=settings,
        tools=named["tools"],
        commit=commit_of(Path()) or named["commit"],
        content_sha256=provenance.content_sha256(Path()),
    )


def this_gpu(slug: str) -> Gpu:
    """This machine's GPU, which must have that slug.

    Raises:
        WarplogError: there is none, or another one.
    """
    found = device.detect()
    if found is None:
        raise WarplogError(f"no GPU: {device.why_not()}; run on a machine with one, or with --config mode=recorded")
    if found.slug != slug:
        raise WarplogError(f"this machine has {found.name} ({found.slug}), the campaign is for {slug}; see config: gpu")
    return found


def check_variant(job: Job) -> Record:
    """Runs all check cases; the record's status is that of the first case that is not ok."""
    family = job.family
    return _measure(job, "check", tuple(family.check_cases), {"rounds": job.settings["rounds"]}, ("crashed", "timeout"))


def time_variant(job: Job, check_record: Path, timer: Path, cases: tuple[str, ...]) -> Record:
    """Times the cases of a variant whose check passed; else the record says 'skipped' and why.

    Raises:
        WarplogError: the check record is missing or belongs to another build.
    """
    check = read_json(check_record, "record")
    build = read_json(job.build_folder / "record.json", "record")
    refusal = refuse(check, build)
    settings = {k: v for k, v in job.settings.items() if k != "timeout_s"} | {"default_mhz": job.gpu.max_sm_mhz}
    return _measure(job, "time", cases, settings, (), timer=timer, refusal=refusal, check=check["status"])


def refuse(check: Record, build: Record) -> tuple[str, str] | None:
    """Status and reason why a variant must not be timed or captured; None where it may."""
    if check["status"] in ("unsupported", "skipped"):
        return check["status"], check["reason"]
    if check["status"] != "ok":
        return "skipped", f"its check says {check['status']}: {check['reason']}"
    if check["library_sha256"] != build.get("library_sha256"):
        return "skipped", "its check belongs to another build; run the check again"
    return None


def _measure(
    job: Job,
    mode: str,
    cases: tuple[str, ...],
    settings: Mapping[str, Any],
    stop_at: tuple[str, ...],
    timer: Path | None = None,
    refusal: tuple[str, str] | None = None,
    check: str = "",
) -> Record:
    build = read_json(job.build_folder / "record.json", "record")
    if build["status"] != "ok" and refusal is None:
        kind = "unsupported" if build["status"] == "unsupported" else "skipped"
        refusal = kind, f"its build says {build['status']}: {build['reason']}"
    results: dict[str, Record] = {}
    session: Record = {}
    if refusal is None:
        fitting = tuple(c for c in cases if not _misfit(job, c))
        task = Task(
            mode=mode,
            backend=job.backend,
            family_file=job.family.file,
            library=job.build_folder / "kernel.so",
            library_sha256=build["library_sha256"],
            cases=fitting,
            folder=job.scratch,
            settings=settings,
            timer=timer,
        )
        with hold(job.gpu.uuid):
            found, session = run_cases(task, job.settings["timeout_s"], progress(job, mode, len(fitting)), stop_at)
        results = {r["case"]: r for r in found}
    record = _record(job, mode, build, session, [_case_record(job, c, results, refusal) for c in cases])
    if refusal is not None:
        record |= {"status": refusal[0], "reason": refusal[1]}
    if mode == "time":
        record |= {"check": check}
    write_json(job.record, record, "record")
    discard(job.scratch)
    return record


def _case_record(job: Job, case: str, results: Mapping[str, Record], refusal: tuple[str, str] | None) -> Record:
    if refusal is not None:
        return {"case": case, "status": refusal[0], "reason": refusal[1]}
    if misfit := _misfit(job, case):
        return {"case": case, "status": "unsupported", "reason": misfit}
    return dict(results[case])


def _misfit(job: Job, case: str) -> str:
    family = job.family
    return job.variant.requires.why_not_case(family.cases.get(case) or family.check_cases[case])


def _record(job: Job, mode: str, build: Record, session: Record, cases: list[Record]) -> Record:
    counted = [c for c in cases if c["status"] != "unsupported"]
    status = worst(c["status"] for c in counted)
    first_bad = next((c for c in counted if c["status"] == status), None)
    return {
        "schema": SCHEMA_VERSION,
        "stage": mode,
        "family": job.family.name,
        "variant": job.variant.name,
        "gpu": job.gpu.slug,
        "status": status,
        "reason": f"case {first_bad['case']}: {first_bad['reason']}" if first_bad and status != "ok" else "",
        "origin": "live",
        "source_sha256": build["source_sha256"],
        "library_sha256": build.get("library_sha256", ""),
        "provenance": provenance.of_job(job.gpu, job.tools, job.commit, job.content_sha256, session),
        "session": session,
        "settings": dict(job.settings),
        "cases": cases,
    }


def progress(job: Job, mode: str, total: int) -> Callable[[Record], None]:
    """Prints a line for each finished case: `time  sgemm/naive  4096  276 ms  (6/7)`."""
    done = 0

    def say(result: Record) -> None:
        nonlocal done
        done += 1
        words = result["reason"] if result["status"] != "ok" else _headline(job, mode, result)
        line = f"  {mode:7} {job.family.name}/{job.variant.name}  {result['case']}  {result['status']}  {words}"
        print(f"{line.rstrip()}  ({done}/{total})", file=sys.stderr, flush=True)

    return say


def _headline(job: Job, mode: str, result: Record) -> str:
    if mode == "time":
        case = job.family.cases[result["case"]]
        microseconds = result["cold"]["median_us"]
        rate = job.family.value(job.family.flops, case) / microseconds / 1e3
        return f"{microseconds:.4g} us cold, {result['hot']['median_us']:.4g} us hot, {rate:.5g} GFLOP/s"
    if mode == "check":
        return f"error {result['max_error_over_tolerance']:.2f} of the tolerance"
    return f"{result['launches']} launches"
