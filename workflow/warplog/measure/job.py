"""Measuring jobs: one variant on this machine's GPU, from one build into one record; several share a worker."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family, Variant, load_family
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.numbers import rate_unit
from warplog.core.records import SCHEMA_VERSION, FamilyRecord, Record, read_json, sha256_of
from warplog.machine import device
from warplog.machine.device import Gpu
from warplog.measure import provenance
from warplog.measure.supervise import Task, group_of
from warplog.measure.worker.case_data import SHARED_DATA

Refusal = tuple[str, str]  # status and reason


def refuse_build(build: Record) -> Refusal | None:
    """Why a build cannot be run; None where it can."""
    if build["status"] == "ok":
        return None
    status = "unsupported" if build["status"] == "unsupported" else "skipped"
    return status, f"its build says {build['status']}: {build['reason']}"


def refuse_unproven(check: Record, build: Record) -> Refusal | None:
    """Why a variant must not be timed or captured: its check did not pass, or was of another build."""
    if check["status"] in ("unsupported", "skipped"):
        return check["status"], check["reason"]
    if check["status"] != "ok":
        return "skipped", f"its check says {check['status']}: {check['reason']}"
    if check["library_sha256"] != build.get("library_sha256"):
        return "skipped", "its check belongs to another build; run the check again"
    return refuse_build(build)


@dataclass(frozen=True)
class Job:
    """One measuring job.

    Attributes:
        settings: the stage's policy (config: check, time, profile, sanitize or tune).
        tools: versions by tool, for the provenance.
        scratch: folder of the journal while the job runs.
        record: the family's record of the stage, which the jobs of its variants share.
        inputs_sha256: of what the record depends on besides the build; "" measures in any case.
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
    inputs_sha256: str = ""

    @cached_property
    def build(self) -> Record:
        """The build record."""
        record: Record = read_json(self.build_folder / "record.json", "record")
        return record

    def task(self, mode: str, cases: tuple[str, ...], settings: Mapping[str, Any], **more: Any) -> Task:
        """The task for a worker; `more` are further or other fields of Task."""
        fields: dict[str, Any] = {
            "mode": mode,
            "backend": self.backend,
            "family_file": self.family.file,
            "library": self.build_folder / "kernel.so",
            "library_sha256": self.build["library_sha256"],
            "cases": cases,
            "folder": self.scratch,
            "settings": settings,
            "environment": self.gpu.environment,
            "gpu_lock": self.gpu.uuid,
            "memory": {"": self.variant.memory},
        }
        return Task(**{**fields, **more})

    def misfit(self, case: str) -> str:
        """Why the variant does not support a case; '' where it does."""
        return self.variant.requires.why_not_case(self.family.case(case))

    def fitting(self, cases: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the cases that the variant supports."""
        return tuple(c for c in cases if not self.misfit(c))

    def entry(self, case: str, results: Mapping[str, Record], refusal: Refusal | None) -> Record:
        """A case of the record: its result, or why there is none."""
        if refusal is not None:
            return {"case": case, "status": refusal[0], "reason": refusal[1]}
        if misfit := self.misfit(case):
            return {"case": case, "status": "unsupported", "reason": misfit}
        return dict(results[case])

    @property
    def former(self) -> Record:
        """The variant's record of an earlier run; {} if there is none."""
        return _records(self.record, _state(self.record)).get(self.variant.name, {})

    def is_fresh(self, inputs_sha256: str) -> bool:
        """Whether the former record was made from these inputs; never if they are not known."""
        return bool(self.inputs_sha256) and self.former.get("inputs_sha256") == inputs_sha256

    def head(self, stage: str, build: Record, session: Record) -> Record:
        """The keys that the records of all measuring stages share; `session` is what the worker noted."""
        return {
            "schema": SCHEMA_VERSION,
            "stage": stage,
            "family": self.family.name,
            "variant": self.variant.name,
            "gpu": self.gpu.slug,
            "origin": "live",
            "source_sha256": build["source_sha256"],
            "library_sha256": build.get("library_sha256", ""),
            "provenance": provenance.of_job(self.gpu, self.tools, self.commit, self.content_sha256, session),
        }

    def progress(self, mode: str, total: int) -> Callable[[Record], None]:
        """Prints a line for each finished case: `time  sgemm/naive  4096  276 ms  (6/7)`."""
        done = 0

        def say(result: Record) -> None:
            nonlocal done
            done += 1
            words = result["reason"] if result["status"] != "ok" else self._headline(mode, result)
            variant, _, case = result["case"].rpartition(":")
            label = f"{self.family.name}/{variant or self.variant.name}"
            line = f"  {mode:7} {label}  {case}  {result['status']}  {words}"
            print(f"{line.rstrip()}  ({done}/{total})", file=sys.stderr, flush=True)

        return say

    def _headline(self, mode: str, result: Record) -> str:
        if mode == "time":
            cold = result["cold"]["median_us"]
            hot = f", {result['hot']['median_us']:.4g} us hot" if "hot" in result else ""
            case = self.family.cases[result["case"].rpartition(":")[2]]
            flops = self.family.value(self.family.flops, case)
            work, unit = (
                (flops, "GFLOP/s") if flops else (self.family.value(self.family.bytes_moved, case), "GB/s")
            )
            rate = work / max(cold, 1e-3) / 1e3
            unit, factor = rate_unit(unit, [rate])
            return f"{cold:.4g} us cold{hot}, {rate * factor:.4g} {unit}"
        if mode == "check":
            return f"error {result['max_error_over_tolerance']:.2f} of the tolerance"
        return f"{result['launches']} launch{'es' if result['launches'] > 1 else ''}"


def family_task(
    parts: Sequence[tuple[Job, tuple[str, ...]]], mode: str, settings: Mapping[str, Any], **more: Any
) -> Task:
    """One task for several variants of a family; its cases are named `<variant>:<case>`.

    Checked kernels (modes time and capture) have a case one after the other, so that they share its data and are
    compared under the same conditions.
    """
    first = parts[0][0]
    pairs = [(job, case) for job, cases in parts for case in cases]
    if mode in SHARED_DATA:
        order = [*first.family.cases, *first.family.check_cases]
        pairs.sort(key=lambda pair: order.index(pair[1]))
    libraries = {f"{job.variant.name}:{case}": job.build_folder / "kernel.so" for job, case in pairs}
    hashes = {job.variant.name: job.build["library_sha256"] for job, _ in parts}
    more |= {"memory": {job.variant.name: job.variant.memory for job, _ in parts}, "libraries": libraries}
    scratch = first.scratch.with_name(f".{first.family.name}.{mode}.work")
    task = first.task(mode, tuple(libraries), settings, folder=scratch, **more)
    return replace(task, library_sha256=sha256_of(hashes))


def own_results(variant: str, results: Sequence[Record]) -> dict[str, Record]:
    """A variant's results by case, of those that a family's task gave."""
    mine = [r for r in results if group_of(r["case"]) == variant]
    return {name: {**r, "case": name} for r in mine if (name := r["case"].rpartition(":")[2])}


def make_jobs(
    *,
    family_file: Path,
    variants: Sequence[str],
    gpu: str,
    builds: Sequence[Path],
    campaign: Path,
    settings: Mapping[str, Any],
    record: Path,
    inputs_sha256: str = "",
) -> list[Job]:
    """The jobs of several variants of a family on this machine's GPU.

    Args:
        family_file: family.yaml.
        variants: names, in the order in which they are measured.
        gpu: slug of the GPU that the campaign is for.
        builds: their build records, in the same order.
        campaign: the campaign record, for the versions of tools and the commit.
        settings: the stage's policy.
        record: the family's record of this stage; an earlier run's is read from it.
        inputs_sha256: of what all variants' records depend on; "" measures in any case.

    Raises:
        WarplogError: there is no GPU here, or it is not the campaign's.
    """
    family = load_family(family_file)
    named = read_json(campaign, "record")
    found = this_gpu(gpu)
    project = paths.project()
    commit = provenance.commit_of(project) or named["commit"]
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
            tools=named["tools"],
            commit=commit,
            content_sha256=content,
            inputs_sha256=inputs_sha256 and sha256_of(inputs_sha256, dict(family.variant(variant).memory)),
        )
        for variant, build in zip(variants, builds, strict=True)
    ]


def keep(job: Job, made: Iterable[Record]) -> None:
    """Writes records of variants into the family's record, `job.record`; its other records stay.

    Records of variants that the family no longer has are dropped.

    Raises:
        WarplogError: the file is damaged, or cannot be written.
    """
    together = FamilyRecord.read_if_there(job.record)
    together.keep_only([variant.name for variant in job.family.variants])
    for one in made:
        together.put(one)
    together.write()


def _state(path: Path) -> tuple[int, int]:
    return (path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0)


@lru_cache(maxsize=2)
def _records(path: Path, _state: tuple[int, int]) -> dict[str, Record]:
    """The records in a file, which the jobs of all variants ask for one after the other."""
    return FamilyRecord.read_if_there(path).variants


def this_gpu(slug: str) -> Gpu:
    """This machine's GPU, which must have that slug.

    Raises:
        WarplogError: there is none, or another one.
    """
    found = device.detect()
    if found is None:
        why = device.why_not()
        raise WarplogError(
            f"no GPU: {why}; run on a machine with one; a campaign can be read with --config mode=recorded"
        )
    if found.slug != slug:
        raise WarplogError(
            f"this machine has {found.name} ({found.slug}), the campaign is for {slug}; see config: gpu"
        )
    return found
